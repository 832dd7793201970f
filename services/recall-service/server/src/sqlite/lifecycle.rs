//! What becomes of a session as a whole: deleted, rewound, forked, compacted, waiting for too long. Each is one transaction
//! with the index; the rules are the core's.

use sqlx::SqliteConnection;
use steward_base::Timestamp;
use steward_base::names::{SessionId, TeamId, session_name};
use steward_recall_core::Error;
use steward_recall_core::append_messages::Appended;
use steward_recall_core::delete_session::{self, Deletion};
use steward_recall_core::fork_session::{self, Fork};
use steward_recall_core::import_session::WholeSession;
use steward_recall_core::mark_compacted::{self, Compaction};
use steward_recall_core::message::Message;
use steward_recall_core::rewind_session::{self, Rewind};
use steward_recall_core::session::Session;
use steward_recall_core::store::MessageRange;
use steward_recall_core::turn::{ExpiredTurn, Turn};

use super::answers::{self, CREATION};
use super::failure::Failure;
use super::rows::{self, json, signed};
use super::sessions::{self, Numbered};
use super::{index, messages};

/// Why there is no such session: it was deleted, or never was.
pub(super) async fn gone(
    connection: &mut SqliteConnection,
    team: &TeamId,
    session: &SessionId,
) -> Result<Failure, Failure> {
    Ok(if is_deleted(connection, team, session).await? {
        Error::SessionDeleted {
            session: session_name(team, session),
        }
        .into()
    } else {
        sessions::missing(team, session)
    })
}

async fn is_deleted(connection: &mut SqliteConnection, team: &TeamId, session: &SessionId) -> Result<bool, Failure> {
    let found: Option<i64> = sqlx::query_scalar("SELECT 1 FROM deleted_session WHERE team = ? AND id = ?")
        .bind(team.as_str())
        .bind(session.as_str())
        .fetch_optional(connection)
        .await?;
    Ok(found.is_some())
}

/// Refuses an id that a session has or had.
pub(super) async fn check_free(
    connection: &mut SqliteConnection,
    team: &TeamId,
    session: &SessionId,
) -> Result<(), Failure> {
    if sessions::summary(connection, team, session).await?.is_some() {
        return Err(Error::SessionExists {
            session: session_name(team, session),
        }
        .into());
    }
    match gone(connection, team, session).await? {
        Failure(Error::SessionDeleted { session }) => Err(Error::SessionDeleted { session }.into()),
        Failure(_) => Ok(()),
    }
}

/// Deletes a session with everything that belongs to it, and leaves a mark.
pub(super) async fn delete(
    connection: &mut SqliteConnection,
    deletion: &Deletion,
    now: Timestamp,
) -> Result<(), Failure> {
    let (team, id) = (&deletion.team, &deletion.session);
    let Some(Numbered { number, session }) = sessions::summary(connection, team, id).await? else {
        return match gone(connection, team, id).await? {
            Failure(Error::SessionDeleted { .. }) => Ok(()),
            missing => Err(missing),
        };
    };
    delete_session::decide(&session, deletion, now)?;
    remove(connection, number, team, id).await?;
    sqlx::query("INSERT INTO deleted_session (team, id, user, deleted) VALUES (?, ?, ?, ?)")
        .bind(team.as_str())
        .bind(id.as_str())
        .bind(session.user.as_str())
        .bind(now.as_micros())
        .execute(connection)
        .await?;
    Ok(())
}

/// Removes all rows of a session, and its entries from the index first: they are told by the rows.
async fn remove(
    connection: &mut SqliteConnection,
    number: i64,
    team: &TeamId,
    session: &SessionId,
) -> Result<(), Failure> {
    index::remove(connection, number, 0, i64::MAX).await?;
    sqlx::query("DELETE FROM due_review WHERE team = ? AND session = ?")
        .bind(team.as_str())
        .bind(session.as_str())
        .execute(&mut *connection)
        .await?;
    for rows in [
        "DELETE FROM answered WHERE session = ?",
        "DELETE FROM exposure WHERE session = ?",
        "DELETE FROM turn WHERE session = ?",
        "DELETE FROM message WHERE session = ?",
        "DELETE FROM session_prompt WHERE session = ?",
        "DELETE FROM session WHERE number = ?",
    ] {
        sqlx::query(rows).bind(number).execute(&mut *connection).await?;
    }
    Ok(())
}

