//! Rows of messages and turns, and the append that writes them together with everything else.

use sqlx::sqlite::SqliteRow;
use sqlx::{Row, SqliteConnection};
use steward_base::Timestamp;
use steward_base::names::{SessionId, TeamId};
use steward_recall_core::Error;
use steward_recall_core::append_messages::{Append, Appended, Effects, Found, RequestKey, answer_again, decide};
use steward_recall_core::get_session::{BATCH, MessagePage};
use steward_recall_core::message::{Message, Role};
use steward_recall_core::session::Usage;
use steward_recall_core::store::{MessageRange, Taken, Visibility};
use steward_recall_core::turn::Turn;
use steward_store::Batch;

use super::answers;
use super::failure::Failure;
use super::rows::{self, json, json_names, signed};
use super::sessions::{self, Numbered};
use super::{lifecycle, outbox};

/// What an append needs to know, in one look: the session, the first answer to its request, its turn, another turn that is
/// open, how many exposures are recorded, the last number of the index.
const FOUND: &str = "SELECT s.*,
         max(coalesce((SELECT max(doc) FROM message), 0), coalesce((SELECT covered FROM index_state), 0)) AS last_doc,
         (SELECT count(*) FROM exposure e WHERE e.session = s.number) AS exposures,
         a.request_hash, a.answer,
         t.id AS t_id, t.state AS t_state, t.first_seq AS t_first_seq, t.last_seq AS t_last_seq,
         t.iterations AS t_iterations, t.segments AS t_segments, t.error_reason AS t_error_reason,
         t.error_message AS t_error_message, t.created AS t_created, t.ended AS t_ended
     FROM session s
     LEFT JOIN answered a ON a.session = s.number AND a.request_id = ?3 AND a.created > ?4
     LEFT JOIN turn t ON t.session = s.number AND t.id = ?5
     WHERE s.team = ?1 AND s.id = ?2";

/// What [`append`] has to know.
pub(super) fn ask(append: &Append, now: Timestamp) -> Batch {
    let mut batch = Batch::default();
    batch
        .statement(FOUND)
        .with(append.team.as_str())
        .with(append.session.as_str())
        .with(append.request.id.as_str())
        .with(answers::oldest(now))
        .with(append.turn_id());
    batch
}

/// One append: from what is there (see [`ask`]) the rules decide, and what they say is written, most of it by what is given
/// back: each piece of work for the database costs two changes of thread.
pub(super) async fn append(
    connection: &mut SqliteConnection,
    found: Vec<SqliteRow>,
    append: Append,
    now: Timestamp,
) -> Result<(Appended, Batch), Failure> {
    let (team, id, request) = (append.team.clone(), append.session.clone(), append.request.clone());
    let Some(row) = found.into_iter().next() else {
        return Err(lifecycle::gone(connection, &team, &id).await?);
    };
    let Numbered { number, mut session } = Numbered::from_row(&row)?;
    let answered: Option<(Vec<u8>, String)> = row
        .try_get::<Option<Vec<u8>>, _>("request_hash")?
        .zip(row.try_get("answer")?);
    if let Some((hash, answer)) = answered {
        answers::same_request(&hash, &request)?;
        let first: Option<Appended> = serde_json::from_str(&answer)?;
        let first = first.ok_or_else(|| Error::request_id_reused(&request.id))?;
        let again = answer_again(first, &append, &mut session.lease, now)?;
        sessions::save_lease(connection, number, &session.lease).await?;
        return Ok((again, Batch::default()));
    }
    let turn = match row.try_get::<Option<&str>, _>("t_id")? {
        Some(_) => Some(rows::turn(&row, "t_")?),
        None => None,
    };
    let open = session.open_turn.as_deref();
    let other_open_turn = match open.filter(|open| append.turn_id() != Some(*open)) {
        Some(open) => turn_of(connection, number, open).await?,
        None => None,
    };
    let found = Found {
        session,
        turn,
        other_open_turn,
    };
    let effects = decide(found, append, now)?;
    let place = Place {
        session: number,
        last_doc: row.try_get::<Option<i64>, _>("last_doc")?.unwrap_or(0),
        exposures: row.try_get("exposures")?,
    };
    write(connection, effects, &place, &request, now).await
}

/// Where an append is written.
struct Place {
    /// The session's number.
    session: i64,
    /// The last number of the index.
    last_doc: i64,
    /// Exposures that are recorded.
    exposures: i64,
}

