//! The queue in a SQLite database.
//!
//! The tables live in the database of the queue's owner: it puts [`SQLITE_SCHEMA`] and [`SQLITE_SCHEMA_2`] into its
//! migrations. Where the owner keeps more about jobs, such as a ledger of results, it runs the steps of [`SqliteJobs`] in its own transaction.

mod jobs;
mod rows;
#[cfg(test)]
mod tests;

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use futures::FutureExt;
use futures::future::BoxFuture;
use sqlx::SqliteConnection;
use steward_base::Clock;
use steward_base::names::TeamId;
use steward_store::Sqlite;
use tokio::sync::Notify;

use crate::{
    Cancelled, Claim, ClaimRequest, ClaimedJob, Enqueued, Failure, Heartbeat, Job, JobState, ListJobs, NewJob, Queue,
    QueueError, QueueOptions, QueueStats, Release, Sweep,
};

pub use jobs::SqliteJobs;

/// The tables of a queue, for a migration of the database's owner. Later versions come as further constants.
pub const SQLITE_SCHEMA: &str = include_str!("sqlite/schema.sql");

/// What came to the tables later, for a further migration: ended jobs are counted, and the store's clock outlives a restart.
pub const SQLITE_SCHEMA_2: &str = include_str!("sqlite/schema_2.sql");

/// A durable queue in one SQLite database.
#[derive(Debug)]
pub struct SqliteQueue {
    sqlite: Sqlite,
    jobs: SqliteJobs,
    wakes: Notify,
}

impl SqliteQueue {
    /// The queue in `sqlite`, whose migrations include [`SQLITE_SCHEMA`] and [`SQLITE_SCHEMA_2`]. `clock` is the store's clock: all leases and
    /// delays go by it.
    pub fn new(sqlite: Sqlite, clock: Arc<dyn Clock>, options: QueueOptions) -> Self {
        Self {
            sqlite,
            jobs: SqliteJobs::new(clock, options),
            wakes: Notify::new(),
        }
    }

    /// The steps, to be run in a transaction of the caller. After the commit of one that makes a job claimable, call
    /// [`Notify::notify_waiters`] on [`Queue::wakes`].
    pub fn jobs(&self) -> SqliteJobs {
        self.jobs.clone()
    }

    async fn write<T: Send + 'static>(
        &self,
        step: impl for<'c> FnOnce(SqliteJobs, &'c mut SqliteConnection) -> BoxFuture<'c, Result<T, QueueError>>
        + Send
        + 'static,
    ) -> Result<T, QueueError> {
        let jobs = self.jobs();
        self.sqlite.write(move |connection| step(jobs, connection)).await
    }

    async fn write_and_wake<T: Send + 'static>(
        &self,
        step: impl for<'c> FnOnce(SqliteJobs, &'c mut SqliteConnection) -> BoxFuture<'c, Result<T, QueueError>>
        + Send
        + 'static,
    ) -> Result<T, QueueError> {
        let outcome = self.write(step).await?;
        self.wakes.notify_waiters();
        Ok(outcome)
    }
}

#[async_trait]
impl Queue for SqliteQueue {
    async fn enqueue(&self, job: NewJob) -> Result<Enqueued, QueueError> {
        let jobs = self.jobs();
        let around = SqliteJobs::ask_around(&job);
        let write = self.sqlite.write_in_two(around, move |connection, found| {
            async move { jobs.enqueued(connection, &found, job).await }.boxed()
        });
        let enqueued = write.await?;
        self.wakes.notify_waiters();
        Ok(enqueued)
    }

    async fn claim(&self, request: ClaimRequest) -> Result<Option<ClaimedJob>, QueueError> {
        let jobs = self.jobs();
        let next = jobs.ask_for_next(&request);
        let asked = next.is_some();
        let write = self
            .sqlite
            .write_in_two(next.unwrap_or_default(), move |connection, found| {
                async move { jobs.claimed(connection, asked.then_some(found), &request).await }.boxed()
            });
        write.await
    }

    async fn check(&self, claim: &Claim) -> Result<(), QueueError> {
        let mut reader = self.sqlite.read().await?;
        self.jobs.check(&mut reader, claim).await
    }

    async fn heartbeat(&self, claim: &Claim, lease: Duration) -> Result<Heartbeat, QueueError> {
        let (jobs, claim) = (self.jobs(), claim.clone());
        let job = SqliteJobs::ask_for(&claim.team, &claim.job);
        let write = self.sqlite.write_in_two(job, move |connection, found| {
            async move { jobs.beaten(connection, &found, &claim, lease).await }.boxed()
        });
        write.await
    }

    async fn complete(&self, claim: &Claim) -> Result<(), QueueError> {
        let (jobs, claim) = (self.jobs(), claim.clone());
        let job = SqliteJobs::ask_for(&claim.team, &claim.job);
        let write = self.sqlite.write_in_two(job, move |connection, found| {
            async move { jobs.completed(connection, &found, &claim).await }.boxed()
        });
        write.await?;
        self.wakes.notify_waiters();
        Ok(())
    }

    async fn fail(&self, claim: &Claim, failure: Failure) -> Result<JobState, QueueError> {
        let claim = claim.clone();
        self.write_and_wake(move |jobs, connection| {
            async move { jobs.fail(connection, &claim, &failure).await }.boxed()
        })
        .await
    }

    async fn release(&self, claim: &Claim, reason: Release) -> Result<JobState, QueueError> {
        let claim = claim.clone();
        self.write_and_wake(move |jobs, connection| {
            async move { jobs.release(connection, &claim, reason).await }.boxed()
        })
        .await
    }

    async fn cancel(&self, team: &TeamId, id: &str) -> Result<Cancelled, QueueError> {
        let (team, id) = (team.clone(), id.to_owned());
        self.write(move |jobs, connection| async move { jobs.cancel(connection, &team, &id).await }.boxed())
            .await
    }

    async fn ask_to_give_way(&self, team: &TeamId, merge_key: &str) -> Result<u64, QueueError> {
        let (team, key) = (team.clone(), merge_key.to_owned());
        self.write(move |jobs, connection| async move { jobs.ask_to_give_way(connection, &team, &key).await }.boxed())
            .await
    }

    async fn revive(&self, team: &TeamId, id: &str) -> Result<(), QueueError> {
        let (team, id) = (team.clone(), id.to_owned());
        self.write_and_wake(move |jobs, connection| async move { jobs.revive(connection, &team, &id).await }.boxed())
            .await
    }

    async fn sweep(&self) -> Result<Sweep, QueueError> {
        self.write_and_wake(|jobs, connection| async move { jobs.sweep(connection).await }.boxed())
            .await
    }

    async fn get(&self, team: &TeamId, id: &str) -> Result<Job, QueueError> {
        let mut reader = self.sqlite.read().await?;
        self.jobs.get(&mut reader, team, id).await
    }

    async fn list(&self, list: ListJobs) -> Result<Vec<Job>, QueueError> {
        let mut reader = self.sqlite.read().await?;
        self.jobs.list(&mut reader, &list).await
    }

    async fn stats(&self) -> Result<QueueStats, QueueError> {
        let mut reader = self.sqlite.read().await?;
        self.jobs.stats(&mut reader).await
    }

    fn wakes(&self) -> &Notify {
        &self.wakes
    }
}
