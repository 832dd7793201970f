//! What becomes of a session as a whole: deleted, rewound, forked, compacted, waiting for too long. Each is one transaction
//! with the index; the rules are the core's.

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
use steward_store::{Db, params};

use super::answers::{self, CREATION};
use super::failure::Failure;
use super::rows::{self, Columns, json, message_columns, session_columns, signed, turn_columns};
use super::sessions::{self, Numbered};
use super::{index, messages};

/// Why there is no such session: it was deleted, or never was.
pub(super) fn gone(db: Db<'_>, team: &TeamId, session: &SessionId) -> Result<Failure, Failure> {
    Ok(if is_deleted(db, team, session)? {
        Error::SessionDeleted {
            session: session_name(team, session),
        }
        .into()
    } else {
        sessions::missing(team, session)
    })
}

fn is_deleted(db: Db<'_>, team: &TeamId, session: &SessionId) -> Result<bool, Failure> {
    Ok(db.exists(
        "SELECT 1 FROM deleted_session WHERE team = ? AND id = ?",
        params![team.as_str(), session.as_str()],
    )?)
}

/// Refuses an id that a session has or had.
pub(super) fn check_free(db: Db<'_>, team: &TeamId, session: &SessionId) -> Result<(), Failure> {
    if sessions::number_of(db, team, session)?.is_some() {
        return Err(Error::SessionExists {
            session: session_name(team, session),
        }
        .into());
    }
    match gone(db, team, session)? {
        Failure(Error::SessionDeleted { session }) => Err(Error::SessionDeleted { session }.into()),
        Failure(_) => Ok(()),
    }
}

/// Deletes a session with everything that belongs to it, and leaves a mark.
pub(super) fn delete(db: Db<'_>, deletion: &Deletion, now: Timestamp) -> Result<(), Failure> {
    let (team, id) = (&deletion.team, &deletion.session);
    let Some(Numbered { number, session }) = sessions::summary(db, team, id)? else {
        return match gone(db, team, id)? {
            Failure(Error::SessionDeleted { .. }) => Ok(()),
            missing => Err(missing),
        };
    };
    delete_session::decide(&session, deletion, now)?;
    remove(db, number, team, id)?;
    db.execute(
        "INSERT INTO deleted_session (team, id, user, deleted) VALUES (?, ?, ?, ?)",
        params![team.as_str(), id.as_str(), session.user.as_str(), now.as_micros()],
    )?;
    Ok(())
}

