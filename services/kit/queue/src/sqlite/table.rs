//! The SQL of the queue.

use std::collections::BTreeMap;
use std::fmt::Display;

use steward_base::Timestamp;
use steward_base::names::TeamId;
use steward_store::{Db, Row, StoreError, params};

use crate::time::Moment;
use crate::{ClaimRequest, Job, JobState, ListJobs, NewJob, QueueOptions, QueueStats};

pub(super) fn find(db: Db<'_>, team: &TeamId, id: &str) -> Result<Option<Job>, StoreError> {
    let sql = "SELECT * FROM queue_job WHERE team = ? AND id = ?";
    db.first(sql, (team.as_str(), id), job)
}

/// The newest waiting job that a new one takes over.
pub(super) fn older(db: Db<'_>, newer: &NewJob) -> Result<Option<Job>, StoreError> {
    let sql = "SELECT * FROM queue_job WHERE team = ? AND kind = ? AND merge_key = ? AND state = 'waiting'
         ORDER BY seq DESC LIMIT 1";
    db.first(sql, (newer.team.as_str(), &newer.kind, &newer.merge_key), job)
}

/// The number of the job that arrived last; zero where none did.
pub(super) fn last_seq(db: Db<'_>) -> Result<u64, StoreError> {
    let last: i64 = db.value("SELECT coalesce(max(seq), 0) FROM queue_job", ())?;
    Ok(count(last))
}

pub(super) fn insert(db: Db<'_>, job: &Job, now: Timestamp) -> Result<(), StoreError> {
    let sql = "INSERT INTO queue_job (
             team, id, seq, kind, payload, merge_key, state, fence, attempts, releases, created_at, run_at, start_by,
             cancel_requested, yield_requested, changed_at
         ) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)";
    let values = params![
        job.team.as_str(),
        job.id,
        signed(job.seq),
        job.kind,
        job.payload,
        job.merge_key,
        job.state.as_str(),
        signed(job.fence),
        job.attempts,
        job.releases,
        job.created_at.as_micros(),
        job.run_at.as_micros(),
        job.start_by.map(Timestamp::as_micros),
        job.cancel_requested,
        job.yield_requested,
        now.as_micros(),
    ];
    db.execute(sql, values)?;
    Ok(())
}

/// Keeps what may change in a job that is there.
pub(super) fn change(db: Db<'_>, job: &Job, now: Timestamp) -> Result<(), StoreError> {
    let sql = "UPDATE queue_job SET state = ?, fence = ?, attempts = ?, releases = ?, run_at = ?, lease_until = ?,
             worker = ?, cancel_requested = ?, yield_requested = ?, last_error = ?, absorbed_by = ?, finished_at = ?,
             changed_at = ?
         WHERE team = ? AND id = ?";
    let values = params![
        job.state.as_str(),
        signed(job.fence),
        job.attempts,
        job.releases,
        job.run_at.as_micros(),
        job.lease_until.map(Timestamp::as_micros),
        job.worker,
        job.cancel_requested,
        job.yield_requested,
        job.last_error,
        job.absorbed_by,
        job.finished_at.map(Timestamp::as_micros),
        now.as_micros(),
        job.team.as_str(),
        job.id,
    ];
    db.execute(sql, values)?;
    Ok(())
}

/// The latest change of a job that waits or runs, by the store's clock as it was then. Those that have ended wait for
/// nothing.
pub(super) fn last_change(db: Db<'_>) -> Result<Option<Timestamp>, StoreError> {
    let last: Option<i64> = db.value(LAST_CHANGE, ())?;
    Ok(last.map(Timestamp::from_micros))
}

pub(super) fn add_lane(db: Db<'_>, team: &TeamId) -> Result<(), StoreError> {
    let sql = "INSERT INTO queue_lane (team, served) VALUES (?, 0) ON CONFLICT DO NOTHING";
    db.execute(sql, [team.as_str()])?;
    Ok(())
}

pub(super) fn serve_lane(db: Db<'_>, team: &TeamId) -> Result<(), StoreError> {
    let sql = "UPDATE queue_lane SET served = (SELECT max(served) + 1 FROM queue_lane) WHERE team = ?";
    db.execute(sql, [team.as_str()])?;
    Ok(())
}

/// The job to hand out next. Jobs that have ended are kept, so the plan must not depend on how many there are: lanes come
/// first, and what waits or runs is found in the index of just that.
pub(super) const NEXT: &str = "SELECT due.* FROM queue_lane AS lane CROSS JOIN queue_job AS due
     WHERE due.team = lane.team AND due.id = (
             SELECT job.id FROM queue_job AS job INDEXED BY queue_job_waiting
             WHERE job.team = lane.team AND job.state = 'waiting' AND job.run_at <= ?1
               AND (?2 = '[]' OR job.kind IN (SELECT value FROM json_each(?2)))
               AND NOT EXISTS (
                   SELECT 1 FROM queue_job AS other INDEXED BY queue_job_running
                   WHERE other.team = job.team AND other.kind = job.kind AND other.merge_key = job.merge_key
                     AND other.state = 'running')
             ORDER BY job.run_at, job.seq LIMIT 1)
       AND (SELECT count(*) FROM queue_job AS busy INDEXED BY queue_job_running
            WHERE busy.team = lane.team AND busy.state = 'running') < ?3
     ORDER BY lane.served, lane.team LIMIT 1";

/// Jobs whose lease has ended.
pub(super) const EXPIRED: &str = "SELECT * FROM queue_job INDEXED BY queue_job_running
     WHERE state = 'running' AND lease_until <= ?1 ORDER BY team, id";

