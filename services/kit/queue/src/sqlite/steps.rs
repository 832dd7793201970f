//! Every step of the queue as a function on a database, for use inside a transaction of the caller.

use std::sync::Arc;
use std::time::Duration;

use steward_base::Clock;
use steward_base::names::TeamId;
use steward_store::Db;

use super::table;
use crate::time::{Moment, StoreClock};
use crate::{
    Cancelled, Claim, ClaimRequest, ClaimedJob, Enqueued, Failure, Heartbeat, Job, JobState, ListJobs, NewJob,
    QueueError, QueueOptions, QueueStats, Release, Sweep,
};

/// The steps of a queue. Each runs in an update of the caller (reading ones in a view, too), and takes effect with its
/// commit. What the steps mean is told at [`Queue`](crate::Queue).
#[derive(Debug, Clone)]
pub struct JobSteps {
    clock: StoreClock,
    options: QueueOptions,
}

impl JobSteps {
    /// Steps that go by `clock`. One for a database, cloned wherever it is needed: clones share the store's time.
    pub fn new(clock: Arc<dyn Clock>, options: QueueOptions) -> Self {
        let clock = StoreClock::new(clock);
        Self { clock, options }
    }

    fn now(&self, db: Db<'_>) -> Result<Moment, QueueError> {
        if !self.clock.has_begun() {
            self.clock.begin_at(table::last_change(db)?);
        }
        Ok(self.clock.read())
    }

    /// See [`Queue::enqueue`](crate::Queue::enqueue).
    pub fn enqueue(&self, db: Db<'_>, job: &NewJob) -> Result<Enqueued, QueueError> {
        if let Some(known) = table::find(db, &job.team, &job.id)? {
            return Ok(Enqueued::Known(known.state));
        }
        let older = if job.merge_key.is_some() {
            table::older(db, job)?
        } else {
            None
        };
        let moment = self.now(db)?;
        let mut added = Job::new(job.clone(), table::last_seq(db)? + 1, moment);
        let mut outcome = Enqueued::New;
        if let Some(mut older) = older {
            let payload = (self.options.merge)(&older, job);
            added.absorb(&mut older, payload, moment.now);
            table::change(db, &older, moment.now)?;
            outcome = Enqueued::Absorbed(older.id);
        }
        table::insert(db, &added, moment.now)?;
        table::add_lane(db, &added.team)?;
        Ok(outcome)
    }

    /// See [`Queue::claim`](crate::Queue::claim).
    pub fn claim(&self, db: Db<'_>, request: &ClaimRequest) -> Result<Option<ClaimedJob>, QueueError> {
        let moment = self.now(db)?;
        // What nobody works at any more may be what comes next.
        self.expire(db, moment)?;
        let Some(mut job) = table::next(db, request, &self.options, moment.now)? else {
            return Ok(None);
        };
        let claimed = job.hand_out(request, moment.now);
        table::change(db, &job, moment.now)?;
        table::serve_lane(db, &job.team)?;
        Ok(Some(claimed))
    }

    /// See [`Queue::check`](crate::Queue::check). Inside a transaction this ties what is written to the claim.
    pub fn check(&self, db: Db<'_>, claim: &Claim) -> Result<(), QueueError> {
        self.get(db, &claim.team, &claim.job)?.check(claim)
    }

    /// See [`Queue::heartbeat`](crate::Queue::heartbeat).
    pub fn heartbeat(&self, db: Db<'_>, claim: &Claim, lease: Duration) -> Result<Heartbeat, QueueError> {
        self.step(db, &claim.team, &claim.job, |job, moment| {
            job.beat(claim, lease, moment.now)
        })
    }

    /// See [`Queue::complete`](crate::Queue::complete).
    pub fn complete(&self, db: Db<'_>, claim: &Claim) -> Result<(), QueueError> {
        self.step(db, &claim.team, &claim.job, |job, moment| {
            job.complete(claim, moment.now)
        })
    }

    /// See [`Queue::fail`](crate::Queue::fail).
    pub fn fail(&self, db: Db<'_>, claim: &Claim, failure: &Failure) -> Result<JobState, QueueError> {
        self.step(db, &claim.team, &claim.job, |job, moment| {
            job.fail(claim, failure, &self.options, rand::random(), moment)?;
            Ok(job.state)
        })
    }

    /// See [`Queue::release`](crate::Queue::release).
    pub fn release(&self, db: Db<'_>, claim: &Claim, reason: Release) -> Result<JobState, QueueError> {
        self.step(db, &claim.team, &claim.job, |job, moment| {
            job.release(claim, reason, &self.options, moment.now)?;
            Ok(job.state)
        })
    }

    /// See [`Queue::cancel`](crate::Queue::cancel).
    pub fn cancel(&self, db: Db<'_>, team: &TeamId, id: &str) -> Result<Cancelled, QueueError> {
        self.step(db, team, id, |job, moment| Ok(job.cancel(moment.now)))
    }

    /// See [`Queue::ask_to_give_way`](crate::Queue::ask_to_give_way).
    pub fn ask_to_give_way(&self, db: Db<'_>, team: &TeamId, merge_key: &str) -> Result<u64, QueueError> {
        Ok(table::ask_to_give_way(db, team, merge_key)?)
    }

    /// See [`Queue::revive`](crate::Queue::revive).
    pub fn revive(&self, db: Db<'_>, team: &TeamId, id: &str) -> Result<(), QueueError> {
        self.step(db, team, id, |job, moment| job.revive(moment.now))
    }

    /// See [`Queue::sweep`](crate::Queue::sweep).
    pub fn sweep(&self, db: Db<'_>) -> Result<Sweep, QueueError> {
        let moment = self.now(db)?;
        self.expire(db, moment)
    }

    fn expire(&self, db: Db<'_>, moment: Moment) -> Result<Sweep, QueueError> {
        let mut sweep = Sweep::default();
        for mut job in table::expired(db, moment.now)? {
            job.expire(&self.options, rand::random(), moment);
            sweep.count(&job);
            table::change(db, &job, moment.now)?;
        }
        Ok(sweep)
    }

    /// See [`Queue::get`](crate::Queue::get).
    pub fn get(&self, db: Db<'_>, team: &TeamId, id: &str) -> Result<Job, QueueError> {
        table::find(db, team, id)?.ok_or_else(|| QueueError::NoSuchJob { id: id.to_owned() })
    }

    /// See [`Queue::list`](crate::Queue::list).
    pub fn list(&self, db: Db<'_>, list: &ListJobs) -> Result<Vec<Job>, QueueError> {
        Ok(table::list(db, list)?)
    }

    /// See [`Queue::stats`](crate::Queue::stats).
    pub fn stats(&self, db: Db<'_>) -> Result<QueueStats, QueueError> {
        let moment = self.now(db)?;
        Ok(table::stats(db, moment)?)
    }

    fn step<T>(
        &self,
        db: Db<'_>,
        team: &TeamId,
        id: &str,
        step: impl FnOnce(&mut Job, Moment) -> Result<T, QueueError>,
    ) -> Result<T, QueueError> {
        let mut job = self.get(db, team, id)?;
        let moment = self.now(db)?;
        let outcome = step(&mut job, moment)?;
        table::change(db, &job, moment.now)?;
        Ok(outcome)
    }
}
