//! Rows of sessions, with what their requests begin with, their exposures and leases.

use steward_base::Timestamp;
use steward_base::names::{SessionId, TeamId, session_name};
use steward_recall_core::Error;
use steward_recall_core::append_messages::RequestKey;
use steward_recall_core::create_session::NewSession;
use steward_recall_core::lease::Lease;
use steward_recall_core::session::{Exposure, Session};
use steward_recall_core::store::SessionList;
use steward_recall_core::update_session::{self, SessionUpdate};
use steward_store::{Db, Row, params};

use super::answers::{self, CREATION};
use super::failure::Failure;
use super::lifecycle;
use super::rows::{self, Columns, json, json_names, prompt_columns, session_columns, signed};

/// A session and its number in this file.
#[derive(Debug)]
pub(super) struct Numbered {
    pub(super) number: i64,
    pub(super) session: Session,
}

impl Numbered {
    /// From the columns of a session, the number first.
    pub(super) fn read(columns: &mut Columns<'_, '_>) -> Result<Self, Failure> {
        Ok(Self {
            number: columns.take()?,
            session: rows::session(columns)?,
        })
    }

    /// From a row that begins with those.
    pub(super) fn from_row(row: &Row<'_>) -> Result<Self, Failure> {
        Self::read(&mut Columns::of(row))
    }
}

/// Creates a session, or finds the one that the same request created.
pub(super) fn create(db: Db<'_>, new: NewSession, now: Timestamp) -> Result<Session, Failure> {
    let (team, request) = (new.team.clone(), new.request.clone());
    if let Some(id) = answers::first(db, CREATION, &request, now)? {
        return created_before(db, &team, &id);
    }
    lifecycle::check_free(db, &team, &new.id)?;
    let root = match &new.lineage {
        Some(lineage) => {
            let parent = summary(db, &team, &lineage.parent)?;
            Some(parent.ok_or_else(|| missing(&team, &lineage.parent))?.session.root)
        }
        None => None,
    };
    let session = new.into_session(root, now);
    let number = insert(db, &session)?;
    add_exposures(db, number, &session.exposures, 0, now)?;
    answers::keep(db, CREATION, &request, &json(&session.id)?, now)?;
    Ok(session)
}

/// The session that the first answer to a creation named.
pub(super) fn created_before(db: Db<'_>, team: &TeamId, id: &str) -> Result<Session, Failure> {
    let id: SessionId = serde_json::from_str(id)?;
    match load(db, team, &id)? {
        Some(found) => Ok(found.session),
        None => Err(lifecycle::gone(db, team, &id)?),
    }
}

pub(super) fn missing(team: &TeamId, session: &SessionId) -> Failure {
    Error::SessionNotFound {
        session: session_name(team, session),
    }
    .into()
}

/// A session with everything that belongs to it.
pub(super) fn load(db: Db<'_>, team: &TeamId, session: &SessionId) -> Result<Option<Numbered>, Failure> {
    let found = db.first(
        concat!(
            "SELECT ",
            session_columns!(),
            ", ",
            prompt_columns!(),
            " FROM session JOIN session_prompt ON session_prompt.session = session.number
              WHERE session.team = ? AND session.id = ?"
        ),
        params![team.as_str(), session.as_str()],
        |row| {
            let mut columns = Columns::of(row);
            let mut found = Numbered::read(&mut columns)?;
            rows::prompt(&mut columns, &mut found.session.frozen)?;
            Ok::<_, Failure>(found)
        },
    )?;
    let Some(mut found) = found else { return Ok(None) };
    found.session.exposures = db.all(
        "SELECT artifact, revision, stage, assignment_unit, arm, propensity FROM exposure WHERE session = ?
         ORDER BY number",
        [found.number],
        rows::exposure,
    )?;
    Ok(Some(found))
}

/// A session without what its requests begin with (the model's name excepted) and without its exposures.
pub(super) fn summary(db: Db<'_>, team: &TeamId, session: &SessionId) -> Result<Option<Numbered>, Failure> {
    db.first(
        concat!("SELECT ", session_columns!(), " FROM session WHERE team = ? AND id = ?"),
        params![team.as_str(), session.as_str()],
        Numbered::from_row,
    )
}