pub(super) const LAST_CHANGE: &str = "SELECT max(at) FROM (
         SELECT max(changed_at) AS at FROM queue_job INDEXED BY queue_job_waiting WHERE state = 'waiting'
         UNION ALL
         SELECT max(changed_at) FROM queue_job INDEXED BY queue_job_running WHERE state = 'running')";

/// How many jobs are waiting and running; those that have ended are counted as they end.
pub(super) const STANDING: &str = "SELECT state, jobs FROM queue_ended WHERE jobs > 0
     UNION ALL
     SELECT 'running', count(*) FROM queue_job INDEXED BY queue_job_running WHERE state = 'running'
     UNION ALL
     SELECT 'waiting', count(*) FROM queue_job INDEXED BY queue_job_waiting WHERE state = 'waiting'";

pub(super) const WAITING: &str = "SELECT count(*) FILTER (WHERE run_at <= ?1), min(run_at) FILTER (WHERE run_at <= ?1),
            min(run_at) FILTER (WHERE run_at > ?1)
     FROM queue_job INDEXED BY queue_job_waiting WHERE state = 'waiting'";

/// The job to hand out: of the team that was served longest ago among those that have one and may run one more.
pub(super) fn next(
    db: Db<'_>,
    request: &ClaimRequest,
    options: &QueueOptions,
    now: Timestamp,
) -> Result<Option<Job>, StoreError> {
    let kinds = serde_json::Value::from(request.kinds.as_slice()).to_string();
    db.first(NEXT, (now.as_micros(), kinds, options.team_cap.max(1)), job)
}

pub(super) fn expired(db: Db<'_>, now: Timestamp) -> Result<Vec<Job>, StoreError> {
    db.all(EXPIRED, [now.as_micros()], job)
}

pub(super) fn ask_to_give_way(db: Db<'_>, team: &TeamId, merge_key: &str) -> Result<u64, StoreError> {
    let sql = "UPDATE queue_job SET yield_requested = 1 WHERE team = ? AND merge_key = ? AND state = 'running'";
    let asked = db.execute(sql, (team.as_str(), merge_key))?;
    Ok(u64::try_from(asked).unwrap_or(u64::MAX))
}

pub(super) fn list(db: Db<'_>, list: &ListJobs) -> Result<Vec<Job>, StoreError> {
    let states: Vec<&str> = list.states.iter().map(|state| state.as_str()).collect();
    let sql = "SELECT * FROM queue_job
         WHERE seq > ?1 AND (?2 IS NULL OR team = ?2) AND (?3 = '[]' OR state IN (SELECT value FROM json_each(?3)))
         ORDER BY seq LIMIT ?4";
    let team = list.team.as_ref().map(TeamId::as_str);
    let states = serde_json::Value::from(states).to_string();
    db.all(sql, (signed(list.after), team, states, list.limit), job)
}

pub(super) fn stats(db: Db<'_>, moment: Moment) -> Result<QueueStats, StoreError> {
    let counts: Vec<(String, i64)> = db.all(STANDING, (), |row| Ok::<_, StoreError>((row.get(0)?, row.get(1)?)))?;
    let by_state: BTreeMap<JobState, u64> = counts
        .into_iter()
        .filter_map(|(state, jobs)| Some((JobState::parse(&state)?, u64::try_from(jobs).ok()?)))
        .filter(|(_, jobs)| *jobs > 0)
        .collect();
    let waiting = db.first(WAITING, [moment.now.as_micros()], |row| {
        Ok::<_, StoreError>((count(row.get(0)?), row.get(1)?, row.get(2)?))
    })?;
    let (ready, oldest, next_due): (u64, Option<i64>, Option<i64>) = waiting.unwrap_or_default();
    Ok(QueueStats {
        by_state,
        ready,
        oldest_ready: oldest.map(|run_at| moment.now.since(Timestamp::from_micros(run_at))),
        next_due: next_due.map(|at| moment.told(Timestamp::from_micros(at))),
    })
}

fn job(row: &Row<'_>) -> Result<Job, StoreError> {
    let time = |column: &str| Ok::<_, StoreError>(Timestamp::from_micros(row.get(column)?));
    let optional_time =
        |column: &str| Ok::<_, StoreError>(row.get::<_, Option<i64>>(column)?.map(Timestamp::from_micros));
    let counted = |column: &str| Ok::<_, StoreError>(count(row.get(column)?));
    let (team, state): (String, String) = (row.get("team")?, row.get("state")?);
    Ok(Job {
        team: TeamId::parse(team).map_err(unreadable)?,
        id: row.get("id")?,
        seq: counted("seq")?,
        kind: row.get("kind")?,
        payload: row.get("payload")?,
        merge_key: row.get("merge_key")?,
        state: JobState::parse(&state).ok_or_else(|| unreadable(format!("{state} is no state of a job")))?,
        fence: counted("fence")?,
        attempts: row.get("attempts")?,
        releases: row.get("releases")?,
        created_at: time("created_at")?,
        run_at: time("run_at")?,
        start_by: optional_time("start_by")?,
        lease_until: optional_time("lease_until")?,
        worker: row.get("worker")?,
        cancel_requested: row.get("cancel_requested")?,
        yield_requested: row.get("yield_requested")?,
        last_error: row.get("last_error")?,
        absorbed_by: row.get("absorbed_by")?,
        finished_at: optional_time("finished_at")?,
    })
}

/// A row that we did not write.
fn unreadable(why: impl Display) -> StoreError {
    StoreError::Statement {
        source: why.to_string().into(),
    }
}

fn count(count: i64) -> u64 {
    u64::try_from(count).unwrap_or(0)
}

fn signed(count: u64) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}
