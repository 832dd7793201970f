//! The SQL of the queue.

use std::collections::BTreeMap;

use sqlx::sqlite::SqliteRow;
use sqlx::{Connection as _, Row, SqliteConnection};
use steward_base::Timestamp;
use steward_base::names::TeamId;

use crate::time::Moment;
use crate::{ClaimRequest, Job, JobState, ListJobs, NewJob, QueueError, QueueOptions, QueueStats};

pub(super) async fn find(
    connection: &mut SqliteConnection,
    team: &TeamId,
    id: &str,
) -> Result<Option<Job>, QueueError> {
    let row = sqlx::query("SELECT * FROM queue_job WHERE team = ? AND id = ?")
        .bind(team.as_str())
        .bind(id)
        .fetch_optional(connection)
        .await?;
    Ok(row.as_ref().map(job).transpose()?)
}

pub(super) async fn next_seq(connection: &mut SqliteConnection) -> Result<u64, QueueError> {
    let last: i64 = sqlx::query_scalar("SELECT coalesce(max(seq), 0) FROM queue_job")
        .fetch_one(connection)
        .await?;
    Ok(u64::try_from(last).unwrap_or(0) + 1)
}

/// The newest waiting job that `newer` takes over.
pub(super) async fn waiting_on_same_matter(
    connection: &mut SqliteConnection,
    newer: &NewJob,
) -> Result<Option<Job>, QueueError> {
    let row = sqlx::query(
        "SELECT * FROM queue_job WHERE team = ? AND kind = ? AND merge_key = ? AND state = 'waiting'
         ORDER BY seq DESC LIMIT 1",
    )
    .bind(newer.team.as_str())
    .bind(&newer.kind)
    .bind(&newer.merge_key)
    .fetch_optional(connection)
    .await?;
    Ok(row.as_ref().map(job).transpose()?)
}

pub(super) async fn insert(connection: &mut SqliteConnection, job: &Job, now: Timestamp) -> Result<(), QueueError> {
    sqlx::query(
        "INSERT INTO queue_job (
             team, id, seq, kind, payload, merge_key, state, fence, attempts, releases, created_at, run_at, start_by,
             cancel_requested, yield_requested, changed_at
         ) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
    )
    .bind(job.team.as_str())
    .bind(&job.id)
    .bind(signed(job.seq))
    .bind(&job.kind)
    .bind(&job.payload)
    .bind(&job.merge_key)
    .bind(job.state.as_str())
    .bind(signed(job.fence))
    .bind(job.attempts)
    .bind(job.releases)
    .bind(job.created_at.as_micros())
    .bind(job.run_at.as_micros())
    .bind(job.start_by.map(Timestamp::as_micros))
    .bind(job.cancel_requested)
    .bind(job.yield_requested)
    .bind(now.as_micros())
    .execute(connection)
    .await?;
    Ok(())
}

/// Keeps what may change in a job that is there.
pub(super) async fn change(connection: &mut SqliteConnection, job: &Job, now: Timestamp) -> Result<(), QueueError> {
    sqlx::query(
        "UPDATE queue_job SET state = ?, fence = ?, attempts = ?, releases = ?, run_at = ?, lease_until = ?,
             worker = ?, cancel_requested = ?, yield_requested = ?, last_error = ?, absorbed_by = ?, finished_at = ?,
             changed_at = ?
         WHERE team = ? AND id = ?",
    )
    .bind(job.state.as_str())
    .bind(signed(job.fence))
    .bind(job.attempts)
    .bind(job.releases)
    .bind(job.run_at.as_micros())
    .bind(job.lease_until.map(Timestamp::as_micros))
    .bind(&job.worker)
    .bind(job.cancel_requested)
    .bind(job.yield_requested)
    .bind(&job.last_error)
    .bind(&job.absorbed_by)
    .bind(job.finished_at.map(Timestamp::as_micros))
    .bind(now.as_micros())
    .bind(job.team.as_str())
    .bind(&job.id)
    .execute(connection)
    .await?;
    Ok(())
}

/// The latest change of a job that waits or runs, by the store's clock as it was then. Those that have ended wait for
/// nothing.
pub(super) async fn last_change(connection: &mut SqliteConnection) -> Result<Option<Timestamp>, QueueError> {
    let last: Option<i64> = sqlx::query_scalar(LAST_CHANGE).fetch_one(connection).await?;
    Ok(last.map(Timestamp::from_micros))
}

pub(super) async fn add_lane(connection: &mut SqliteConnection, team: &TeamId) -> Result<(), QueueError> {
    sqlx::query("INSERT INTO queue_lane (team, served) VALUES (?, 0) ON CONFLICT DO NOTHING")
        .bind(team.as_str())
        .execute(connection)
        .await?;
    Ok(())
}

