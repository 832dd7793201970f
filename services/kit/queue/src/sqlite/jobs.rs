//! Every step of the queue as a function on a connection, for use inside a transaction of the caller.

use std::sync::Arc;
use std::time::Duration;

use sqlx::SqliteConnection;
use steward_base::Clock;
use steward_base::names::TeamId;

use super::rows;
use crate::time::{Moment, StoreClock};
use crate::{
    Cancelled, Claim, ClaimRequest, ClaimedJob, Enqueued, Failure, Heartbeat, Job, JobState, ListJobs, NewJob,
    QueueError, QueueOptions, QueueStats, Release, Sweep,
};

/// The steps of a queue. Each runs on a connection that is in a write transaction (reading ones on any), and takes
/// effect with its commit. What the steps mean is told at [`Queue`](crate::Queue).
#[derive(Debug, Clone)]
pub struct SqliteJobs {
    clock: StoreClock,
    options: QueueOptions,
}

impl SqliteJobs {
    /// Steps that go by `clock`. One for a database, cloned wherever it is needed: clones share the store's time.
    pub fn new(clock: Arc<dyn Clock>, options: QueueOptions) -> Self {
        let clock = StoreClock::new(clock);
        Self { clock, options }
    }

    async fn now(&self, connection: &mut SqliteConnection) -> Result<Moment, QueueError> {
        if !self.clock.has_begun() {
            self.clock.begin_at(rows::last_change(connection).await?);
        }
        Ok(self.clock.read())
    }

    /// See [`Queue::enqueue`](crate::Queue::enqueue).
    pub async fn enqueue(&self, connection: &mut SqliteConnection, job: NewJob) -> Result<Enqueued, QueueError> {
        if let Some(known) = rows::find(connection, &job.team, &job.id).await? {
            return Ok(Enqueued::Known(known.state));
        }
        let moment = self.now(connection).await?;
        let seq = rows::next_seq(connection).await?;
        let mut added = Job::new(job.clone(), seq, moment);
        let mut outcome = Enqueued::New;
        if let Some(mut older) = rows::waiting_on_same_matter(connection, &job).await? {
            let payload = (self.options.merge)(&older, &job);
            added.absorb(&mut older, payload, moment.now);
            rows::change(connection, &older, moment.now).await?;
            outcome = Enqueued::Absorbed(older.id);
        }
        rows::insert(connection, &added, moment.now).await?;
        rows::add_lane(connection, &added.team).await?;
        Ok(outcome)
    }

    /// See [`Queue::claim`](crate::Queue::claim).
    pub async fn claim(
        &self,
        connection: &mut SqliteConnection,
        request: &ClaimRequest,
    ) -> Result<Option<ClaimedJob>, QueueError> {
        self.sweep(connection).await?;
        let now = self.now(connection).await?.now;
        let Some(mut job) = rows::next(connection, request, &self.options, now).await? else {
            return Ok(None);
        };
        let claimed = job.hand_out(request, now);
        rows::change(connection, &job, now).await?;
        rows::serve_lane(connection, &job.team).await?;
        Ok(Some(claimed))
    }

    /// See [`Queue::check`](crate::Queue::check). Inside a transaction this ties what is written to the claim.
    pub async fn check(&self, connection: &mut SqliteConnection, claim: &Claim) -> Result<(), QueueError> {
        self.get(connection, &claim.team, &claim.job).await?.check(claim)
    }

    /// See [`Queue::heartbeat`](crate::Queue::heartbeat).
    pub async fn heartbeat(
        &self,
        connection: &mut SqliteConnection,
        claim: &Claim,
        lease: Duration,
    ) -> Result<Heartbeat, QueueError> {
        self.step(connection, &claim.team, &claim.job, |job, moment| {
            job.beat(claim, lease, moment.now)
        })
        .await
    }