async fn write(
    connection: &mut SqliteConnection,
    effects: Effects,
    place: &Place,
    request: &RequestKey,
    now: Timestamp,
) -> Result<(Appended, Batch), Failure> {
    let session = &effects.session;
    let mut batch = Batch::default();
    if let [message] = effects.messages.as_slice() {
        insert_with(&mut batch, place.session, place.last_doc + 1, message)?;
    } else {
        // One by one, since a statement that is prepared already is worth more than a long one.
        for (doc, message) in (place.last_doc + 1..).zip(&effects.messages) {
            insert(connection, place.session, doc, message).await?;
        }
    }
    for turn in &effects.turns {
        save_turn(&mut batch, place.session, turn);
    }
    // The session was loaded without those it had.
    sessions::add_exposures(connection, place.session, &session.exposures, place.exposures, now).await?;
    if let Some(due) = &effects.due_review {
        outbox::add(connection, due).await?;
    }
    let answer = json(&effects.appended)?;
    sessions::save_with(&mut batch, place.session, session, (request, &answer), now)?;
    Ok((effects.appended, batch))
}

/// A row; its entry in the index is made later.
const INSERT: &str =
    "INSERT INTO message (doc, session, seq, role, said, sent, tool_calls, tool_call_id, tool_name, is_error,
         tool_text, spans, usage_input, usage_cached_input, usage_cache_write, usage_output, model, integrity, turn,
         created, native_provider, native_model, native_blocks, place, replaces_to)
     VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)";

/// Writes a message, which waits for the index from then on.
pub(super) async fn insert(
    connection: &mut SqliteConnection,
    session: i64,
    doc: i64,
    message: &Message,
) -> Result<(), Failure> {
    let mut batch = Batch::default();
    insert_with(&mut batch, session, doc, message)?;
    Ok(batch.run(connection).await?)
}

fn insert_with(batch: &mut Batch, session: i64, doc: i64, message: &Message) -> Result<(), Failure> {
    let body = &message.body;
    let usage: Usage = body.usage.unwrap_or_default();
    let native = body.native.as_ref();
    // What a tool returned is kept once, as what was said.
    let tool_text = if body.role == Role::Tool {
        String::new()
    } else {
        message.tool_text()
    };
    batch
        .statement(INSERT)
        .with(doc)
        .with(session)
        .with(signed(message.seq))
        .with(body.role.as_str())
        .with(body.text.as_str())
        .with(body.sent_text.as_deref())
        .with(json(&body.tool_calls)?)
        .with(body.result.as_ref().map(|result| result.call_id.as_str()))
        .with(body.result.as_ref().map(|result| result.tool_name.as_str()))
        .with(body.result.as_ref().is_some_and(|result| result.is_error))
        .with(tool_text.as_str())
        .with(json(&body.spans)?)
        .with(usage.input.map(signed))
        .with(usage.cached_input.map(signed))
        .with(usage.cache_write.map(signed))
        .with(usage.output.map(signed))
        .with(message.model.as_str())
        .with(message.integrity.level())
        .with(body.turn.as_str())
        .with(message.created.as_micros())
        .with(native.map(|native| native.provider.as_str()))
        .with(native.map(|native| native.model.as_str()))
        .with(native.map(|native| native.blocks_json.as_str()))
        .with(message.replaces.map(|replaced| signed(replaced.from)))
        .with(message.replaces.map(|replaced| signed(replaced.to)));
    Ok(())
}

/// The number of a session, and the messages of a range in ascending order; none for a session that does not exist.
pub(super) async fn list_of(
    connection: &mut SqliteConnection,
    team: &TeamId,
    session: &SessionId,
    range: &MessageRange,
) -> Result<Vec<Message>, Failure> {
    let number: Option<i64> = sqlx::query_scalar("SELECT number FROM session WHERE team = ? AND id = ?")
        .bind(team.as_str())
        .bind(session.as_str())
        .fetch_optional(&mut *connection)
        .await?;
    match number {
        Some(number) => list(connection, number, range).await,
        None => Ok(Vec::new()),
    }
}

/// What a message is read from: not what only the index has of it, which may be as large again.
macro_rules! columns {
    () => {
        "seq, role, said, sent, tool_calls, tool_call_id, tool_name, is_error, spans, usage_input, usage_cached_input,
         usage_cache_write, usage_output, model, integrity, turn, native_provider, native_model, native_blocks, rewound,
         compacted, created, place, replaces_to"
    };
}
pub(super) use columns;

/// Messages of a context in the order of their places: the few summaries have an index of their own, and the two are merged
/// as they are read.
macro_rules! in_context {
    ($order:literal) => {
        concat!(
            "SELECT ", columns!(), ", seq AS at FROM message
                 WHERE session = ?1 AND place IS NULL AND seq BETWEEN ?2 AND ?3 AND rewound = 0 AND compacted = 0
                       AND (?4 OR role IN (SELECT value FROM json_each(?5)))
             UNION ALL
             SELECT ", columns!(), ", place AS at FROM message
                 WHERE session = ?1 AND place IS NOT NULL AND place BETWEEN ?2 AND ?3 AND rewound = 0 AND compacted = 0
                       AND (?4 OR role IN (SELECT value FROM json_each(?5)))
             ORDER BY at ", $order, " LIMIT ?6"
        )
    };
}

