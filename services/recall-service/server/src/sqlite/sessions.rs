//! Rows of sessions, with their exposures and leases.

use sqlx::SqliteConnection;
use steward_base::Timestamp;
use steward_base::names::{SessionId, TeamId, session_name};
use steward_recall_core::Error;
use steward_recall_core::create_session::NewSession;
use steward_recall_core::get_session::{MessagePage, SessionRead, SessionView};
use steward_recall_core::lease::Lease;
use steward_recall_core::session::{Exposure, Session};
use steward_recall_core::store::SessionList;
use steward_recall_core::update_session::{self, SessionUpdate};

use super::answers::{self, Scope};
use super::failure::Failure;
use super::messages;
use super::rows::{self, json, json_names, signed};

/// Selects sessions without their prompts and tool lists, which are most of a row and of no use to lists.
macro_rules! session_summaries {
    ($which:literal) => {
        concat!(
            "SELECT team, id, user, source, title, parent, lineage_reason, root, project, model, '' AS system_prompt,
                 '' AS tools_json, '[]' AS client_tools, 0 AS stable_prompt_bytes, x'' AS setup, skip_review, skip_memory, turns_since_memory,
                 iterations_since_skill, user_turns, prefix_tools_sha256, prefix_system_sha256, prefix_messages_bytes,
                 prefix_messages_sha256, planned_breaks, unplanned_breaks, requests, last_break_reason, usage_input,
                 usage_cached_input, usage_cache_write, usage_output, last_seq, open_calls, lowest_integrity, open_turn,
                 lease_fence, lease_turn, lease_holder, lease_expires, created, last_active, revision
             FROM session ",
            $which
        )
    };
}
pub(super) use session_summaries;

/// Creates a session, or finds the one that the same request created.
pub(super) async fn create(
    connection: &mut SqliteConnection,
    new: NewSession,
    now: Timestamp,
) -> Result<Session, Failure> {
    let (team, request) = (new.team.clone(), new.request.clone());
    if let Some(id) = answers::first(connection, &team, &Scope::Creation, &request, now).await? {
        let id: SessionId = serde_json::from_str(&id)?;
        return load(connection, &team, &id).await?.ok_or_else(|| missing(&team, &id));
    }
    if load(connection, &team, &new.id).await?.is_some() {
        return Err(Error::SessionExists {
            session: session_name(&team, &new.id),
        }
        .into());
    }
    let root = match &new.lineage {
        Some(lineage) => {
            let parent = load(connection, &team, &lineage.parent).await?;
            Some(parent.ok_or_else(|| missing(&team, &lineage.parent))?.root)
        }
        None => None,
    };
    let session = new.into_session(root, now);
    insert(connection, &session).await?;
    add_exposures(connection, &session, &session.exposures, 0, now).await?;
    answers::keep(connection, &team, &Scope::Creation, &request, &json(&session.id)?, now).await?;
    Ok(session)
}

pub(super) fn missing(team: &TeamId, session: &SessionId) -> Failure {
    Error::SessionNotFound {
        session: session_name(team, session),
    }
    .into()
}

/// A session with its exposures.
pub(super) async fn load(
    connection: &mut SqliteConnection,
    team: &TeamId,
    session: &SessionId,
) -> Result<Option<Session>, Failure> {
    let row = sqlx::query("SELECT * FROM session WHERE team = ? AND id = ?")
        .bind(team.as_str())
        .bind(session.as_str())
        .fetch_optional(&mut *connection)
        .await?;
    let Some(row) = row else { return Ok(None) };
    let mut found = rows::session(&row)?;
    let exposures = sqlx::query("SELECT * FROM exposure WHERE team = ? AND session = ? ORDER BY number")
        .bind(team.as_str())
        .bind(session.as_str())
        .fetch_all(connection)
        .await?;
    found.exposures = exposures.iter().map(rows::exposure).collect::<Result<_, _>>()?;
    Ok(Some(found))
}

