//! `queue`: jobs put in one by one, then claimed and completed by several workers: three durable commits for each job. The
//! floor is a row inserted and changed twice, each in a transaction of its own: three durable commits as well.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, ensure};
use serde_json::{Value, json};
use sqlx::migrate::{Migration, MigrationType, Migrator};
use sqlx::{AssertSqlSafe, SqlSafeStr as _};
use steward_base::SystemClock;
use steward_base::names::TeamId;
use steward_queue::{ClaimRequest, NewJob, Queue, QueueOptions, SQLITE_SCHEMA, SQLITE_SCHEMA_2, SqliteQueue};
use steward_store::{Sqlite, SqliteOptions};
use tokio::task::JoinSet;

use crate::arguments::{Arguments, Queue as Options};
use crate::floor::Bare;
use crate::measure::{Meter, Watch, millis_each, per_second};

/// Teams that the jobs belong to; they take turns.
const TEAMS: u32 = 8;
/// Longer than any run.
const LEASE: Duration = Duration::from_mins(5);
/// About the size of a review's payload.
const PAYLOAD: &str = r#"{"session":"teams/bench/sessions/01890c3e5b7c7d5e8f10a1b2c3d4e5f6","turn":"t1","to_seq":42,"kinds":["memory","skills"],"traceparent":"00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"}"#;

const FLOOR: &str = "CREATE TABLE job (number INTEGER PRIMARY KEY, id TEXT NOT NULL, payload TEXT NOT NULL,
                                       state TEXT NOT NULL) STRICT;
                     CREATE UNIQUE INDEX job_id ON job (id);";

pub(crate) async fn run(options: &Options, arguments: &Arguments) -> anyhow::Result<Value> {
    let folder = arguments.fresh_folder()?;
    let count = usize::try_from(options.jobs)?;
    let sqlite = open(folder.path()).await?;
    let queue: Arc<dyn Queue> = Arc::new(SqliteQueue::new(
        sqlite.clone(),
        Arc::new(SystemClock),
        QueueOptions::default(),
    ));

    let whole = Watch::start();
    let mut putting = Meter::default();
    for number in 0..options.jobs {
        putting.time(queue.enqueue(job(number)?)).await?;
    }
    let working = Watch::start();
    let mut claiming = work_off(&queue, options.workers).await?;
    let (drain, wall, cpu) = (working.wall(), whole.wall(), whole.cpu());
    ensure!(claiming.len() == count, "{} of {count} jobs were done", claiming.len());
    claiming.sort_unstable();
    sqlite.close().await;

    let floor = floor(folder.path(), options.jobs)?;
    Ok(json!({
        "jobs": options.jobs,
        "workers": options.workers,
        "jobs_per_s": per_second(count, wall),
        "floor_jobs_per_s": per_second(count, floor.wall().sum()),
        "cpu_ms_per_job": millis_each(cpu, count),
        "floor_cpu_ms_per_job": millis_each(floor.cpu().sum(), count),
        "enqueue_p50_ms": putting.wall().p50(),
        "enqueue_p99_ms": putting.wall().p99(),
        "claim_p50_ms": crate::measure::Spread::new(claiming).p50(),
        "drain_per_s": per_second(count, drain),
    }))
}

async fn open(folder: &Path) -> anyhow::Result<Sqlite> {
    let sql = AssertSqlSafe([SQLITE_SCHEMA, SQLITE_SCHEMA_2].concat()).into_sql_str();
    let migration = Migration::new(1, "queue".into(), MigrationType::Simple, sql, false);
    // One for the life of the process, which measures one queue.
    let migrator: &'static Migrator = Box::leak(Box::new(Migrator::with_migrations(vec![migration])));
    let options = SqliteOptions {
        migrator,
        readers: 2,
        on_migrate: None,
        on_open: None,
    };
    Sqlite::open(folder.join("queue.db"), options)
        .await
        .context("open the queue")
}

fn job(number: u32) -> anyhow::Result<NewJob> {
    Ok(NewJob {
        team: TeamId::parse(format!("team{}", number % TEAMS))?,
        id: format!("job-{number}"),
        kind: "review".to_owned(),
        payload: PAYLOAD.to_owned(),
        merge_key: Some(format!("session-{number}")),
        run_at: None,
        start_by: None,
    })
}

/// Workers claim and complete until nothing is left. Gives how long each claim took.
async fn work_off(queue: &Arc<dyn Queue>, workers: u32) -> anyhow::Result<Vec<Duration>> {
    let mut running = JoinSet::new();
    for number in 0..workers {
        let queue = Arc::clone(queue);
        let request = ClaimRequest {
            worker: format!("worker-{number}"),
            kinds: vec!["review".to_owned()],
            lease: LEASE,
        };
        running.spawn(async move {
            let mut claims = Vec::new();
            loop {
                let watch = Watch::start();
                let Some(claimed) = queue.claim(request.clone()).await? else {
                    // What others still run is theirs to end.
                    return anyhow::Ok(claims);
                };
                claims.push(watch.wall());
                queue.complete(&claimed.claim).await?;
            }
        });
    }
    let mut claims = Vec::new();
    while let Some(worker) = running.join_next().await {
        claims.extend(worker??);
    }
    Ok(claims)
}

fn floor(folder: &Path, jobs: u32) -> anyhow::Result<Meter> {
    let bare = Bare::open(folder, FLOOR)?;
    let mut meter = Meter::default();
    for number in 0..jobs {
        let id = format!("job-{number}");
        meter.time_blocking(|| {
            let insert = "INSERT INTO job (id, payload, state) VALUES (?, ?, 'waiting')";
            bare.commit(insert, (&id, PAYLOAD))?;
            bare.commit("UPDATE job SET state = 'running' WHERE id = ?", (&id,))?;
            bare.commit("UPDATE job SET state = 'done' WHERE id = ?", (&id,))
        })?;
    }
    bare.close()?;
    Ok(meter)
}
