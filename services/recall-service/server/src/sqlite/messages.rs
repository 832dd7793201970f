//! Rows of messages and turns, and the append that writes them together with everything else.

use std::ops::ControlFlow;

use steward_base::Timestamp;
use steward_base::names::{SessionId, TeamId};
use steward_recall_core::Error;
use steward_recall_core::append_messages::{Append, Appended, Effects, Found, RequestKey, answer_again, decide};
use steward_recall_core::message::{Message, Role};
use steward_recall_core::session::Usage;
use steward_recall_core::store::{MessageRange, Taken, Visibility};
use steward_recall_core::turn::Turn;
use steward_store::{Db, Row, StoreError, params};

use super::answers;
use super::failure::Failure;
use super::rows::{self, Columns, json, json_names, message_columns, session_columns, signed, turn_columns};
use super::sessions::{self, Numbered};
use super::{lifecycle, outbox};

/// What an append needs to know, in one look: the session, the last number of the index, the first answer to its request, its
/// turn.
const FOUND: &str = concat!(
    "SELECT ",
    session_columns!(),
    ", max(coalesce((SELECT max(doc) FROM message), 0), coalesce((SELECT covered FROM index_state), 0)),
         answered.request_hash, answered.answer, ",
    turn_columns!(),
    " FROM session
     LEFT JOIN answered ON answered.session = session.number AND answered.request_id = ?3 AND answered.created > ?4
     LEFT JOIN turn ON turn.session = session.number AND turn.id = ?5
     WHERE session.team = ?1 AND session.id = ?2"
);

/// What [`FOUND`] finds.
struct Known {
    session: Numbered,
    last_doc: i64,
    /// The first answer to the same request, as JSON.
    answer: Option<String>,
    turn: Option<Turn>,
}

impl Known {
    fn from_row(row: &Row<'_>, request: &RequestKey) -> Result<Self, Failure> {
        let mut columns = Columns::of(row);
        let session = Numbered::read(&mut columns)?;
        let last_doc = columns.take()?;
        let answered: Option<(Vec<u8>, String)> = columns.take::<Option<_>>()?.zip(columns.take()?);
        let answer = match answered {
            Some((hash, answer)) => {
                answers::same_request(&hash, request)?;
                Some(answer)
            }
            None => None,
        };
        Ok(Self {
            session,
            last_doc,
            answer,
            turn: rows::optional_turn(&mut columns)?,
        })
    }
}

/// One append: from what is there the rules decide, and what they say is written.
pub(super) fn append(db: Db<'_>, append: Append, now: Timestamp) -> Result<Appended, Failure> {
    let request = append.request.clone();
    let known = db.first(
        FOUND,
        params![
            append.team.as_str(),
            append.session.as_str(),
            request.id,
            answers::oldest(now),
            append.turn_id(),
        ],
        |row| Known::from_row(row, &request),
    )?;
    let Some(known) = known else {
        return Err(lifecycle::gone(db, &append.team, &append.session)?);
    };
    let Numbered { number, mut session } = known.session;
    if let Some(answer) = known.answer {
        let first: Option<Appended> = serde_json::from_str(&answer)?;
        let first = first.ok_or_else(|| Error::request_id_reused(&request.id))?;
        let again = answer_again(first, &append, &mut session.lease, now)?;
        sessions::save_lease(db, number, &session.lease)?;
        return Ok(again);
    }
    let open = session.open_turn.as_deref();
    let other_open_turn = match open.filter(|open| append.turn_id() != Some(*open)) {
        Some(open) => turn_of(db, number, open)?,
        None => None,
    };
    let found = Found {
        session,
        turn: known.turn,
        other_open_turn,
    };
    let effects = decide(found, append, now)?;
    write(db, &effects, (number, known.last_doc), &request, now)?;
    Ok(effects.appended)
}

fn write(
    db: Db<'_>,
    effects: &Effects,
    (number, last_doc): (i64, i64),
    request: &RequestKey,
    now: Timestamp,
) -> Result<(), Failure> {
    let session = &effects.session;
    for (doc, message) in (last_doc + 1..).zip(&effects.messages) {
        insert(db, number, doc, message)?;
    }
    for turn in &effects.turns {
        save_turn(db, number, turn)?;
    }
    if !session.exposures.is_empty() {
        // The session was loaded without those it had.
        let known = db.value("SELECT count(*) FROM exposure WHERE session = ?", [number])?;
        sessions::add_exposures(db, number, &session.exposures, known, now)?;
    }
    if let Some(due) = &effects.due_review {
        outbox::add(db, due)?;
    }
    sessions::save(db, number, session, (request, &json(&effects.appended)?), now)
}

/// Writes a message, which waits for the index from then on.
pub(super) fn insert(db: Db<'_>, session: i64, doc: i64, message: &Message) -> Result<(), Failure> {
    let body = &message.body;
    let usage: Usage = body.usage.unwrap_or_default();
    let (native, result) = (body.native.as_ref(), body.result.as_ref());
    // What a tool returned is kept once, as what was said.
    let tool_text = if body.role == Role::Tool {
        String::new()
    } else {
        message.tool_text()
    };
    db.execute(
        "INSERT INTO message (doc, session, seq, role, said, sent, tool_calls, tool_call_id, tool_name, is_error,
             tool_text, spans, usage_input, usage_cached_input, usage_cache_write, usage_output, model, integrity, turn,
             created, native_provider, native_model, native_blocks, place, replaces_to)
         VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        params![
            doc,
            session,
            signed(message.seq),
            body.role.as_str(),
            body.text,
            body.sent_text,
            json(&body.tool_calls)?,
            result.map(|result| &result.call_id),
            result.map(|result| &result.tool_name),
            result.is_some_and(|result| result.is_error),
            tool_text,
            json(&body.spans)?,
            usage.input.map(signed),
            usage.cached_input.map(signed),
            usage.cache_write.map(signed),
            usage.output.map(signed),
            message.model,
            message.integrity.level(),
            body.turn,
            message.created.as_micros(),
            native.map(|native| &native.provider),
            native.map(|native| &native.model),
            native.map(|native| &native.blocks_json),
            message.replaces.map(|replaced| signed(replaced.from)),
            message.replaces.map(|replaced| signed(replaced.to)),
        ],
    )?;
    Ok(())
}