/// A page of a user's sessions.
pub(super) async fn list(connection: &mut SqliteConnection, list: &SessionList) -> Result<Vec<Session>, Failure> {
    let (at, id) = match &list.after {
        Some((at, id)) => (at.as_micros(), id.as_str()),
        None => (i64::MAX, ""),
    };
    let rows = sqlx::query(session_summaries!(
        "WHERE team = ? AND user = ? AND (last_active, id) < (?, ?)
               AND source IN (SELECT value FROM json_each(?))
         ORDER BY last_active DESC, id DESC LIMIT ?"
    ))
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
pub(super) async fn save_lease(connection: &mut SqliteConnection, session: &Session) -> Result<(), Failure> {
    let Lease { fence, holding } = &session.lease;
    sqlx::query(
        "UPDATE session SET lease_fence = ?, lease_turn = ?, lease_holder = ?, lease_expires = ?
         WHERE team = ? AND id = ?",
    )
    .bind(signed(*fence))
    .bind(holding.as_ref().map(|holding| holding.turn.as_str()))
    .bind(holding.as_ref().map(|holding| holding.holder.as_str()))
    .bind(holding.as_ref().map(|holding| holding.expires.as_micros()))
    .bind(session.team.as_str())
    .bind(session.id.as_str())
    .execute(connection)
    .await?;
    Ok(())
}

/// Writes what an append may change; what is frozen is not among it.
pub(super) async fn save_state(connection: &mut SqliteConnection, session: &Session) -> Result<(), Failure> {
    sqlx::query(
        "UPDATE session SET title = ?, turns_since_memory = ?, iterations_since_skill = ?, user_turns = ?,
             prefix_tools_sha256 = ?, prefix_system_sha256 = ?, prefix_messages_bytes = ?, prefix_messages_sha256 = ?,
             planned_breaks = ?, unplanned_breaks = ?, requests = ?, last_break_reason = ?, usage_input = ?,
             usage_cached_input = ?, usage_cache_write = ?, usage_output = ?, last_seq = ?, open_calls = ?,
             lowest_integrity = ?, open_turn = ?, last_active = ?, revision = ?
         WHERE team = ? AND id = ?",
    )
    .bind(&session.title)
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
    .bind(session.last_active.as_micros())
    .bind(signed(session.revision))
    .bind(session.team.as_str())
    .bind(session.id.as_str())
    .execute(connection)
    .await?;
    Ok(())
}

/// Writes what requests begin with; it changes between turns only.
async fn save_frozen(connection: &mut SqliteConnection, session: &Session) -> Result<(), Failure> {
    let frozen = &session.frozen;
    sqlx::query(
        "UPDATE session SET model = ?, system_prompt = ?, tools_json = ?, client_tools = ?, stable_prompt_bytes = ?,
             setup = ?
         WHERE team = ? AND id = ?",
    )
    .bind(&frozen.model)
    .bind(&frozen.system_prompt)
    .bind(&frozen.tools_json)
    .bind(json(&frozen.client_tools)?)
    .bind(frozen.stable_prompt_bytes)
    .bind(frozen.setup.as_slice())
    .bind(session.team.as_str())
    .bind(session.id.as_str())
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
    let scope = Scope::Session(&id);
    let found = load(connection, &team, &id).await?.ok_or_else(|| missing(&team, &id))?;
    if answers::first(connection, &team, &scope, &request, now)
        .await?
        .is_some()
    {
        return Ok(found);
    }
    let breaks = update.changes.break_the_prefix();
    let shown = update.changes.exposures.is_some();
    let changed = update_session::decide(found, update, now)?;
    save_state(connection, &changed).await?;
    if breaks {
        save_frozen(connection, &changed).await?;
    }
    if shown {
        sqlx::query("DELETE FROM exposure WHERE team = ? AND session = ?")
            .bind(team.as_str())
            .bind(id.as_str())
            .execute(&mut *connection)
            .await?;
        add_exposures(connection, &changed, &changed.exposures, 0, now).await?;
    }
    answers::keep(connection, &team, &scope, &request, "null", now).await?;
    Ok(changed)
}

/// A session with one of its turns and a page of its messages.
pub(super) async fn view(
    connection: &mut SqliteConnection,
    team: &TeamId,
    session: &SessionId,
    read: &SessionRead,
) -> Result<Option<SessionView>, Failure> {
    let Some(found) = load(connection, team, session).await? else {
        return Ok(None);
    };
    let turn = match read.turn.as_str() {
        "" => None,
        turn => messages::load_turn(connection, team, session, turn).await?,
    };
    let page = match &read.messages {
        Some(range) => messages::page(connection, team, session, range).await?,
        None => MessagePage::default(),
    };
    Ok(Some(SessionView {
        session: found,
        turn,
        messages: page,
    }))
}

/// Adds exposures, numbered after the `known` ones.
pub(super) async fn add_exposures(
    connection: &mut SqliteConnection,
    session: &Session,
    exposures: &[Exposure],
    known: usize,
    now: Timestamp,
) -> Result<(), Failure> {
    for (index, exposure) in exposures.iter().enumerate() {
        sqlx::query("INSERT INTO exposure VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)")
            .bind(session.team.as_str())
            .bind(session.id.as_str())
            .bind(signed((known + index) as u64))
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

async fn insert(connection: &mut SqliteConnection, session: &Session) -> Result<(), Failure> {
    sqlx::query(
        "INSERT INTO session (team, id, user, source, title, parent, lineage_reason, root, project, model,
             system_prompt, tools_json, client_tools, skip_review, skip_memory, turns_since_memory,
             iterations_since_skill, user_turns, prefix_tools_sha256, prefix_system_sha256, prefix_messages_bytes,
             prefix_messages_sha256, planned_breaks, unplanned_breaks, requests, last_break_reason, last_seq, open_calls,
             lowest_integrity, lease_fence, created, last_active, revision, stable_prompt_bytes, setup)
         VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, '', '', 0, '', 0, 0, 0, '', 0, '[]', ?, 0, ?, ?, ?,
                 ?, ?)",
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
    .bind(&session.frozen.system_prompt)
    .bind(&session.frozen.tools_json)
    .bind(json(&session.frozen.client_tools)?)
    .bind(session.skip_review)
    .bind(session.skip_memory)
    .bind(session.counters.turns_since_memory)
    .bind(session.counters.iterations_since_skill)
    .bind(session.counters.user_turns)
    .bind(session.lowest_integrity.level())
    .bind(session.created.as_micros())
    .bind(session.last_active.as_micros())
    .bind(signed(session.revision))
    .bind(session.frozen.stable_prompt_bytes)
    .bind(session.frozen.setup.as_slice())
    .execute(connection)
    .await?;
    Ok(())
}
