//! Between columns and runs.

use sqlx::sqlite::SqliteRow;
use sqlx::{Row as _, SqliteConnection};
use steward_base::names::{TeamId, UserId};
use steward_base::{Timestamp, error_chain};
use steward_curator_core::Error;
use steward_curator_core::curation::{Kind, Result as RunResult, Run, RunId, RunState, TeamClock};
use steward_curator_core::review::Problem;

use super::Failure;

pub(super) async fn get(connection: &mut SqliteConnection, team: &TeamId, id: &str) -> Result<Option<Run>, Failure> {
    let row = sqlx::query("SELECT * FROM curation_run WHERE team = ? AND id = ?")
        .bind(team.as_str())
        .bind(id)
        .fetch_optional(connection)
        .await?;
    row.as_ref().map(read).transpose()
}

/// The same, with a damaged row as none: it must not keep all others waiting.
pub(super) async fn readable(
    connection: &mut SqliteConnection,
    team: &TeamId,
    id: &str,
) -> Result<Option<Run>, Failure> {
    match get(connection, team, id).await {
        Err(Failure(error @ Error::Unreadable { .. })) => {
            tracing::error!(%team, run = id, error = error_chain(&error), "the row of a run cannot be read");
            Ok(None)
        }
        other => other,
    }
}

pub(super) async fn requested(
    connection: &mut SqliteConnection,
    team: &TeamId,
    requester: &UserId,
    request_id: &str,
) -> Result<Option<Run>, Failure> {
    let row = sqlx::query("SELECT * FROM curation_run WHERE team = ? AND requester = ? AND request_id = ?")
        .bind(team.as_str())
        .bind(requester.as_str())
        .bind(request_id)
        .fetch_optional(connection)
        .await?;
    row.as_ref().map(read).transpose()
}

/// The run that has not ended.
pub(super) async fn open(connection: &mut SqliteConnection, team: &TeamId) -> Result<Option<Run>, Failure> {
    let row = sqlx::query("SELECT * FROM curation_run WHERE team = ? AND state IN ('queued', 'running')")
        .bind(team.as_str())
        .fetch_optional(connection)
        .await?;
    row.as_ref().map(read).transpose()
}

pub(super) async fn insert(
    connection: &mut SqliteConnection,
    run: &Run,
    request_id: Option<&str>,
) -> Result<(), Failure> {
    sqlx::query(
        "INSERT INTO curation_run (team, id, kind, requester, users, request_id, undoes, state, attempts, snapshot,
             changes, conflicts, summary, created_at, run_json, report)
         VALUES (?, ?, ?, ?, ?, ?, ?, ?, 0, '', 0, 0, '', ?, '', '')",
    )
    .bind(run.team.as_str())
    .bind(run.id.as_str())
    .bind(run.kind.as_str())
    .bind(run.requester.as_ref().map(UserId::as_str))
    .bind(serde_json::to_string(&run.users).map_err(unreadable)?)
    .bind(request_id)
    .bind(run.undoes.as_ref().map(RunId::as_str))
    .bind(run.state.as_str())
    .bind(run.created_at.as_micros())
    .execute(connection)
    .await?;
    Ok(())
}

/// Keeps what changes in a run.
pub(super) async fn update(connection: &mut SqliteConnection, run: &Run) -> Result<(), Failure> {
    sqlx::query(
        "UPDATE curation_run SET state = ?, problem_reason = ?, problem_message = ?, attempts = ?, snapshot = ?,
             changes = ?, conflicts = ?, summary = ?, ended_at = ?
         WHERE team = ? AND id = ?",
    )
    .bind(run.state.as_str())
    .bind(run.problem.as_ref().map(|problem| problem.reason.as_str()))
    .bind(run.problem.as_ref().map(|problem| problem.message.as_str()))
    .bind(run.attempts)
    .bind(&run.result.snapshot)
    .bind(run.result.changes)
    .bind(run.result.conflicts)
    .bind(&run.result.summary)
    .bind(run.ended_at.map(Timestamp::as_micros))
    .bind(run.team.as_str())
    .bind(run.id.as_str())
    .execute(connection)
    .await?;
    Ok(())
}

