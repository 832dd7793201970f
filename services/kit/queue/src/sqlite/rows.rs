//! The SQL of the queue.

use std::collections::BTreeMap;

use sqlx::sqlite::SqliteRow;
use sqlx::{Connection as _, Row, SqliteConnection};
use steward_base::Timestamp;
use steward_base::names::TeamId;
use steward_store::Batch;

use crate::time::Moment;
use crate::{ClaimRequest, Job, JobState, ListJobs, NewJob, QueueError, QueueOptions, QueueStats};

/// Which of several questions a row answers: a column of this name says it.
const PART: &str = "part";

/// Asks for one job.
pub(super) fn ask_for(batch: &mut Batch, team: &TeamId, id: &str) {
    batch
        .statement("SELECT * FROM queue_job WHERE team = ?1 AND id = ?2")
        .with(team.as_str())
        .with(id);
}

pub(super) async fn find(
    connection: &mut SqliteConnection,
    team: &TeamId,
    id: &str,
) -> Result<Option<Job>, QueueError> {
    let mut batch = Batch::default();
    ask_for(&mut batch, team, id);
    one(&batch.rows(connection).await?)
}

/// The job, if there is one.
pub(super) fn one(rows: &[SqliteRow]) -> Result<Option<Job>, QueueError> {
    Ok(rows.first().map(job).transpose()?)
}

/// Asks for what decides on a new job: the same one, the newest waiting one that it takes over, the last number.
pub(super) fn ask_around(batch: &mut Batch, newer: &NewJob) {
    batch
        .statement("SELECT 'known' AS part, * FROM queue_job WHERE team = ?1 AND id = ?2")
        .with(newer.team.as_str())
        .with(newer.id.as_str())
        .statement(
            "SELECT 'older' AS part, * FROM queue_job WHERE team = ?1 AND kind = ?3 AND merge_key = ?4
                 AND state = 'waiting' ORDER BY seq DESC LIMIT 1",
        )
        .with(newer.kind.as_str())
        .with(newer.merge_key.as_deref())
        .statement("SELECT 'last' AS part, coalesce(max(seq), 0) AS seq FROM queue_job");
}

/// What [`ask_around`] asked for.
#[derive(Debug, Default)]
pub(super) struct Around {
    pub(super) known: Option<Job>,
    pub(super) older: Option<Job>,
    pub(super) last_seq: u64,
}

pub(super) fn around(rows: &[SqliteRow]) -> Result<Around, QueueError> {
    let mut around = Around::default();
    for row in rows {
        match row.try_get(PART)? {
            "known" => around.known = Some(job(row)?),
            "older" => around.older = Some(job(row)?),
            _ => around.last_seq = u64::try_from(row.try_get::<i64, _>("seq")?).unwrap_or(0),
        }
    }
    Ok(around)
}

pub(super) fn insert(batch: &mut Batch, job: &Job, now: Timestamp) {
    batch
        .statement(
            "INSERT INTO queue_job (
                 team, id, seq, kind, payload, merge_key, state, fence, attempts, releases, created_at, run_at, start_by,
                 cancel_requested, yield_requested, changed_at
             ) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        )
        .with(job.team.as_str())
        .with(job.id.as_str())
        .with(signed(job.seq))
        .with(job.kind.as_str())
        .with(job.payload.as_str())
        .with(job.merge_key.as_deref())
        .with(job.state.as_str())
        .with(signed(job.fence))
        .with(job.attempts)
        .with(job.releases)
        .with(job.created_at.as_micros())
        .with(job.run_at.as_micros())
        .with(job.start_by.map(Timestamp::as_micros))
        .with(job.cancel_requested)
        .with(job.yield_requested)
        .with(now.as_micros());
}

/// Keeps what may change in a job that is there.
pub(super) fn change(batch: &mut Batch, job: &Job, now: Timestamp) {
    batch
        .statement(
            "UPDATE queue_job SET state = ?, fence = ?, attempts = ?, releases = ?, run_at = ?, lease_until = ?,
                 worker = ?, cancel_requested = ?, yield_requested = ?, last_error = ?, absorbed_by = ?, finished_at = ?,
                 changed_at = ?
             WHERE team = ? AND id = ?",
        )
        .with(job.state.as_str())
        .with(signed(job.fence))
        .with(job.attempts)
        .with(job.releases)
        .with(job.run_at.as_micros())
        .with(job.lease_until.map(Timestamp::as_micros))
        .with(job.worker.as_deref())
        .with(job.cancel_requested)
        .with(job.yield_requested)
        .with(job.last_error.as_deref())
        .with(job.absorbed_by.as_deref())
        .with(job.finished_at.map(Timestamp::as_micros))
        .with(now.as_micros())
        .with(job.team.as_str())
        .with(job.id.as_str());
}

/// The latest change of a job that waits or runs, by the store's clock as it was then. Those that have ended wait for
/// nothing.
pub(super) async fn last_change(connection: &mut SqliteConnection) -> Result<Option<Timestamp>, QueueError> {
    let last: Option<i64> = sqlx::query_scalar(LAST_CHANGE).fetch_one(connection).await?;
    Ok(last.map(Timestamp::from_micros))
}

pub(super) fn add_lane(batch: &mut Batch, team: &TeamId) {
    batch
        .statement("INSERT INTO queue_lane (team, served) VALUES (?, 0) ON CONFLICT DO NOTHING")
        .with(team.as_str());
}

pub(super) fn serve_lane(batch: &mut Batch, team: &TeamId) {
    batch
        .statement("UPDATE queue_lane SET served = (SELECT max(served) + 1 FROM queue_lane) WHERE team = ?")
        .with(team.as_str());
}

/// The job to hand out next. Jobs that have ended are kept, so the plan must not depend on how many there are: lanes come
/// first, and what waits or runs is found in the index of just that.
pub(super) const NEXT: &str = "SELECT 'next' AS part, due.* FROM queue_lane AS lane CROSS JOIN queue_job AS due
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
pub(super) const EXPIRED: &str = "SELECT 'expired' AS part, * FROM queue_job INDEXED BY queue_job_running
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

/// Asks for the jobs whose lease has ended, and for the one to hand out if there are none: of the team that was served
/// longest ago among those that have one and may run one more.
pub(super) fn ask_for_next(batch: &mut Batch, request: &ClaimRequest, options: &QueueOptions, now: Timestamp) {
    batch
        .statement(EXPIRED)
        .with(now.as_micros())
        .statement(NEXT)
        .with(serde_json::Value::from(request.kinds.as_slice()).to_string())
        .with(options.team_cap.max(1));
}

/// What [`ask_for_next`] asked for.
#[derive(Debug, Default)]
pub(super) struct Next {
    pub(super) expired: Vec<Job>,
    pub(super) next: Option<Job>,
}

pub(super) fn next(rows: &[SqliteRow]) -> Result<Next, QueueError> {
    let mut found = Next::default();
    for row in rows {
        match row.try_get(PART)? {
            "expired" => found.expired.push(job(row)?),
            _ => found.next = Some(job(row)?),
        }
    }
    Ok(found)
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
