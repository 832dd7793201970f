//! Rows of messages and turns, and the append that writes them together with everything else.

use sqlx::SqliteConnection;
use steward_base::Timestamp;
use steward_base::names::{SessionId, TeamId};
use steward_recall_core::append_messages::{Append, Appended, Effects, Found, answer_again, decide};
use steward_recall_core::get_session::{BATCH, MessagePage};
use steward_recall_core::message::Message;
use steward_recall_core::session::{Session, Usage};
use steward_recall_core::store::{Mark, MessageRange, Taken, Visibility};
use steward_recall_core::turn::Turn;

use super::answers::{self, Scope};
use super::failure::Failure;
use super::rows::{self, json, json_names, signed};
use super::{index, outbox, sessions};

/// One append: what is there is loaded, the rules decide, and what they say is written.
pub(super) async fn append(
    connection: &mut SqliteConnection,
    append: Append,
    now: Timestamp,
) -> Result<Appended, Failure> {
    let (team, id, request) = (append.team.clone(), append.session.clone(), append.request.clone());
    let scope = Scope::Session(&id);
    let mut session = sessions::load(connection, &team, &id)
        .await?
        .ok_or_else(|| sessions::missing(&team, &id))?;
    if let Some(answer) = answers::first(connection, &team, &scope, &request, now).await? {
        let again = answer_again(serde_json::from_str(&answer)?, &append, &mut session.lease, now)?;
        sessions::save_lease(connection, &session).await?;
        return Ok(again);
    }
    let takes_or_gives = append.acquire.is_some() || append.release;
    let turn = match append.turn_id() {
        Some(turn) => load_turn(connection, &team, &id, turn).await?,
        None => None,
    };
    let other_open_turn = match session
        .open_turn
        .as_deref()
        .filter(|open| append.turn_id() != Some(*open))
    {
        Some(open) => load_turn(connection, &team, &id, open).await?,
        None => None,
    };
    let known_exposures = session.exposures.len();
    let effects = decide(
        Found {
            session,
            turn,
            other_open_turn,
        },
        append,
        now,
    )?;
    if takes_or_gives {
        sessions::save_lease(connection, &effects.session).await?;
    }
    let appended = write(connection, effects, known_exposures, now).await?;
    answers::keep(connection, &team, &scope, &request, &json(&appended)?, now).await?;
    Ok(appended)
}

async fn write(
    connection: &mut SqliteConnection,
    effects: Effects,
    known_exposures: usize,
    now: Timestamp,
) -> Result<Appended, Failure> {
    let session = &effects.session;
    if !effects.messages.is_empty() {
        let last: i64 = sqlx::query_scalar("SELECT coalesce(max(doc), 0) FROM message")
            .fetch_one(&mut *connection)
            .await?;
        for (doc, message) in (last + 1..).zip(&effects.messages) {
            insert(connection, session, doc, message).await?;
            index::add(connection, doc, message).await?;
        }
    }
    for turn in &effects.turns {
        save_turn(connection, session, turn).await?;
    }
    sessions::save_state(connection, session).await?;
    let new_exposures = session.exposures.get(known_exposures..).unwrap_or_default();
    sessions::add_exposures(connection, session, new_exposures, known_exposures, now).await?;
    if let Some(due) = &effects.due_review {
        outbox::add(connection, due).await?;
    }
    Ok(effects.appended)
}

async fn insert(
    connection: &mut SqliteConnection,
    session: &Session,
    doc: i64,
    message: &Message,
) -> Result<(), Failure> {
    let body = &message.body;
    let usage: Usage = body.usage.unwrap_or_default();
    let native = body.native.as_ref();
    sqlx::query(
        "INSERT INTO message (team, session, seq, doc, role, said, sent, tool_calls, tool_call_id, tool_name, is_error,
             tool_text, spans, usage_input, usage_cached_input, usage_cache_write, usage_output, model, integrity, turn,
             created, native_provider, native_model, native_blocks)
         VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
    )
    .bind(session.team.as_str())
    .bind(session.id.as_str())
    .bind(signed(message.seq))
    .bind(doc)
    .bind(body.role.as_str())
    .bind(&body.text)
    .bind(&body.sent_text)
    .bind(json(&body.tool_calls)?)
    .bind(body.result.as_ref().map(|result| result.call_id.as_str()))
    .bind(body.result.as_ref().map(|result| result.tool_name.as_str()))
    .bind(body.result.as_ref().is_some_and(|result| result.is_error))
    .bind(message.tool_text())
    .bind(json(&body.spans)?)
    .bind(usage.input.map(signed))
    .bind(usage.cached_input.map(signed))
    .bind(usage.cache_write.map(signed))
    .bind(usage.output.map(signed))
    .bind(&message.model)
    .bind(message.integrity.level())
    .bind(&body.turn)
    .bind(message.created.as_micros())
    .bind(native.map(|native| native.provider.as_str()))
    .bind(native.map(|native| native.model.as_str()))
    .bind(native.map(|native| native.blocks_json.as_str()))
    .execute(connection)
    .await?;
    Ok(())
}

