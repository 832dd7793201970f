//! Rows of sessions, with what their requests begin with, their exposures and leases.

use sqlx::SqliteConnection;
use sqlx::sqlite::SqliteRow;
use steward_base::Timestamp;
use steward_base::names::{SessionId, TeamId, session_name};
use steward_recall_core::Error;
use steward_recall_core::append_messages::RequestKey;
use steward_recall_core::create_session::NewSession;
use steward_recall_core::lease::Lease;
use steward_recall_core::session::{Exposure, Session};
use steward_recall_core::store::SessionList;
use steward_recall_core::update_session::{self, SessionUpdate};
use steward_store::Batch;

use super::answers::{self, CREATION};
use super::failure::Failure;
use super::lifecycle;
use super::rows::{self, json, json_names, signed};

/// A session and its number in this file.
#[derive(Debug)]
pub(super) struct Numbered {
    pub(super) number: i64,
    pub(super) session: Session,
}

impl Numbered {
    pub(super) fn from_row(row: &SqliteRow) -> Result<Self, Failure> {
        Ok(Self {
            number: rows::session_number(row)?,
            session: rows::session(row)?,
        })
    }
}

/// Creates a session, or finds the one that the same request created.
pub(super) async fn create(
    connection: &mut SqliteConnection,
    new: NewSession,
    now: Timestamp,
) -> Result<Session, Failure> {
    let (team, request) = (new.team.clone(), new.request.clone());
    if let Some(id) = answers::first(connection, CREATION, &request, now).await? {
        return created_before(connection, &team, &id).await;
    }
    lifecycle::check_free(connection, &team, &new.id).await?;
    let root = match &new.lineage {
        Some(lineage) => {
            let parent = summary(connection, &team, &lineage.parent).await?;
            Some(parent.ok_or_else(|| missing(&team, &lineage.parent))?.session.root)
        }
        None => None,
    };
    let session = new.into_session(root, now);
    let number = insert(connection, &session).await?;
    add_exposures(connection, number, &session.exposures, 0, now).await?;
    answers::keep(connection, CREATION, &request, &json(&session.id)?, now).await?;
    Ok(session)
}

/// The session that the first answer to a creation named.
pub(super) async fn created_before(
    connection: &mut SqliteConnection,
    team: &TeamId,
    id: &str,
) -> Result<Session, Failure> {
    let id: SessionId = serde_json::from_str(id)?;
    match load(connection, team, &id).await? {
        Some(session) => Ok(session),
        None => Err(lifecycle::gone(connection, team, &id).await?),
    }
}

pub(super) fn missing(team: &TeamId, session: &SessionId) -> Failure {
    Error::SessionNotFound {
        session: session_name(team, session),
    }
    .into()
}

/// A session with everything that belongs to it.
pub(super) async fn load(
    connection: &mut SqliteConnection,
    team: &TeamId,
    session: &SessionId,
) -> Result<Option<Session>, Failure> {
    Ok(load_numbered(connection, team, session)
        .await?
        .map(|found| found.session))
}

pub(super) async fn load_numbered(
    connection: &mut SqliteConnection,
    team: &TeamId,
    session: &SessionId,
) -> Result<Option<Numbered>, Failure> {
    let row = sqlx::query(
        "SELECT s.*, p.* FROM session s JOIN session_prompt p ON p.session = s.number WHERE s.team = ? AND s.id = ?",
    )
    .bind(team.as_str())
    .bind(session.as_str())
    .fetch_optional(&mut *connection)
    .await?;
    let Some(row) = row else { return Ok(None) };
    let mut found = Numbered::from_row(&row)?;
    rows::prompt(&row, &mut found.session.frozen)?;
    let exposures = sqlx::query("SELECT * FROM exposure WHERE session = ? ORDER BY number")
        .bind(found.number)
        .fetch_all(connection)
        .await?;
    found.session.exposures = exposures.iter().map(rows::exposure).collect::<Result<_, _>>()?;
    Ok(Some(found))
}

/// A session without what its requests begin with (the model's name excepted) and without its exposures.
pub(super) async fn summary(
    connection: &mut SqliteConnection,
    team: &TeamId,
    session: &SessionId,
) -> Result<Option<Numbered>, Failure> {
    let row = sqlx::query("SELECT * FROM session WHERE team = ? AND id = ?")
        .bind(team.as_str())
        .bind(session.as_str())
        .fetch_optional(connection)
        .await?;
    row.as_ref().map(Numbered::from_row).transpose()
}

