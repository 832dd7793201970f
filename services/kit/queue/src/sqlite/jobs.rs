//! The steps of the queue on sqlx's connections, for an owner whose store has not moved to [`JobSteps`](super::JobSteps) yet.

use std::sync::Arc;
use std::time::Duration;

use sqlx::SqliteConnection;
use sqlx::sqlite::SqliteRow;
use steward_base::Clock;
use steward_base::names::TeamId;
use steward_store::Batch;

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
        let around = Self::ask_around(&job).rows(connection).await?;
        let (outcome, kept) = self.enqueued(connection, &around, job).await?;
        kept.run(connection).await?;
        Ok(outcome)
    }

    /// What [`SqliteJobs::enqueued`] has to know.
    pub(super) fn ask_around(job: &NewJob) -> Batch {
        let mut batch = Batch::default();
        rows::ask_around(&mut batch, job);
        batch
    }

    /// [`SqliteJobs::enqueue`] with what is there already, and what is to be kept.
    pub(super) async fn enqueued(
        &self,
        connection: &mut SqliteConnection,
        around: &[SqliteRow],
        job: NewJob,
    ) -> Result<(Enqueued, Batch), QueueError> {
        let around = rows::around(around)?;
        let mut kept = Batch::default();
        if let Some(known) = around.known {
            return Ok((Enqueued::Known(known.state), kept));
        }
        let moment = self.now(connection).await?;
        let mut added = Job::new(job.clone(), around.last_seq + 1, moment);
        let mut outcome = Enqueued::New;
        if let Some(mut older) = around.older {
            let payload = (self.options.merge)(&older, &job);
            added.absorb(&mut older, payload, moment.now);
            rows::change(&mut kept, &older, moment.now);
            outcome = Enqueued::Absorbed(older.id);
        }
        rows::insert(&mut kept, &added, moment.now);
        rows::add_lane(&mut kept, &added.team);
        Ok((outcome, kept))
    }

    /// See [`Queue::claim`](crate::Queue::claim).
    pub async fn claim(
        &self,
        connection: &mut SqliteConnection,
        request: &ClaimRequest,
    ) -> Result<Option<ClaimedJob>, QueueError> {
        let (claimed, kept) = self.claimed(connection, None, request).await?;
        kept.run(connection).await?;
        Ok(claimed)
    }

    fn next_at(&self, request: &ClaimRequest, moment: Moment) -> Batch {
        let mut batch = Batch::default();
        rows::ask_for_next(&mut batch, request, &self.options, moment.now);
        batch
    }

    /// [`SqliteJobs::claim`] with what was found, and what is to be kept.
    pub(super) async fn claimed(
        &self,
        connection: &mut SqliteConnection,
        found: Option<Vec<SqliteRow>>,
        request: &ClaimRequest,
    ) -> Result<(Option<ClaimedJob>, Batch), QueueError> {
        let moment = self.now(connection).await?;
        let found = match found {
            Some(found) => found,
            None => self.next_at(request, moment).rows(connection).await?,
        };
        let mut found = rows::next(&found)?;
        let mut kept = Batch::default();
        if !found.expired.is_empty() {
            // What nobody works at any more may be what comes next.
            self.expire(connection, found.expired, moment).await?;
            found = rows::next(&self.next_at(request, moment).rows(connection).await?)?;
        }
        let Some(mut job) = found.next else {
            return Ok((None, kept));
        };
        let claimed = job.hand_out(request, moment.now);
        rows::change(&mut kept, &job, moment.now);
        rows::serve_lane(&mut kept, &job.team);
        Ok((Some(claimed), kept))
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
        let expired = rows::expired(connection, moment.now).await?;
        self.expire(connection, expired, moment).await
    }

    async fn expire(
        &self,
        connection: &mut SqliteConnection,
        expired: Vec<Job>,
        moment: Moment,
    ) -> Result<Sweep, QueueError> {
        let mut sweep = Sweep::default();
        for mut job in expired {
            job.expire(&self.options, rand::random(), moment);
            sweep.count(&job);
            let mut kept = Batch::default();
            rows::change(&mut kept, &job, moment.now);
            kept.run(connection).await?;
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
        let found = Self::ask_for(team, id).rows(connection).await?;
        let (outcome, kept) = self.stepped(connection, &found, id, step).await?;
        kept.run(connection).await?;
        Ok(outcome)
    }

    /// What [`SqliteJobs::stepped`] has to know.
    pub(super) fn ask_for(team: &TeamId, id: &str) -> Batch {
        let mut batch = Batch::default();
        rows::ask_for(&mut batch, team, id);
        batch
    }

    /// A step of one job, and what is to be kept of it.
    async fn stepped<T>(
        &self,
        connection: &mut SqliteConnection,
        found: &[SqliteRow],
        id: &str,
        step: impl FnOnce(&mut Job, Moment) -> Result<T, QueueError>,
    ) -> Result<(T, Batch), QueueError> {
        let found = rows::one(found)?;
        let mut job = found.ok_or_else(|| QueueError::NoSuchJob { id: id.to_owned() })?;
        let moment = self.now(connection).await?;
        let outcome = step(&mut job, moment)?;
        let mut kept = Batch::default();
        rows::change(&mut kept, &job, moment.now);
        Ok((outcome, kept))
    }
}