/// Messages in ascending order.
pub(super) async fn list(
    connection: &mut SqliteConnection,
    team: &TeamId,
    session: &SessionId,
    range: &MessageRange,
) -> Result<Vec<Message>, Failure> {
    let (rewound, least_compacted, most_compacted) = match range.visibility {
        Visibility::All => (1, 0, 1),
        Visibility::Searchable => (0, 0, 1),
        Visibility::OutOfContext => (0, 1, 1),
        Visibility::InContext => (0, 0, 0),
    };
    let sql = match range.taken {
        Taken::First => {
            "SELECT * FROM message WHERE team = ? AND session = ? AND seq BETWEEN ? AND ? AND rewound <= ?
             AND compacted BETWEEN ? AND ? AND (? OR role IN (SELECT value FROM json_each(?))) ORDER BY seq LIMIT ?"
        }
        Taken::Last => {
            "SELECT * FROM message WHERE team = ? AND session = ? AND seq BETWEEN ? AND ? AND rewound <= ?
             AND compacted BETWEEN ? AND ? AND (? OR role IN (SELECT value FROM json_each(?))) ORDER BY seq DESC LIMIT ?"
        }
    };
    let found = sqlx::query(sql)
        .bind(team.as_str())
        .bind(session.as_str())
        .bind(signed(range.from))
        .bind(signed(range.to))
        .bind(rewound)
        .bind(least_compacted)
        .bind(most_compacted)
        .bind(range.roles.is_empty())
        .bind(json_names(range.roles.iter().map(|role| role.as_str())))
        .bind(i64::from(range.limit))
        .fetch_all(connection)
        .await?;
    let mut messages: Vec<Message> = found.iter().map(rows::message).collect::<Result<_, _>>()?;
    if range.taken == Taken::Last {
        messages.reverse();
    }
    Ok(messages)
}

/// A page of messages, fetched in small batches.
pub(super) async fn page(
    connection: &mut SqliteConnection,
    team: &TeamId,
    session: &SessionId,
    range: &MessageRange,
) -> Result<MessagePage, Failure> {
    let mut page = MessagePage::default();
    let mut batch = MessageRange {
        taken: Taken::First,
        limit: BATCH,
        ..range.clone()
    };
    loop {
        let found = list(connection, team, session, &batch).await?;
        let is_last = found.len() < BATCH as usize;
        for message in found {
            batch.from = message.seq + 1;
            if page.offer(range, message).is_break() {
                return Ok(page);
            }
        }
        if is_last {
            return Ok(page);
        }
    }
}

/// Marks messages; rewound ones leave the index in the same transaction.
pub(super) async fn mark(
    connection: &mut SqliteConnection,
    team: &TeamId,
    session: &SessionId,
    (from, to): (u64, u64),
    mark: Mark,
) -> Result<(), Failure> {
    let (from, to) = (signed(from), signed(to));
    let sql = match mark {
        Mark::Rewound => {
            index::remove(connection, team.as_str(), session.as_str(), from, to).await?;
            "UPDATE message SET rewound = 1 WHERE team = ? AND session = ? AND seq BETWEEN ? AND ?"
        }
        Mark::Compacted => "UPDATE message SET compacted = 1 WHERE team = ? AND session = ? AND seq BETWEEN ? AND ?",
    };
    sqlx::query(sql)
        .bind(team.as_str())
        .bind(session.as_str())
        .bind(from)
        .bind(to)
        .execute(&mut *connection)
        .await?;
    let changed = sqlx::query("UPDATE session SET revision = revision + 1 WHERE team = ? AND id = ?")
        .bind(team.as_str())
        .bind(session.as_str())
        .execute(connection)
        .await?;
    if changed.rows_affected() == 0 {
        Err(sessions::missing(team, session))
    } else {
        Ok(())
    }
}

/// A turn.
pub(super) async fn load_turn(
    connection: &mut SqliteConnection,
    team: &TeamId,
    session: &SessionId,
    turn: &str,
) -> Result<Option<Turn>, Failure> {
    let row = sqlx::query("SELECT * FROM turn WHERE team = ? AND session = ? AND id = ?")
        .bind(team.as_str())
        .bind(session.as_str())
        .bind(turn)
        .fetch_optional(connection)
        .await?;
    row.as_ref().map(rows::turn).transpose()
}

async fn save_turn(connection: &mut SqliteConnection, session: &Session, turn: &Turn) -> Result<(), Failure> {
    sqlx::query("INSERT OR REPLACE INTO turn VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)")
        .bind(session.team.as_str())
        .bind(session.id.as_str())
        .bind(&turn.id)
        .bind(turn.state.as_str())
        .bind(signed(turn.first_seq))
        .bind(signed(turn.last_seq))
        .bind(turn.iterations)
        .bind(turn.segments)
        .bind(&turn.error_reason)
        .bind(&turn.error_message)
        .bind(turn.created.as_micros())
        .bind(turn.ended.map(Timestamp::as_micros))
        .execute(connection)
        .await?;
    Ok(())
}