/// A page of a user's sessions.
pub(super) async fn list(connection: &mut SqliteConnection, list: &SessionList) -> Result<Vec<Session>, Failure> {
    let (at, id) = match &list.after {
        Some((at, id)) => (at.as_micros(), id.as_str()),
        None => (i64::MAX, ""),
    };
    let rows = sqlx::query(
        "SELECT * FROM session
         WHERE team = ? AND user = ? AND (last_active, id) < (?, ?)
               AND source IN (SELECT value FROM json_each(?))
         ORDER BY last_active DESC, id DESC LIMIT ?",
    )
    .bind(list.team.as_str())
    .bind(list.user.as_str())
    .bind(at)
    .bind(id)
    .bind(json_names(list.sources.iter().map(|source| source.as_str())))
    .bind(i64::from(list.limit))
    .fetch_all(connection)
    .await?;
    rows.iter().map(rows::session).collect()
}

/// Writes the lease alone.
pub(super) async fn save_lease(connection: &mut SqliteConnection, number: i64, lease: &Lease) -> Result<(), Failure> {
    let Lease { fence, holding } = lease;
    sqlx::query(
        "UPDATE session SET lease_fence = ?, lease_turn = ?, lease_holder = ?, lease_expires = ? WHERE number = ?",
    )
    .bind(signed(*fence))
    .bind(holding.as_ref().map(|holding| holding.turn.as_str()))
    .bind(holding.as_ref().map(|holding| holding.holder.as_str()))
    .bind(holding.as_ref().map(|holding| holding.expires.as_micros()))
    .bind(number)
    .execute(connection)
    .await?;
    Ok(())
}

/// Writes what an append or a change may touch, and the answer to it.
pub(super) async fn save(
    connection: &mut SqliteConnection,
    number: i64,
    session: &Session,
    answered: (&RequestKey, &str),
    now: Timestamp,
) -> Result<(), Failure> {
    let mut batch = Batch::default();
    save_with(&mut batch, number, session, answered, now)?;
    Ok(batch.run(connection).await?)
}

/// The same with what else is kept.
pub(super) fn save_with(
    batch: &mut Batch,
    number: i64,
    session: &Session,
    (request, answer): (&RequestKey, &str),
    now: Timestamp,
) -> Result<(), Failure> {
    let holding = session.lease.holding.as_ref();
    batch
        .statement(SAVE)
        .with(session.title.as_str())
        .with(session.counters.turns_since_memory)
        .with(session.counters.iterations_since_skill)
        .with(session.counters.user_turns)
        .with(session.prefix.tools_sha256.as_str())
        .with(session.prefix.system_sha256.as_str())
        .with(signed(session.prefix.messages_bytes))
        .with(session.prefix.messages_sha256.as_str())
        .with(session.prefix.planned_breaks)
        .with(session.prefix.unplanned_breaks)
        .with(session.prefix.requests)
        .with(session.prefix.last_break_reason.as_str())
        .with(session.usage.input.map(signed))
        .with(session.usage.cached_input.map(signed))
        .with(session.usage.cache_write.map(signed))
        .with(session.usage.output.map(signed))
        .with(signed(session.last_seq))
        .with(json(&session.open_calls)?)
        .with(session.lowest_integrity.level())
        .with(session.open_turn.as_deref())
        .with(session.last_active.as_micros())
        .with(signed(session.revision))
        .with(signed(session.lease.fence))
        .with(holding.map(|holding| holding.turn.as_str()))
        .with(holding.map(|holding| holding.holder.as_str()))
        .with(holding.map(|holding| holding.expires.as_micros()))
        .with(session.frozen.model.as_str())
        .with(number);
    answers::keep_with(batch, number, request, answer, now);
    Ok(())
}

const SAVE: &str = "UPDATE session SET title = ?, turns_since_memory = ?, iterations_since_skill = ?, user_turns = ?,
         prefix_tools_sha256 = ?, prefix_system_sha256 = ?, prefix_messages_bytes = ?, prefix_messages_sha256 = ?,
         planned_breaks = ?, unplanned_breaks = ?, requests = ?, last_break_reason = ?, usage_input = ?,
         usage_cached_input = ?, usage_cache_write = ?, usage_output = ?, last_seq = ?, open_calls = ?,
         lowest_integrity = ?, open_turn = ?, last_active = ?, revision = ?, lease_fence = ?, lease_turn = ?,
         lease_holder = ?, lease_expires = ?, model = ?
     WHERE number = ?";

/// Writes what requests begin with; it changes between turns only.
pub(super) async fn save_prompt(
    connection: &mut SqliteConnection,
    number: i64,
    session: &Session,
) -> Result<(), Failure> {
    let frozen = &session.frozen;
    sqlx::query(
        "INSERT OR REPLACE INTO session_prompt
             (session, client_tools, stable_prompt_bytes, system_prompt, tools_json, setup)
         VALUES (?, ?, ?, ?, ?, ?)",
    )
    .bind(number)
    .bind(json(&frozen.client_tools)?)
    .bind(frozen.stable_prompt_bytes)
    .bind(&frozen.system_prompt)
    .bind(&frozen.tools_json)
    .bind(frozen.setup.as_slice())
    .execute(connection)
    .await?;
    Ok(())
}