/// The messages of a range in ascending order; none for a session that does not exist.
pub(super) fn list_of(
    db: Db<'_>,
    team: &TeamId,
    session: &SessionId,
    range: &MessageRange,
) -> Result<Vec<Message>, Failure> {
    match sessions::number_of(db, team, session)? {
        Some(number) => list(db, number, range),
        None => Ok(Vec::new()),
    }
}

/// Messages of a context in the order of their places: the few summaries have an index of their own, and the two are merged
/// as they are read.
macro_rules! in_context {
    ($order:literal) => {
        concat!(
            "SELECT ", message_columns!(), ", seq AS at FROM message
                 WHERE session = ?1 AND place IS NULL AND seq BETWEEN ?2 AND ?3 AND rewound = 0 AND compacted = 0
                       AND (?4 IS NULL OR role IN (SELECT value FROM json_each(?4)))
             UNION ALL
             SELECT ", message_columns!(), ", place AS at FROM message
                 WHERE session = ?1 AND place IS NOT NULL AND place BETWEEN ?2 AND ?3 AND rewound = 0 AND compacted = 0
                       AND (?4 IS NULL OR role IN (SELECT value FROM json_each(?4)))
             ORDER BY at ", $order, " LIMIT ?5"
        )
    };
}

macro_rules! by_number {
    ($order:literal) => {
        concat!(
            "SELECT ",
            message_columns!(),
            " FROM message WHERE session = ?1 AND seq BETWEEN ?2 AND ?3
                 AND (?4 IS NULL OR role IN (SELECT value FROM json_each(?4)))
                 AND rewound <= ?6 AND compacted BETWEEN ?7 AND ?8 ORDER BY seq ",
            $order,
            " LIMIT ?5"
        )
    };
}

/// Messages in the order of their positions.
pub(super) fn list(db: Db<'_>, session: i64, range: &MessageRange) -> Result<Vec<Message>, Failure> {
    let mut messages = Vec::new();
    each(db, session, range, range.limit, |message| {
        messages.push(message);
        ControlFlow::Continue(())
    })?;
    if range.taken == Taken::Last {
        messages.reverse();
    }
    Ok(messages)
}

/// Gives at most `limit` messages of a range one after the other, from the end that it is taken from, until one breaks. Large
/// ones stand in memory as long as whoever gets them keeps them.
pub(super) fn each(
    db: Db<'_>,
    session: i64,
    range: &MessageRange,
    limit: u32,
    mut give: impl FnMut(Message) -> ControlFlow<()>,
) -> Result<(), Failure> {
    let roles = (!range.roles.is_empty()).then(|| json_names(range.roles.iter().map(|role| role.as_str())));
    let common = params![session, signed(range.from), signed(range.to), roles, limit];
    let (sql, hidden) = match (range.visibility, range.taken) {
        (Visibility::InContext, Taken::First) => (in_context!("ASC"), None),
        (Visibility::InContext, Taken::Last) => (in_context!("DESC"), None),
        (of, Taken::First) => (by_number!("ASC"), Some(hidden(of))),
        (of, Taken::Last) => (by_number!("DESC"), Some(hidden(of))),
    };
    let mut statement = db.prepare(sql)?;
    let mut rows = match &hidden {
        None => statement.query(common),
        Some((rewound, least, most)) => {
            let further = params![rewound, least, most];
            statement.query([common, further].concat().as_slice())
        }
    }?;
    while let Some(row) = rows.next()? {
        if give(rows::message(&mut Columns::of(row))?).is_break() {
            break;
        }
    }
    Ok(())
}

/// Most of `rewound`, least and most of `compacted`.
const fn hidden(visibility: Visibility) -> (i64, i64, i64) {
    match visibility {
        Visibility::All => (1, 0, 1),
        Visibility::Searchable => (0, 0, 1),
        Visibility::OutOfContext => (0, 1, 1),
        Visibility::InContext => (0, 0, 0),
    }
}

/// A turn of a session by its name.
pub(super) fn load_turn(db: Db<'_>, team: &TeamId, session: &SessionId, turn: &str) -> Result<Option<Turn>, Failure> {
    match sessions::number_of(db, team, session)? {
        Some(number) => turn_of(db, number, turn),
        None => Ok(None),
    }
}

/// A turn of a session by its number.
pub(super) fn turn_of(db: Db<'_>, session: i64, turn: &str) -> Result<Option<Turn>, Failure> {
    db.first(
        concat!("SELECT ", turn_columns!(), " FROM turn WHERE session = ? AND id = ?"),
        params![session, turn],
        |row| rows::turn(&mut Columns::of(row)),
    )
}

pub(super) fn save_turn(db: Db<'_>, session: i64, turn: &Turn) -> Result<(), StoreError> {
    db.execute(
        "INSERT OR REPLACE INTO turn (session, id, state, first_seq, last_seq, iterations, segments, error_reason,
             error_message, created, ended) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        params![
            session,
            turn.id,
            turn.state.as_str(),
            signed(turn.first_seq),
            signed(turn.last_seq),
            turn.iterations,
            turn.segments,
            turn.error_reason,
            turn.error_message,
            turn.created.as_micros(),
            turn.ended.map(Timestamp::as_micros),
        ],
    )?;
    Ok(())
}