    /// See [`Queue::complete`](crate::Queue::complete).
    pub async fn complete(&self, connection: &mut SqliteConnection, claim: &Claim) -> Result<(), QueueError> {
        self.step(connection, &claim.team, &claim.job, |job, moment| {
            job.complete(claim, moment.now)
        })
        .await
    }

    /// See [`Queue::fail`](crate::Queue::fail).
    pub async fn fail(
        &self,
        connection: &mut SqliteConnection,
        claim: &Claim,
        failure: &Failure,
    ) -> Result<JobState, QueueError> {
        self.step(connection, &claim.team, &claim.job, |job, moment| {
            job.fail(claim, failure, &self.options, rand::random(), moment)?;
            Ok(job.state)
        })
        .await
    }

    /// See [`Queue::release`](crate::Queue::release).
    pub async fn release(
        &self,
        connection: &mut SqliteConnection,
        claim: &Claim,
        reason: Release,
    ) -> Result<JobState, QueueError> {
        self.step(connection, &claim.team, &claim.job, |job, moment| {
            job.release(claim, reason, &self.options, moment.now)?;
            Ok(job.state)
        })
        .await
    }

    /// See [`Queue::cancel`](crate::Queue::cancel).
    pub async fn cancel(
        &self,
        connection: &mut SqliteConnection,
        team: &TeamId,
        id: &str,
    ) -> Result<Cancelled, QueueError> {
        self.step(connection, team, id, |job, moment| Ok(job.cancel(moment.now)))
            .await
    }

    /// See [`Queue::ask_to_give_way`](crate::Queue::ask_to_give_way).
    pub async fn ask_to_give_way(
        &self,
        connection: &mut SqliteConnection,
        team: &TeamId,
        merge_key: &str,
    ) -> Result<u64, QueueError> {
        rows::ask_to_give_way(connection, team, merge_key).await
    }

    /// See [`Queue::revive`](crate::Queue::revive).
    pub async fn revive(&self, connection: &mut SqliteConnection, team: &TeamId, id: &str) -> Result<(), QueueError> {
        self.step(connection, team, id, |job, moment| job.revive(moment.now))
            .await
    }

    /// See [`Queue::sweep`](crate::Queue::sweep).
    pub async fn sweep(&self, connection: &mut SqliteConnection) -> Result<Sweep, QueueError> {
        let moment = self.now(connection).await?;
        let mut sweep = Sweep::default();
        for mut job in rows::expired(connection, moment.now).await? {
            job.expire(&self.options, rand::random(), moment);
            sweep.count(&job);
            rows::change(connection, &job, moment.now).await?;
        }
        Ok(sweep)
    }

    /// See [`Queue::get`](crate::Queue::get).
    pub async fn get(&self, connection: &mut SqliteConnection, team: &TeamId, id: &str) -> Result<Job, QueueError> {
        let found = rows::find(connection, team, id).await?;
        found.ok_or_else(|| QueueError::NoSuchJob { id: id.to_owned() })
    }

    /// See [`Queue::list`](crate::Queue::list).
    pub async fn list(&self, connection: &mut SqliteConnection, list: &ListJobs) -> Result<Vec<Job>, QueueError> {
        rows::list(connection, list).await
    }

    /// See [`Queue::stats`](crate::Queue::stats).
    pub async fn stats(&self, connection: &mut SqliteConnection) -> Result<QueueStats, QueueError> {
        let moment = self.now(connection).await?;
        rows::stats(connection, moment).await
    }

    async fn step<T>(
        &self,
        connection: &mut SqliteConnection,
        team: &TeamId,
        id: &str,
        step: impl FnOnce(&mut Job, Moment) -> Result<T, QueueError>,
    ) -> Result<T, QueueError> {
        let mut job = self.get(connection, team, id).await?;
        let moment = self.now(connection).await?;
        let outcome = step(&mut job, moment)?;
        rows::change(connection, &job, moment.now).await?;
        Ok(outcome)
    }
}