/// Changes a session between two turns, or finds it as the same request changed it.
pub(super) async fn update(
    connection: &mut SqliteConnection,
    update: SessionUpdate,
    now: Timestamp,
) -> Result<Session, Failure> {
    let (team, id, request) = (update.team.clone(), update.session.clone(), update.request.clone());
    let found = load_numbered(connection, &team, &id).await?;
    let Numbered { number, session } = found.ok_or_else(|| missing(&team, &id))?;
    if answers::first(connection, number, &request, now).await?.is_some() {
        return Ok(session);
    }
    let breaks = update.changes.break_the_prefix();
    let shown = update.changes.exposures.is_some();
    let changed = update_session::decide(session, update, now)?;
    if breaks {
        save_prompt(connection, number, &changed).await?;
    }
    if shown {
        replace_exposures(connection, number, &changed.exposures, now).await?;
    }
    save(connection, number, &changed, (&request, "null"), now).await?;
    Ok(changed)
}

/// Exposures instead of those that were recorded.
pub(super) async fn replace_exposures(
    connection: &mut SqliteConnection,
    session: i64,
    exposures: &[Exposure],
    now: Timestamp,
) -> Result<(), Failure> {
    sqlx::query("DELETE FROM exposure WHERE session = ?")
        .bind(session)
        .execute(&mut *connection)
        .await?;
    add_exposures(connection, session, exposures, 0, now).await
}

/// Adds exposures, numbered after the `known` ones.
pub(super) async fn add_exposures(
    connection: &mut SqliteConnection,
    session: i64,
    exposures: &[Exposure],
    known: i64,
    now: Timestamp,
) -> Result<(), Failure> {
    for (number, exposure) in (known..).zip(exposures) {
        sqlx::query("INSERT INTO exposure VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)")
            .bind(session)
            .bind(number)
            .bind(&exposure.artifact)
            .bind(&exposure.revision)
            .bind(&exposure.stage)
            .bind(&exposure.assignment_unit)
            .bind(&exposure.arm)
            .bind(exposure.propensity)
            .bind(now.as_micros())
            .execute(&mut *connection)
            .await?;
    }
    Ok(())
}

/// Gives the new row's number.
pub(super) async fn insert(connection: &mut SqliteConnection, session: &Session) -> Result<i64, Failure> {
    let number: i64 = sqlx::query_scalar(
        "INSERT INTO session (team, id, user, source, title, parent, lineage_reason, root, project, model, skip_review,
             skip_memory, turns_since_memory, iterations_since_skill, user_turns, prefix_tools_sha256, prefix_system_sha256,
             prefix_messages_bytes, prefix_messages_sha256, planned_breaks, unplanned_breaks, requests, last_break_reason,
             usage_input, usage_cached_input, usage_cache_write, usage_output, last_seq, open_calls, lowest_integrity,
             open_turn, lease_fence, created, last_active, revision)
         VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, 0, ?, ?, ?)
         RETURNING number",
    )
    .bind(session.team.as_str())
    .bind(session.id.as_str())
    .bind(session.user.as_str())
    .bind(session.source.as_str())
    .bind(&session.title)
    .bind(session.lineage.as_ref().map(|lineage| lineage.parent.as_str()))
    .bind(session.lineage.as_ref().map(|lineage| lineage.reason.as_str()))
    .bind(session.root.as_str())
    .bind(&session.project)
    .bind(&session.frozen.model)
    .bind(session.skip_review)
    .bind(session.skip_memory)
    .bind(session.counters.turns_since_memory)
    .bind(session.counters.iterations_since_skill)
    .bind(session.counters.user_turns)
    .bind(&session.prefix.tools_sha256)
    .bind(&session.prefix.system_sha256)
    .bind(signed(session.prefix.messages_bytes))
    .bind(&session.prefix.messages_sha256)
    .bind(session.prefix.planned_breaks)
    .bind(session.prefix.unplanned_breaks)
    .bind(session.prefix.requests)
    .bind(&session.prefix.last_break_reason)
    .bind(session.usage.input.map(signed))
    .bind(session.usage.cached_input.map(signed))
    .bind(session.usage.cache_write.map(signed))
    .bind(session.usage.output.map(signed))
    .bind(signed(session.last_seq))
    .bind(json(&session.open_calls)?)
    .bind(session.lowest_integrity.level())
    .bind(&session.open_turn)
    .bind(session.created.as_micros())
    .bind(session.last_active.as_micros())
    .bind(signed(session.revision))
    .fetch_one(&mut *connection)
    .await?;
    save_prompt(connection, number, session).await?;
    Ok(number)
}
