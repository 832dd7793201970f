//! What every engine must do. Run on each of them.

mod scenarios;

use std::sync::Arc;
use std::time::Duration;

use sqlx::migrate::{Migration, MigrationType, Migrator};
use sqlx::{AssertSqlSafe, SqlSafeStr};
use steward_base::names::TeamId;
use steward_store::{Sqlite, SqliteOptions};
use steward_testkit::MockClock;
use tempfile::TempDir;

use crate::{
    Claim, ClaimRequest, ClaimedJob, InMemoryQueue, Job, NewJob, Queue, QueueOptions, SQLITE_SCHEMA, SQLITE_SCHEMA_2,
    SqliteQueue,
};

pub(crate) const LEASE: Duration = Duration::from_mins(2);

/// A queue under test, its clock and, where it needs one, its folder.
pub(crate) struct Rig {
    pub(crate) queue: Box<dyn Queue>,
    pub(crate) clock: MockClock,
    _folder: Option<TempDir>,
}

/// Unites the kinds of a review, as a caller would.
fn unite(older: &Job, newer: &NewJob) -> String {
    format!("{}+{}", older.payload, newer.payload)
}

pub(crate) fn options() -> QueueOptions {
    QueueOptions {
        jitter: 0.0,
        team_cap: 2,
        merge: unite,
        ..QueueOptions::default()
    }
}

pub(crate) fn in_memory() -> Rig {
    let clock = MockClock::default();
    let queue = InMemoryQueue::new(Arc::new(clock.clone()), options());
    Rig {
        queue: Box::new(queue),
        clock,
        _folder: None,
    }
}

pub(crate) async fn open(folder: &TempDir) -> Sqlite {
    let ledger = "CREATE TABLE ledger (job TEXT PRIMARY KEY) STRICT;";
    open_with(folder, &[SQLITE_SCHEMA, SQLITE_SCHEMA_2, ledger]).await
}

/// With these migrations, the first of them applied first.
pub(crate) async fn open_with(folder: &TempDir, schemas: &[&str]) -> Sqlite {
    let migrations = (1..).zip(schemas).map(|(version, sql)| {
        let sql = AssertSqlSafe((*sql).to_owned()).into_sql_str();
        Migration::new(version, "queue".into(), MigrationType::Simple, sql, false)
    });
    let migrator: &'static Migrator = Box::leak(Box::new(Migrator::with_migrations(migrations.collect())));
    let options = SqliteOptions {
        migrator,
        readers: 2,
        on_migrate: None,
        on_open: None,
    };
    Sqlite::open(folder.path().join("queue.db"), options)
        .await
        .expect("a database")
}

pub(crate) async fn on_sqlite() -> Rig {
    let clock = MockClock::default();
    let folder = tempfile::tempdir().expect("a temporary folder");
    let queue = SqliteQueue::new(open(&folder).await, Arc::new(clock.clone()), options());
    Rig {
        queue: Box::new(queue),
        clock,
        _folder: Some(folder),
    }
}

pub(crate) fn team(name: &str) -> TeamId {
    TeamId::parse(name).expect("a team id")
}

pub(crate) fn job(team_name: &str, id: &str) -> NewJob {
    NewJob {
        team: team(team_name),
        id: id.to_owned(),
        kind: "review".to_owned(),
        payload: id.to_owned(),
        merge_key: None,
        run_at: None,
        start_by: None,
    }
}

pub(crate) fn about(matter: &str, new: NewJob) -> NewJob {
    NewJob {
        merge_key: Some(matter.to_owned()),
        ..new
    }
}

pub(crate) fn anyone() -> ClaimRequest {
    ClaimRequest {
        worker: "w1".to_owned(),
        kinds: Vec::new(),
        lease: LEASE,
    }
}

impl Rig {
    pub(crate) async fn put(&self, new: NewJob) -> crate::Enqueued {
        self.queue.enqueue(new).await.expect("it is put in")
    }

    pub(crate) async fn take(&self) -> Option<ClaimedJob> {
        self.queue.claim(anyone()).await.expect("a claim")
    }

    pub(crate) async fn take_claim(&self) -> Claim {
        self.take().await.expect("a job is due").claim
    }

    pub(crate) async fn job(&self, team_name: &str, id: &str) -> Job {
        self.queue.get(&team(team_name), id).await.expect("a known job")
    }
}