/// What compression took out of the context is back in it where the summary that covered it is cut and none that stays
/// covers it: [`rewind_session::is_restored`]. `?2` is the last message that stays.
const RESTORE: &str = "UPDATE message SET compacted = 0
     WHERE session = ?1 AND seq <= ?2 AND compacted = 1
       AND EXISTS (SELECT 1 FROM message s WHERE s.session = ?1 AND s.place IS NOT NULL AND s.seq > ?2
                   AND coalesce(message.place, message.seq) BETWEEN s.place AND s.replaces_to)
       AND NOT EXISTS (SELECT 1 FROM message s WHERE s.session = ?1 AND s.place IS NOT NULL AND s.seq <= ?2
                       AND s.seq > message.seq AND s.rewound = 0
                       AND coalesce(message.place, message.seq) BETWEEN s.place AND s.replaces_to)";

/// Takes back what was said after a message, or finds the session as the same request left it.
pub(super) async fn rewind(
    connection: &mut SqliteConnection,
    rewind: Rewind,
    now: Timestamp,
) -> Result<Session, Failure> {
    let found = sessions::load_numbered(connection, &rewind.team, &rewind.session).await?;
    let Numbered { number, session } = found.ok_or_else(|| sessions::missing(&rewind.team, &rewind.session))?;
    if answers::first(connection, number, &rewind.request, now)
        .await?
        .is_some()
    {
        return Ok(session);
    }
    let first_cut =
        sqlx::query("SELECT * FROM message WHERE session = ? AND seq > ? AND rewound = 0 ORDER BY seq LIMIT 1")
            .bind(number)
            .bind(signed(rewind.to))
            .fetch_optional(&mut *connection)
            .await?;
    let first_cut = first_cut.as_ref().map(rows::placed_message).transpose()?;
    let changed = rewind_session::decide(session, &rewind, first_cut.as_ref(), now)?;
    if first_cut.is_some() {
        let behind = signed(rewind.to.saturating_add(1));
        index::remove(connection, number, behind, i64::MAX).await?;
        for change in [
            RESTORE,
            "UPDATE message SET rewound = 1 WHERE session = ?1 AND seq > ?2 AND rewound = 0",
        ] {
            sqlx::query(change)
                .bind(number)
                .bind(signed(rewind.to))
                .execute(&mut *connection)
                .await?;
        }
    }
    sessions::save(connection, number, &changed, (&rewind.request, "null"), now).await?;
    Ok(changed)
}

/// Begins a session that goes on from another, or finds the one that the same request began.
pub(super) async fn fork(connection: &mut SqliteConnection, fork: Fork, now: Timestamp) -> Result<Session, Failure> {
    let request = fork.request.clone();
    if let Some(id) = answers::first(connection, CREATION, &request, now).await? {
        return sessions::created_before(connection, &fork.team, &id).await;
    }
    let parent = sessions::load_numbered(connection, &fork.team, &fork.parent).await?;
    let parent = parent.ok_or_else(|| sessions::missing(&fork.team, &fork.parent))?;
    check_free(connection, &fork.team, &fork.id).await?;
    let whole = MessageRange::in_context(0, i64::MAX.unsigned_abs(), u32::MAX);
    let context = messages::list(connection, parent.number, &whole).await?;
    let (session, taken) = fork_session::decide(&parent.session, context, fork, now)?;
    let number = sessions::insert(connection, &session).await?;
    sessions::add_exposures(connection, number, &session.exposures, 0, now).await?;
    add_messages(connection, number, &taken).await?;
    answers::keep(connection, CREATION, &request, &json(&session.id)?, now).await?;
    Ok(session)
}

/// Adds messages, which wait for the index from then on.
pub(super) async fn add_messages(
    connection: &mut SqliteConnection,
    session: i64,
    added: &[Message],
) -> Result<(), Failure> {
    let last_doc: i64 = sqlx::query_scalar(index::LAST_DOC).fetch_one(&mut *connection).await?;
    for (doc, message) in (last_doc + 1..).zip(added) {
        messages::insert(connection, session, doc, message).await?;
    }
    Ok(())
}