pub(super) async fn clock(connection: &mut SqliteConnection, team: &TeamId) -> Result<Option<TeamClock>, Failure> {
    let row = sqlx::query("SELECT * FROM curation_team WHERE team = ?")
        .bind(team.as_str())
        .fetch_optional(connection)
        .await?;
    let Some(row) = row else { return Ok(None) };
    let last_run: Option<String> = row.try_get("last_run")?;
    let last_run_at: Option<i64> = row.try_get("last_run_at")?;
    let last_run = last_run.as_deref().and_then(RunId::parse);
    Ok(Some(TeamClock {
        since: Timestamp::from_micros(row.try_get("since")?),
        paused: row.try_get("paused")?,
        last_run: last_run.zip(last_run_at.map(Timestamp::from_micros)),
        runs: u64::try_from(row.try_get::<i64, _>("runs")?).unwrap_or(0),
    }))
}

/// Lets the interval count from now.
pub(super) async fn count_from(
    connection: &mut SqliteConnection,
    team: &TeamId,
    now: Timestamp,
) -> Result<(), Failure> {
    sqlx::query(
        "INSERT INTO curation_team (team, since, paused, runs) VALUES (?, ?, 0, 0)
         ON CONFLICT (team) DO UPDATE SET since = excluded.since",
    )
    .bind(team.as_str())
    .bind(now.as_micros())
    .execute(connection)
    .await?;
    Ok(())
}

/// A curation ended well.
pub(super) async fn count_run(connection: &mut SqliteConnection, run: &Run, now: Timestamp) -> Result<(), Failure> {
    sqlx::query(
        "INSERT INTO curation_team (team, since, paused, last_run, last_run_at, runs) VALUES (?, ?, 0, ?, ?, 1)
         ON CONFLICT (team) DO UPDATE SET since = excluded.since, last_run = excluded.last_run,
             last_run_at = excluded.last_run_at, runs = runs + 1",
    )
    .bind(run.team.as_str())
    .bind(now.as_micros())
    .bind(run.id.as_str())
    .bind(now.as_micros())
    .execute(connection)
    .await?;
    Ok(())
}

pub(super) async fn set_paused(
    connection: &mut SqliteConnection,
    team: &TeamId,
    paused: bool,
    now: Timestamp,
) -> Result<(), Failure> {
    sqlx::query(
        "INSERT INTO curation_team (team, since, paused, runs) VALUES (?, ?, ?, 0)
         ON CONFLICT (team) DO UPDATE SET paused = excluded.paused",
    )
    .bind(team.as_str())
    .bind(now.as_micros())
    .bind(paused)
    .execute(connection)
    .await?;
    Ok(())
}

/// Reads a row of `SELECT * FROM curation_run`.
pub(super) fn read(row: &SqliteRow) -> Result<Run, Failure> {
    let text = |column: &str| row.try_get::<String, _>(column);
    let maybe = |column: &str| row.try_get::<Option<String>, _>(column);
    let user = |text: String| UserId::parse(text).map_err(unreadable);
    let id = |text: &str| RunId::parse(text).ok_or_else(|| unreadable("the id of a run"));
    let problem = maybe("problem_reason")?;
    let message = maybe("problem_message")?.unwrap_or_default();
    Ok(Run {
        team: TeamId::parse(text("team")?).map_err(unreadable)?,
        id: id(&text("id")?)?,
        kind: Kind::parse(&text("kind")?).ok_or_else(|| unreadable("the kind of a run"))?,
        requester: maybe("requester")?.map(user).transpose()?,
        users: serde_json::from_str(&text("users")?).map_err(unreadable)?,
        undoes: maybe("undoes")?.as_deref().map(id).transpose()?,
        state: RunState::parse(&text("state")?).ok_or_else(|| unreadable("the state of a run"))?,
        problem: problem.map(|reason| Problem::new(reason, message)),
        attempts: row.try_get("attempts")?,
        result: RunResult {
            snapshot: text("snapshot")?,
            changes: row.try_get("changes")?,
            conflicts: row.try_get("conflicts")?,
            summary: text("summary")?,
        },
        created_at: Timestamp::from_micros(row.try_get("created_at")?),
        ended_at: row.try_get::<Option<i64>, _>("ended_at")?.map(Timestamp::from_micros),
    })
}

pub(super) fn unreadable(source: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Failure {
    Failure(Error::unreadable("a row of a curation", source))
}
