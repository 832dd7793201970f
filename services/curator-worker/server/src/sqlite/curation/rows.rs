//! Between columns and runs.

use steward_base::names::{TeamId, UserId};
use steward_base::{Timestamp, error_chain};
use steward_curator_core::Error;
use steward_curator_core::curation::{Kind, Result as RunResult, Run, RunId, RunState, TeamClock};
use steward_curator_core::review::Problem;
use steward_store::{Db, Row, params};

use super::Failure;

pub(super) fn get(db: Db<'_>, team: &TeamId, id: &str) -> Result<Option<Run>, Failure> {
    let sql = "SELECT * FROM curation_run WHERE team = ? AND id = ?";
    db.first(sql, (team.as_str(), id), read)
}

/// The same, with a damaged row as none: it must not keep all others waiting.
pub(super) fn readable(db: Db<'_>, team: &TeamId, id: &str) -> Result<Option<Run>, Failure> {
    match get(db, team, id) {
        Err(Failure(error @ Error::Unreadable { .. })) => {
            tracing::error!(%team, run = id, error = error_chain(&error), "the row of a run cannot be read");
            Ok(None)
        }
        other => other,
    }
}

pub(super) fn requested(
    db: Db<'_>,
    team: &TeamId,
    requester: &UserId,
    request_id: &str,
) -> Result<Option<Run>, Failure> {
    let sql = "SELECT * FROM curation_run WHERE team = ? AND requester = ? AND request_id = ?";
    db.first(sql, (team.as_str(), requester.as_str(), request_id), read)
}

/// The run that has not ended.
pub(super) fn open(db: Db<'_>, team: &TeamId) -> Result<Option<Run>, Failure> {
    let sql = "SELECT * FROM curation_run WHERE team = ? AND state IN ('queued', 'running')";
    db.first(sql, [team.as_str()], read)
}

pub(super) fn insert(db: Db<'_>, run: &Run, request_id: Option<&str>) -> Result<(), Failure> {
    db.execute(
        "INSERT INTO curation_run (team, id, kind, requester, users, request_id, undoes, state, attempts, snapshot,
             changes, conflicts, summary, created_at, run_json, report)
         VALUES (?, ?, ?, ?, ?, ?, ?, ?, 0, '', 0, 0, '', ?, '', '')",
        params![
            run.team.as_str(),
            run.id.as_str(),
            run.kind.as_str(),
            run.requester.as_ref().map(UserId::as_str),
            serde_json::to_string(&run.users).map_err(unreadable)?,
            request_id,
            run.undoes.as_ref().map(RunId::as_str),
            run.state.as_str(),
            run.created_at.as_micros(),
        ],
    )?;
    Ok(())
}

/// Keeps what changes in a run.
pub(super) fn update(db: Db<'_>, run: &Run) -> Result<(), Failure> {
    db.execute(
        "UPDATE curation_run SET state = ?, problem_reason = ?, problem_message = ?, attempts = ?, snapshot = ?,
             changes = ?, conflicts = ?, summary = ?, ended_at = ?
         WHERE team = ? AND id = ?",
        params![
            run.state.as_str(),
            run.problem.as_ref().map(|problem| problem.reason.as_str()),
            run.problem.as_ref().map(|problem| problem.message.as_str()),
            run.attempts,
            run.result.snapshot,
            run.result.changes,
            run.result.conflicts,
            run.result.summary,
            run.ended_at.map(Timestamp::as_micros),
            run.team.as_str(),
            run.id.as_str(),
        ],
    )?;
    Ok(())
}

pub(super) fn clock(db: Db<'_>, team: &TeamId) -> Result<Option<TeamClock>, Failure> {
    db.first("SELECT * FROM curation_team WHERE team = ?", [team.as_str()], |row| {
        let last_run: Option<String> = row.get("last_run")?;
        let last_run_at: Option<i64> = row.get("last_run_at")?;
        let last_run = last_run.as_deref().and_then(RunId::parse);
        Ok(TeamClock {
            since: Timestamp::from_micros(row.get("since")?),
            paused: row.get("paused")?,
            last_run: last_run.zip(last_run_at.map(Timestamp::from_micros)),
            runs: u64::try_from(row.get::<_, i64>("runs")?).unwrap_or(0),
        })
    })
}

/// Lets the interval count from now.
pub(super) fn count_from(db: Db<'_>, team: &TeamId, now: Timestamp) -> Result<(), Failure> {
    let sql = "INSERT INTO curation_team (team, since, paused, runs) VALUES (?, ?, 0, 0)
         ON CONFLICT (team) DO UPDATE SET since = excluded.since";
    db.execute(sql, (team.as_str(), now.as_micros()))?;
    Ok(())
}

/// A curation ended well.
pub(super) fn count_run(db: Db<'_>, run: &Run, now: Timestamp) -> Result<(), Failure> {
    let sql = "INSERT INTO curation_team (team, since, paused, last_run, last_run_at, runs) VALUES (?, ?, 0, ?, ?, 1)
         ON CONFLICT (team) DO UPDATE SET since = excluded.since, last_run = excluded.last_run,
             last_run_at = excluded.last_run_at, runs = runs + 1";
    let now = now.as_micros();
    db.execute(sql, (run.team.as_str(), now, run.id.as_str(), now))?;
    Ok(())
}

pub(super) fn set_paused(db: Db<'_>, team: &TeamId, paused: bool, now: Timestamp) -> Result<(), Failure> {
    let sql = "INSERT INTO curation_team (team, since, paused, runs) VALUES (?, ?, ?, 0)
         ON CONFLICT (team) DO UPDATE SET paused = excluded.paused";
    db.execute(sql, (team.as_str(), now.as_micros(), paused))?;
    Ok(())
}

/// Reads a row of `SELECT * FROM curation_run`.
pub(super) fn read(row: &Row<'_>) -> Result<Run, Failure> {
    let text = |column: &str| row.get::<_, String>(column);
    let maybe = |column: &str| row.get::<_, Option<String>>(column);
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
        attempts: row.get("attempts")?,
        result: RunResult {
            snapshot: text("snapshot")?,
            changes: row.get("changes")?,
            conflicts: row.get("conflicts")?,
            summary: text("summary")?,
        },
        created_at: Timestamp::from_micros(row.get("created_at")?),
        ended_at: row.get::<_, Option<i64>>("ended_at")?.map(Timestamp::from_micros),
    })
}

pub(super) fn unreadable(source: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Failure {
    Failure(Error::unreadable("a row of a curation", source))
}