/// The number of a session alone.
pub(super) fn number_of(db: Db<'_>, team: &TeamId, session: &SessionId) -> Result<Option<i64>, Failure> {
    Ok(db.optional(
        "SELECT number FROM session WHERE team = ? AND id = ?",
        params![team.as_str(), session.as_str()],
    )?)
}

/// A page of a user's sessions.
pub(super) fn list(db: Db<'_>, list: &SessionList) -> Result<Vec<Session>, Failure> {
    let (at, id) = match &list.after {
        Some((at, id)) => (at.as_micros(), id.as_str()),
        None => (i64::MAX, ""),
    };
    db.all(
        concat!(
            "SELECT ",
            session_columns!(),
            " FROM session
         WHERE team = ? AND user = ? AND (last_active, id) < (?, ?)
               AND source IN (SELECT value FROM json_each(?))
         ORDER BY last_active DESC, id DESC LIMIT ?"
        ),
        params![
            list.team.as_str(),
            list.user.as_str(),
            at,
            id,
            json_names(list.sources.iter().map(|source| source.as_str())),
            list.limit,
        ],
        |row| Ok(Numbered::from_row(row)?.session),
    )
}

/// Writes the lease alone.
pub(super) fn save_lease(db: Db<'_>, number: i64, lease: &Lease) -> Result<(), Failure> {
    let Lease { fence, holding } = lease;
    db.execute(
        "UPDATE session SET lease_fence = ?, lease_turn = ?, lease_holder = ?, lease_expires = ? WHERE number = ?",
        params![
            signed(*fence),
            holding.as_ref().map(|holding| &holding.turn),
            holding.as_ref().map(|holding| &holding.holder),
            holding.as_ref().map(|holding| holding.expires.as_micros()),
            number,
        ],
    )?;
    Ok(())
}

const SAVE: &str = "UPDATE session SET title = ?, turns_since_memory = ?, iterations_since_skill = ?, user_turns = ?,
         prefix_tools_sha256 = ?, prefix_system_sha256 = ?, prefix_messages_bytes = ?, prefix_messages_sha256 = ?,
         planned_breaks = ?, unplanned_breaks = ?, requests = ?, last_break_reason = ?, usage_input = ?,
         usage_cached_input = ?, usage_cache_write = ?, usage_output = ?, last_seq = ?, open_calls = ?,
         lowest_integrity = ?, open_turn = ?, last_active = ?, revision = ?, lease_fence = ?, lease_turn = ?,
         lease_holder = ?, lease_expires = ?, model = ?
     WHERE number = ?";

/// Writes what an append or a change may touch, and the answer to it.
pub(super) fn save(
    db: Db<'_>,
    number: i64,
    session: &Session,
    (request, answer): (&RequestKey, &str),
    now: Timestamp,
) -> Result<(), Failure> {
    let holding = session.lease.holding.as_ref();
    db.execute(
        SAVE,
        params![
            session.title,
            session.counters.turns_since_memory,
            session.counters.iterations_since_skill,
            session.counters.user_turns,
            session.prefix.tools_sha256,
            session.prefix.system_sha256,
            signed(session.prefix.messages_bytes),
            session.prefix.messages_sha256,
            session.prefix.planned_breaks,
            session.prefix.unplanned_breaks,
            session.prefix.requests,
            session.prefix.last_break_reason,
            session.usage.input.map(signed),
            session.usage.cached_input.map(signed),
            session.usage.cache_write.map(signed),
            session.usage.output.map(signed),
            signed(session.last_seq),
            json(&session.open_calls)?,
            session.lowest_integrity.level(),
            session.open_turn,
            session.last_active.as_micros(),
            signed(session.revision),
            signed(session.lease.fence),
            holding.map(|holding| &holding.turn),
            holding.map(|holding| &holding.holder),
            holding.map(|holding| holding.expires.as_micros()),
            session.frozen.model,
            number,
        ],
    )?;
    answers::keep(db, number, request, answer, now)
}

/// Writes what requests begin with; it changes between turns only.
pub(super) fn save_prompt(db: Db<'_>, number: i64, session: &Session) -> Result<(), Failure> {
    let frozen = &session.frozen;
    db.execute(
        "INSERT OR REPLACE INTO session_prompt
             (session, client_tools, stable_prompt_bytes, system_prompt, tools_json, setup)
         VALUES (?, ?, ?, ?, ?, ?)",
        params![
            number,
            json(&frozen.client_tools)?,
            frozen.stable_prompt_bytes,
            frozen.system_prompt,
            frozen.tools_json,
            frozen.setup,
        ],
    )?;
    Ok(())
}