/// Removes all rows of a session, and its entries from the index first: they are told by the rows.
fn remove(db: Db<'_>, number: i64, team: &TeamId, session: &SessionId) -> Result<(), Failure> {
    index::remove(db, number, 0, i64::MAX)?;
    db.execute(
        "DELETE FROM due_review WHERE team = ? AND session = ?",
        params![team.as_str(), session.as_str()],
    )?;
    for rows in [
        "DELETE FROM answered WHERE session = ?",
        "DELETE FROM exposure WHERE session = ?",
        "DELETE FROM turn WHERE session = ?",
        "DELETE FROM message WHERE session = ?",
        "DELETE FROM session_prompt WHERE session = ?",
        "DELETE FROM session WHERE number = ?",
    ] {
        db.execute(rows, [number])?;
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
pub(super) fn rewind(db: Db<'_>, rewind: &Rewind, now: Timestamp) -> Result<Session, Failure> {
    let found = sessions::load(db, &rewind.team, &rewind.session)?;
    let Numbered { number, session } = found.ok_or_else(|| sessions::missing(&rewind.team, &rewind.session))?;
    if answers::first(db, number, &rewind.request, now)?.is_some() {
        return Ok(session);
    }
    let first_cut = db.first(
        concat!(
            "SELECT ",
            message_columns!(),
            " FROM message WHERE session = ? AND seq > ? AND rewound = 0 ORDER BY seq LIMIT 1"
        ),
        params![number, signed(rewind.to)],
        |row| rows::message(&mut Columns::of(row)),
    )?;
    let changed = rewind_session::decide(session, rewind, first_cut.as_ref(), now)?;
    if first_cut.is_some() {
        let behind = signed(rewind.to.saturating_add(1));
        index::remove(db, number, behind, i64::MAX)?;
        for change in [
            RESTORE,
            "UPDATE message SET rewound = 1 WHERE session = ?1 AND seq > ?2 AND rewound = 0",
        ] {
            db.execute(change, params![number, signed(rewind.to)])?;
        }
    }
    sessions::save(db, number, &changed, (&rewind.request, "null"), now)?;
    Ok(changed)
}

/// Begins a session that goes on from another, or finds the one that the same request began.
pub(super) fn fork(db: Db<'_>, fork: Fork, now: Timestamp) -> Result<Session, Failure> {
    let request = fork.request.clone();
    if let Some(id) = answers::first(db, CREATION, &request, now)? {
        return sessions::created_before(db, &fork.team, &id);
    }
    let parent = sessions::load(db, &fork.team, &fork.parent)?;
    let parent = parent.ok_or_else(|| sessions::missing(&fork.team, &fork.parent))?;
    check_free(db, &fork.team, &fork.id)?;
    let whole = MessageRange::in_context(0, i64::MAX.unsigned_abs(), u32::MAX);
    let context = messages::list(db, parent.number, &whole)?;
    let (session, taken) = fork_session::decide(&parent.session, context, fork, now)?;
    let number = sessions::insert(db, &session)?;
    sessions::add_exposures(db, number, &session.exposures, 0, now)?;
    add_messages(db, number, &taken)?;
    answers::keep(db, CREATION, &request, &json(&session.id)?, now)?;
    Ok(session)
}

/// Adds messages, which wait for the index from then on.
pub(super) fn add_messages(db: Db<'_>, session: i64, added: &[Message]) -> Result<(), Failure> {
    let last_doc: i64 = db.value(index::LAST_DOC, ())?;
    for (doc, message) in (last_doc + 1..).zip(added) {
        messages::insert(db, session, doc, message)?;
    }
    Ok(())
}

/// Puts a summary in the place of messages, or finds the first answer to the same request.
pub(super) fn compact(db: Db<'_>, compaction: Compaction, now: Timestamp) -> Result<Appended, Failure> {
    let (team, id, request) = (
        compaction.team.clone(),
        compaction.session.clone(),
        compaction.request.clone(),
    );
    let Some(Numbered { number, session }) = sessions::load(db, &team, &id)? else {
        return Err(gone(db, &team, &id)?);
    };
    if let Some(answer) = answers::first(db, number, &request, now)? {
        let first: Option<Appended> = serde_json::from_str(&answer)?;
        return Ok(first.ok_or_else(|| Error::request_id_reused(&request.id))?);
    }
    let range = MessageRange::in_context(compaction.range.from, compaction.range.to, u32::MAX);
    let replaced = messages::list(db, number, &range)?;
    let compacted = mark_compacted::decide(session, &replaced, compaction, now)?;
    let numbers: Vec<u64> = replaced.iter().map(|message| message.seq).collect();
    db.execute(
        "UPDATE message SET compacted = 1 WHERE session = ? AND seq IN (SELECT value FROM json_each(?))",
        params![number, json(&numbers)?],
    )?;
    add_messages(db, number, std::slice::from_ref(&compacted.summary))?;
    let session = &compacted.session;
    if compacted.prompt {
        sessions::save_prompt(db, number, session)?;
        sessions::replace_exposures(db, number, &session.exposures, now)?;
    }
    let answer = json(&compacted.appended)?;
    sessions::save(db, number, session, (&request, &answer), now)?;
    Ok(compacted.appended)
}

/// Takes a session in as it is, unless it is there.
pub(super) fn import(db: Db<'_>, whole: WholeSession) -> Result<bool, Failure> {
    let WholeSession {
        session,
        turns,
        messages,
    } = whole;
    if let Some(known) = sessions::summary(db, &session.team, &session.id)? {
        if known.session.user == session.user {
            return Ok(false);
        }
        return Err(Error::SessionExists {
            session: session.name(),
        }
        .into());
    }
    db.execute(
        "DELETE FROM deleted_session WHERE team = ? AND id = ?",
        params![session.team.as_str(), session.id.as_str()],
    )?;
    let number = sessions::insert(db, &session)?;
    sessions::add_exposures(db, number, &session.exposures, 0, session.created)?;
    for turn in &turns {
        messages::save_turn(db, number, turn)?;
    }
    add_messages(db, number, &messages)?;
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
        db.execute(change, params![number, json(&numbers)?])?;
    }
    Ok(true)
}

/// All turns of a session, by their first messages.
pub(super) fn turns(db: Db<'_>, team: &TeamId, session: &SessionId) -> Result<Vec<Turn>, Failure> {
    db.all(
        concat!(
            "SELECT ",
            turn_columns!(),
            " FROM turn JOIN session s ON s.number = turn.session WHERE s.team = ? AND s.id = ?
              ORDER BY turn.first_seq, turn.id"
        ),
        params![team.as_str(), session.as_str()],
        |row| rows::turn(&mut Columns::of(row)),
    )
}

/// Turns of one team that wait for a client which did not come in time; `None`: no session waits for its client at all.
pub(super) fn expired(db: Db<'_>, now: Timestamp) -> Result<Option<Vec<ExpiredTurn>>, Failure> {
    let waiting = db.all(
        concat!("SELECT ", session_columns!(), " FROM session WHERE open_calls <> '[]'"),
        (),
        |row| Ok::<_, Failure>(Numbered::from_row(row)?.session),
    )?;
    let expired = waiting.iter().filter_map(|session| session.expired_turn(now));
    Ok((!waiting.is_empty()).then(|| expired.collect()))
}