/// Messages in the order of their positions.
pub(super) async fn list(
    connection: &mut SqliteConnection,
    session: i64,
    range: &MessageRange,
) -> Result<Vec<Message>, Failure> {
    let found = if range.visibility == Visibility::InContext {
        let sql = match range.taken {
            Taken::First => in_context!("ASC"),
            Taken::Last => in_context!("DESC"),
        };
        sqlx::query(sql)
            .bind(session)
            .bind(signed(range.from))
            .bind(signed(range.to))
            .bind(range.roles.is_empty())
            .bind(json_names(range.roles.iter().map(|role| role.as_str())))
            .bind(i64::from(range.limit))
            .fetch_all(connection)
            .await?
    } else {
        by_number(connection, session, range).await?
    };
    let mut messages: Vec<Message> = found.iter().map(rows::placed_message).collect::<Result<_, _>>()?;
    if range.taken == Taken::Last {
        messages.reverse();
    }
    Ok(messages)
}

async fn by_number(
    connection: &mut SqliteConnection,
    session: i64,
    range: &MessageRange,
) -> Result<Vec<SqliteRow>, Failure> {
    let (rewound, least_compacted, most_compacted) = match range.visibility {
        Visibility::All => (1, 0, 1),
        Visibility::Searchable => (0, 0, 1),
        Visibility::OutOfContext => (0, 1, 1),
        Visibility::InContext => (0, 0, 0),
    };
    let sql = match range.taken {
        Taken::First => {
            concat!(
                "SELECT ",
                columns!(),
                " FROM message WHERE session = ? AND seq BETWEEN ? AND ? AND rewound <= ?
             AND compacted BETWEEN ? AND ? AND (? OR role IN (SELECT value FROM json_each(?))) ORDER BY seq LIMIT ?"
            )
        }
        Taken::Last => {
            concat!("SELECT ", columns!(), " FROM message WHERE session = ? AND seq BETWEEN ? AND ? AND rewound <= ?
             AND compacted BETWEEN ? AND ? AND (? OR role IN (SELECT value FROM json_each(?))) ORDER BY seq DESC LIMIT ?")
        }
    };
    Ok(sqlx::query(sql)
        .bind(session)
        .bind(signed(range.from))
        .bind(signed(range.to))
        .bind(rewound)
        .bind(least_compacted)
        .bind(most_compacted)
        .bind(range.roles.is_empty())
        .bind(json_names(range.roles.iter().map(|role| role.as_str())))
        .bind(i64::from(range.limit))
        .fetch_all(connection)
        .await?)
}

/// A page of messages, fetched in small batches.
pub(super) async fn page(
    connection: &mut SqliteConnection,
    session: i64,
    range: &MessageRange,
) -> Result<MessagePage, Failure> {
    let mut page = MessagePage::default();
    let mut batch = MessageRange {
        taken: Taken::First,
        limit: BATCH,
        ..range.clone()
    };
    loop {
        let found = list(connection, session, &batch).await?;
        let is_last = found.len() < BATCH as usize;
        for message in found {
            batch.from = range.position(&message) + 1;
            if page.offer(range, message).is_break() {
                return Ok(page);
            }
        }
        if is_last {
            return Ok(page);
        }
    }
}

/// A turn of a session by its name.
pub(super) async fn load_turn(
    connection: &mut SqliteConnection,
    team: &TeamId,
    session: &SessionId,
    turn: &str,
) -> Result<Option<Turn>, Failure> {
    let row = sqlx::query(
        "SELECT t.* FROM turn t JOIN session s ON s.number = t.session WHERE s.team = ? AND s.id = ? AND t.id = ?",
    )
    .bind(team.as_str())
    .bind(session.as_str())
    .bind(turn)
    .fetch_optional(connection)
    .await?;
    row.as_ref().map(|row| rows::turn(row, "")).transpose()
}

/// A turn of a session by its number.
pub(super) async fn turn_of(
    connection: &mut SqliteConnection,
    session: i64,
    turn: &str,
) -> Result<Option<Turn>, Failure> {
    let row = sqlx::query("SELECT * FROM turn WHERE session = ? AND id = ?")
        .bind(session)
        .bind(turn)
        .fetch_optional(connection)
        .await?;
    row.as_ref().map(|row| rows::turn(row, "")).transpose()
}

fn save_turn(batch: &mut Batch, session: i64, turn: &Turn) {
    batch
        .statement("INSERT OR REPLACE INTO turn VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)")
        .with(session)
        .with(turn.id.as_str())
        .with(turn.state.as_str())
        .with(signed(turn.first_seq))
        .with(signed(turn.last_seq))
        .with(turn.iterations)
        .with(turn.segments)
        .with(turn.error_reason.as_str())
        .with(turn.error_message.as_str())
        .with(turn.created.as_micros())
        .with(turn.ended.map(Timestamp::as_micros));
}
