//! The queue in a SQLite database.
//!
//! The tables live in the database of the queue's owner: it puts [`SQLITE_SCHEMA`] and [`SQLITE_SCHEMA_2`] into its
//! migrations. Where the owner keeps more about jobs, such as a ledger of results, it runs [`JobSteps`] in its own transaction.

mod steps;
mod table;
#[cfg(test)]
mod tests;

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use steward_base::Clock;
use steward_base::names::TeamId;
use steward_store::{Db, Sqlite};
use tokio::sync::Notify;

use crate::{
    Cancelled, Claim, ClaimRequest, ClaimedJob, Enqueued, Failure, Heartbeat, Job, JobState, ListJobs, NewJob, Queue,
    QueueError, QueueOptions, QueueStats, Release, Sweep,
};

pub use steps::JobSteps;

/// The tables of a queue, for a migration of the database's owner. Later versions come as further constants.
pub const SQLITE_SCHEMA: &str = include_str!("sqlite/schema.sql");

/// What came to the tables later, for a further migration: ended jobs are counted, and the store's clock outlives a restart.
pub const SQLITE_SCHEMA_2: &str = include_str!("sqlite/schema_2.sql");

/// A durable queue in one SQLite database.
#[derive(Debug)]
pub struct SqliteQueue {
    sqlite: Sqlite,
    steps: JobSteps,
    wakes: Notify,
}

impl SqliteQueue {
    /// The queue in `sqlite`, whose migrations include [`SQLITE_SCHEMA`] and [`SQLITE_SCHEMA_2`]. `clock` is the store's clock: all leases and
    /// delays go by it.
    pub fn new(sqlite: Sqlite, clock: Arc<dyn Clock>, options: QueueOptions) -> Self {
        Self {
            sqlite,
            steps: JobSteps::new(clock, options),
            wakes: Notify::new(),
        }
    }

    /// The steps, to be run in a transaction of the caller. After the commit of one that makes a job claimable, call
    /// [`Notify::notify_waiters`] on [`Queue::wakes`].
    pub fn steps(&self) -> JobSteps {
        self.steps.clone()
    }

    async fn update<T: Send + 'static>(
        &self,
        step: impl FnOnce(JobSteps, Db<'_>) -> Result<T, QueueError> + Send + 'static,
    ) -> Result<T, QueueError> {
        let steps = self.steps();
        self.sqlite.update(move |db| step(steps, db)).await
    }

    async fn update_and_wake<T: Send + 'static>(
        &self,
        step: impl FnOnce(JobSteps, Db<'_>) -> Result<T, QueueError> + Send + 'static,
    ) -> Result<T, QueueError> {
        let outcome = self.update(step).await?;
        self.wakes.notify_waiters();
        Ok(outcome)
    }
}

#[async_trait]
impl Queue for SqliteQueue {
    async fn enqueue(&self, job: NewJob) -> Result<Enqueued, QueueError> {
        self.update_and_wake(move |steps, db| steps.enqueue(db, &job)).await
    }

    async fn claim(&self, request: ClaimRequest) -> Result<Option<ClaimedJob>, QueueError> {
        self.update(move |steps, db| steps.claim(db, &request)).await
    }

    async fn check(&self, claim: &Claim) -> Result<(), QueueError> {
        self.sqlite.view(|db| self.steps.check(db, claim)).await
    }

    async fn heartbeat(&self, claim: &Claim, lease: Duration) -> Result<Heartbeat, QueueError> {
        let claim = claim.clone();
        self.update(move |steps, db| steps.heartbeat(db, &claim, lease)).await
    }

    async fn complete(&self, claim: &Claim) -> Result<(), QueueError> {
        let claim = claim.clone();
        self.update_and_wake(move |steps, db| steps.complete(db, &claim)).await
    }

    async fn fail(&self, claim: &Claim, failure: Failure) -> Result<JobState, QueueError> {
        let claim = claim.clone();
        self.update_and_wake(move |steps, db| steps.fail(db, &claim, &failure))
            .await
    }

    async fn release(&self, claim: &Claim, reason: Release) -> Result<JobState, QueueError> {
        let claim = claim.clone();
        self.update_and_wake(move |steps, db| steps.release(db, &claim, reason))
            .await
    }

    async fn cancel(&self, team: &TeamId, id: &str) -> Result<Cancelled, QueueError> {
        let (team, id) = (team.clone(), id.to_owned());
        self.update(move |steps, db| steps.cancel(db, &team, &id)).await
    }

    async fn ask_to_give_way(&self, team: &TeamId, merge_key: &str) -> Result<u64, QueueError> {
        let (team, key) = (team.clone(), merge_key.to_owned());
        self.update(move |steps, db| steps.ask_to_give_way(db, &team, &key))
            .await
    }

    async fn revive(&self, team: &TeamId, id: &str) -> Result<(), QueueError> {
        let (team, id) = (team.clone(), id.to_owned());
        self.update_and_wake(move |steps, db| steps.revive(db, &team, &id))
            .await
    }

    async fn sweep(&self) -> Result<Sweep, QueueError> {
        self.update_and_wake(|steps, db| steps.sweep(db)).await
    }

    async fn get(&self, team: &TeamId, id: &str) -> Result<Job, QueueError> {
        self.sqlite.view(|db| self.steps.get(db, team, id)).await
    }

    async fn list(&self, list: ListJobs) -> Result<Vec<Job>, QueueError> {
        let steps = self.steps();
        self.sqlite.view_beside(move |db| steps.list(db, &list)).await
    }

    async fn stats(&self) -> Result<QueueStats, QueueError> {
        let steps = self.steps();
        self.sqlite.view_beside(move |db| steps.stats(db)).await
    }

    fn wakes(&self) -> &Notify {
        &self.wakes
    }
}