pub(super) async fn serve_lane(connection: &mut SqliteConnection, team: &TeamId) -> Result<(), QueueError> {
    sqlx::query("UPDATE queue_lane SET served = (SELECT max(served) + 1 FROM queue_lane) WHERE team = ?")
        .bind(team.as_str())
        .execute(connection)
        .await?;
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
     WHERE state = 'running' AND lease_until <= ? ORDER BY team, id";

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

/// The job to hand out next: the team that was served longest ago among those that have one and may run one more.
pub(super) async fn next(
    connection: &mut SqliteConnection,
    request: &ClaimRequest,
    options: &QueueOptions,
    now: Timestamp,
) -> Result<Option<Job>, QueueError> {
    let kinds = serde_json::Value::from(request.kinds.as_slice()).to_string();
    let row = sqlx::query(NEXT)
        .bind(now.as_micros())
        .bind(kinds)
        .bind(options.team_cap.max(1))
        .fetch_optional(connection)
        .await?;
    Ok(row.as_ref().map(job).transpose()?)
}

pub(super) async fn expired(connection: &mut SqliteConnection, now: Timestamp) -> Result<Vec<Job>, QueueError> {
    let rows = sqlx::query(EXPIRED).bind(now.as_micros()).fetch_all(connection).await?;
    jobs(&rows)
}

pub(super) async fn ask_to_give_way(
    connection: &mut SqliteConnection,
    team: &TeamId,
    merge_key: &str,
) -> Result<u64, QueueError> {
    let asked =
        sqlx::query("UPDATE queue_job SET yield_requested = 1 WHERE team = ? AND merge_key = ? AND state = 'running'")
            .bind(team.as_str())
            .bind(merge_key)
            .execute(connection)
            .await?;
    Ok(asked.rows_affected())
}

pub(super) async fn list(connection: &mut SqliteConnection, list: &ListJobs) -> Result<Vec<Job>, QueueError> {
    let states: Vec<&str> = list.states.iter().map(|state| state.as_str()).collect();
    let rows = sqlx::query(
        "SELECT * FROM queue_job
         WHERE seq > ?1 AND (?2 IS NULL OR team = ?2) AND (?3 = '[]' OR state IN (SELECT value FROM json_each(?3)))
         ORDER BY seq LIMIT ?4",
    )
    .bind(signed(list.after))
    .bind(list.team.as_ref().map(TeamId::as_str))
    .bind(serde_json::Value::from(states).to_string())
    .bind(list.limit)
    .fetch_all(connection)
    .await?;
    jobs(&rows)
}

pub(super) async fn stats(connection: &mut SqliteConnection, moment: Moment) -> Result<QueueStats, QueueError> {
    // One view for both, so that they speak of the same jobs.
    let mut view = connection.begin().await?;
    let counts: Vec<(String, i64)> = sqlx::query_as(STANDING).fetch_all(&mut *view).await?;
    let by_state: BTreeMap<JobState, u64> = counts
        .into_iter()
        .filter_map(|(state, count)| Some((JobState::parse(&state)?, u64::try_from(count).ok()?)))
        .filter(|(_, count)| *count > 0)
        .collect();
    let (ready, oldest, next_due): (i64, Option<i64>, Option<i64>) = sqlx::query_as(WAITING)
        .bind(moment.now.as_micros())
        .fetch_one(&mut *view)
        .await?;
    view.commit().await?;
    Ok(QueueStats {
        by_state,
        ready: u64::try_from(ready).unwrap_or(0),
        oldest_ready: oldest.map(|run_at| moment.now.since(Timestamp::from_micros(run_at))),
        next_due: next_due.map(|at| moment.told(Timestamp::from_micros(at))),
    })
}

fn jobs(rows: &[SqliteRow]) -> Result<Vec<Job>, QueueError> {
    Ok(rows.iter().map(job).collect::<Result<_, sqlx::Error>>()?)
}

fn job(row: &SqliteRow) -> Result<Job, sqlx::Error> {
    let time = |column: &str| row.try_get::<i64, _>(column).map(Timestamp::from_micros);
    let optional_time =
        |column: &str| Ok::<_, sqlx::Error>(row.try_get::<Option<i64>, _>(column)?.map(Timestamp::from_micros));
    let count = |column: &str| {
        row.try_get::<i64, _>(column)
            .map(|count| u64::try_from(count).unwrap_or(0))
    };
    let state: String = row.try_get("state")?;
    Ok(Job {
        team: TeamId::parse(row.try_get::<String, _>("team")?).map_err(|error| sqlx::Error::Decode(error.into()))?,
        id: row.try_get("id")?,
        seq: count("seq")?,
        kind: row.try_get("kind")?,
        payload: row.try_get("payload")?,
        merge_key: row.try_get("merge_key")?,
        state: JobState::parse(&state)
            .ok_or_else(|| sqlx::Error::Decode(format!("{state} is no state of a job").into()))?,
        fence: count("fence")?,
        attempts: row.try_get("attempts")?,
        releases: row.try_get("releases")?,
        created_at: time("created_at")?,
        run_at: time("run_at")?,
        start_by: optional_time("start_by")?,
        lease_until: optional_time("lease_until")?,
        worker: row.try_get("worker")?,
        cancel_requested: row.try_get("cancel_requested")?,
        yield_requested: row.try_get("yield_requested")?,
        last_error: row.try_get("last_error")?,
        absorbed_by: row.try_get("absorbed_by")?,
        finished_at: optional_time("finished_at")?,
    })
}

fn signed(count: u64) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}