/// Changes a session between two turns, or finds it as the same request changed it.
pub(super) fn update(db: Db<'_>, update: SessionUpdate, now: Timestamp) -> Result<Session, Failure> {
    let found = load(db, &update.team, &update.session)?;
    let Numbered { number, session } = found.ok_or_else(|| missing(&update.team, &update.session))?;
    let request = update.request.clone();
    if answers::first(db, number, &request, now)?.is_some() {
        return Ok(session);
    }
    let breaks = update.changes.break_the_prefix();
    let shown = update.changes.exposures.is_some();
    let changed = update_session::decide(session, update, now)?;
    if breaks {
        save_prompt(db, number, &changed)?;
    }
    if shown {
        replace_exposures(db, number, &changed.exposures, now)?;
    }
    save(db, number, &changed, (&request, "null"), now)?;
    Ok(changed)
}

/// Exposures instead of those that were recorded.
pub(super) fn replace_exposures(
    db: Db<'_>,
    session: i64,
    exposures: &[Exposure],
    now: Timestamp,
) -> Result<(), Failure> {
    db.execute("DELETE FROM exposure WHERE session = ?", [session])?;
    add_exposures(db, session, exposures, 0, now)
}

/// Adds exposures, numbered after the `known` ones.
pub(super) fn add_exposures(
    db: Db<'_>,
    session: i64,
    exposures: &[Exposure],
    known: i64,
    now: Timestamp,
) -> Result<(), Failure> {
    for (number, exposure) in (known..).zip(exposures) {
        db.execute(
            "INSERT INTO exposure (session, number, artifact, revision, stage, assignment_unit, arm, propensity, created)
             VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
            params![
                session,
                number,
                exposure.artifact,
                exposure.revision,
                exposure.stage,
                exposure.assignment_unit,
                exposure.arm,
                exposure.propensity,
                now.as_micros(),
            ],
        )?;
    }
    Ok(())
}

/// Gives the new row's number.
pub(super) fn insert(db: Db<'_>, session: &Session) -> Result<i64, Failure> {
    db.execute(
        "INSERT INTO session (team, id, user, source, title, parent, lineage_reason, root, project, model, skip_review,
             skip_memory, turns_since_memory, iterations_since_skill, user_turns, prefix_tools_sha256, prefix_system_sha256,
             prefix_messages_bytes, prefix_messages_sha256, planned_breaks, unplanned_breaks, requests, last_break_reason,
             usage_input, usage_cached_input, usage_cache_write, usage_output, last_seq, open_calls, lowest_integrity,
             open_turn, lease_fence, created, last_active, revision)
         VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, 0, ?, ?, ?)",
        params![
            session.team.as_str(),
            session.id.as_str(),
            session.user.as_str(),
            session.source.as_str(),
            session.title,
            session.lineage.as_ref().map(|lineage| lineage.parent.as_str()),
            session.lineage.as_ref().map(|lineage| lineage.reason.as_str()),
            session.root.as_str(),
            session.project,
            session.frozen.model,
            session.skip_review,
            session.skip_memory,
            session.counters.turns_since_memory,
            session.counters.iterations_since_skill,
            session.counters.user_turns,
            session.prefix.tools_sha256,
            session.prefix.system_sha256,
            signed(session.prefix.messages_bytes),
            session.prefix.messages_sha256,
            session.prefix.planned_breaks,
            session.prefix.unplanned_breaks,
            session.prefix.requests,
            session.prefix.last_break_reason,
            session.usage.input.map(signed),
            session.usage.cached_input.map(signed),
            session.usage.cache_write.map(signed),
            session.usage.output.map(signed),
            signed(session.last_seq),
            json(&session.open_calls)?,
            session.lowest_integrity.level(),
            session.open_turn,
            session.created.as_micros(),
            session.last_active.as_micros(),
            signed(session.revision),
        ],
    )?;
    let number = db.last_insert_rowid();
    save_prompt(db, number, session)?;
    Ok(number)
}