/// Puts a summary in the place of messages, or finds the first answer to the same request.
pub(super) async fn compact(
    connection: &mut SqliteConnection,
    compaction: Compaction,
    now: Timestamp,
) -> Result<Appended, Failure> {
    let (team, id, request) = (
        compaction.team.clone(),
        compaction.session.clone(),
        compaction.request.clone(),
    );
    let Some(Numbered { number, session }) = sessions::load_numbered(connection, &team, &id).await? else {
        return Err(gone(connection, &team, &id).await?);
    };
    if let Some(answer) = answers::first(connection, number, &request, now).await? {
        let first: Option<Appended> = serde_json::from_str(&answer)?;
        return Ok(first.ok_or_else(|| Error::request_id_reused(&request.id))?);
    }
    let range = MessageRange::in_context(compaction.range.from, compaction.range.to, u32::MAX);
    let replaced = messages::list(connection, number, &range).await?;
    let compacted = mark_compacted::decide(session, &replaced, compaction, now)?;
    let numbers: Vec<u64> = replaced.iter().map(|message| message.seq).collect();
    sqlx::query("UPDATE message SET compacted = 1 WHERE session = ? AND seq IN (SELECT value FROM json_each(?))")
        .bind(number)
        .bind(json(&numbers)?)
        .execute(&mut *connection)
        .await?;
    add_messages(connection, number, std::slice::from_ref(&compacted.summary)).await?;
    let session = &compacted.session;
    if compacted.prompt {
        sessions::save_prompt(connection, number, session).await?;
        sessions::replace_exposures(connection, number, &session.exposures, now).await?;
    }
    let answer = json(&compacted.appended)?;
    sessions::save(connection, number, session, (&request, &answer), now).await?;
    Ok(compacted.appended)
}

/// Takes a session in as it is, unless it is there.
pub(super) async fn import(connection: &mut SqliteConnection, whole: WholeSession) -> Result<bool, Failure> {
    let WholeSession {
        session,
        turns,
        messages,
    } = whole;
    if let Some(known) = sessions::summary(connection, &session.team, &session.id).await? {
        if known.session.user == session.user {
            return Ok(false);
        }
        return Err(Error::SessionExists {
            session: session.name(),
        }
        .into());
    }
    sqlx::query("DELETE FROM deleted_session WHERE team = ? AND id = ?")
        .bind(session.team.as_str())
        .bind(session.id.as_str())
        .execute(&mut *connection)
        .await?;
    let number = sessions::insert(connection, &session).await?;
    sessions::add_exposures(connection, number, &session.exposures, 0, session.created).await?;
    for turn in &turns {
        add_turn(connection, number, turn).await?;
    }
    add_messages(connection, number, &messages).await?;
    // None of them is in the index yet, and those that are marked never will be.
    let numbers = |is_marked: fn(&Message) -> bool| -> Vec<u64> {
        let marked = messages.iter().filter(|message| is_marked(message));
        marked.map(|message| message.seq).collect()
    };
    for (change, numbers) in [
        (
            "UPDATE message SET rewound = 1 WHERE session = ? AND seq IN (SELECT value FROM json_each(?))",
            numbers(|message| message.rewound),
        ),
        (
            "UPDATE message SET compacted = 1 WHERE session = ? AND seq IN (SELECT value FROM json_each(?))",
            numbers(|message| message.compacted),
        ),
    ] {
        sqlx::query(change)
            .bind(number)
            .bind(json(&numbers)?)
            .execute(&mut *connection)
            .await?;
    }
    Ok(true)
}

async fn add_turn(connection: &mut SqliteConnection, session: i64, turn: &Turn) -> Result<(), Failure> {
    sqlx::query(
        "INSERT INTO turn (session, id, state, first_seq, last_seq, iterations, segments, error_reason, error_message, created,
             ended) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
    )
    .bind(session)
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

/// All turns of a session, by their first messages.
pub(super) async fn turns(
    connection: &mut SqliteConnection,
    team: &TeamId,
    session: &SessionId,
) -> Result<Vec<Turn>, Failure> {
    let found = sqlx::query(
        "SELECT t.* FROM turn t JOIN session s ON s.number = t.session WHERE s.team = ? AND s.id = ?
         ORDER BY t.first_seq, t.id",
    )
    .bind(team.as_str())
    .bind(session.as_str())
    .fetch_all(connection)
    .await?;
    found.iter().map(|row| rows::turn(row, "")).collect()
}

/// Sessions that wait for their client.
const WAITING: &str = "SELECT * FROM session WHERE open_calls <> '[]'";

/// Turns of one team that wait for a client which did not come in time.
pub(super) async fn expired(connection: &mut SqliteConnection, now: Timestamp) -> Result<Vec<ExpiredTurn>, Failure> {
    let waiting = sqlx::query(WAITING).fetch_all(connection).await?;
    let mut expired = Vec::new();
    for row in &waiting {
        expired.extend(rows::session(row)?.expired_turn(now));
    }
    Ok(expired)
}

/// Whether any session of the team waits for its client.
pub(super) async fn is_any_waiting(connection: &mut SqliteConnection) -> Result<bool, Failure> {
    let waiting: Option<i64> = sqlx::query_scalar("SELECT 1 FROM session WHERE open_calls <> '[]' LIMIT 1")
        .fetch_optional(connection)
        .await?;
    Ok(waiting.is_some())
}
