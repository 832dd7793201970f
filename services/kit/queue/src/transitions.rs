//! What may happen to a job, whatever engine keeps it.

use steward_base::Timestamp;

use crate::time::Moment;
use crate::{
    Cancelled, Claim, ClaimRequest, ClaimedJob, Failure, Heartbeat, Job, JobState, QueueError, QueueOptions, Release,
};

impl Job {
    /// The newer job takes the place of the older one in the line, and what was left of its right to give way.
    pub(crate) fn absorb(&mut self, older: &mut Self, payload: String, now: Timestamp) {
        self.payload = payload;
        self.run_at = self.run_at.min(older.run_at);
        self.releases = self.releases.max(older.releases);
        older.absorbed_by = Some(self.id.clone());
        older.end(JobState::Absorbed, now);
    }

    pub(crate) fn hand_out(&mut self, request: &ClaimRequest, now: Timestamp) -> ClaimedJob {
        let lease_until = now.plus(request.lease);
        self.state = JobState::Running;
        self.fence += 1;
        self.attempts += 1;
        self.lease_until = Some(lease_until);
        self.worker = Some(request.worker.clone());
        self.yield_requested = false;
        ClaimedJob {
            claim: Claim {
                team: self.team.clone(),
                job: self.id.clone(),
                fence: self.fence,
            },
            lease_until,
            late: self.is_late(now),
            job: self.clone(),
        }
    }

    /// Passes while `claim` is the current one. A lease that ran out but was not given to anybody else still counts:
    /// the work is done, and nobody else does it.
    pub(crate) fn check(&self, claim: &Claim) -> Result<(), QueueError> {
        if self.state == JobState::Running && self.fence == claim.fence {
            return Ok(());
        }
        Err(QueueError::StaleFence {
            id: self.id.clone(),
            fence: claim.fence,
            current: self.fence,
            state: self.state,
        })
    }

    pub(crate) fn beat(
        &mut self,
        claim: &Claim,
        lease: std::time::Duration,
        now: Timestamp,
    ) -> Result<Heartbeat, QueueError> {
        self.check(claim)?;
        let lease_until = now.plus(lease);
        self.lease_until = Some(lease_until);
        Ok(Heartbeat {
            lease_until,
            cancel_requested: self.cancel_requested,
            yield_requested: self.yield_requested,
        })
    }

    pub(crate) fn complete(&mut self, claim: &Claim, now: Timestamp) -> Result<(), QueueError> {
        self.check(claim)?;
        self.last_error = None;
        self.end(JobState::Done, now);
        Ok(())
    }

    pub(crate) fn fail(
        &mut self,
        claim: &Claim,
        failure: &Failure,
        options: &QueueOptions,
        chance: f64,
        moment: Moment,
    ) -> Result<(), QueueError> {
        self.check(claim)?;
        self.after_failure(failure, options, chance, moment);
        Ok(())
    }

    /// What becomes of a job whose worker was not heard of in time.
    pub(crate) fn expire(&mut self, options: &QueueOptions, chance: f64, moment: Moment) {
        let message = "the worker was not heard of before its lease ended".to_owned();
        let failure = Failure {
            message,
            retry: true,
            not_before: None,
        };
        self.after_failure(&failure, options, chance, moment);
    }

    pub(crate) fn release(
        &mut self,
        claim: &Claim,
        reason: Release,
        options: &QueueOptions,
        now: Timestamp,
    ) -> Result<(), QueueError> {
        self.check(claim)?;
        if self.cancel_requested {
            self.end(JobState::Cancelled, now);
            return Ok(());
        }
        if reason == Release::GiveWay {
            if self.releases >= options.max_releases {
                return Err(QueueError::NoReleaseLeft {
                    id: self.id.clone(),
                    releases: self.releases,
                });
            }
            self.releases += 1;
        }
        self.attempts = self.attempts.saturating_sub(1);
        self.wait_until(now);
        Ok(())
    }

    pub(crate) fn cancel(&mut self, now: Timestamp) -> Cancelled {
        match self.state {
            JobState::Waiting => {
                self.end(JobState::Cancelled, now);
                Cancelled::AtOnce
            }
            JobState::Running => {
                self.cancel_requested = true;
                Cancelled::Requested
            }
            JobState::Done | JobState::Dead | JobState::Cancelled | JobState::Absorbed => {
                Cancelled::Already(self.state)
            }
        }
    }

    /// A dead or cancelled job starts afresh; its fence goes on.
    pub(crate) fn revive(&mut self, now: Timestamp) -> Result<(), QueueError> {
        if !matches!(self.state, JobState::Dead | JobState::Cancelled) {
            return Err(QueueError::NotRevivable {
                id: self.id.clone(),
                state: self.state,
            });
        }
        self.attempts = 0;
        self.releases = 0;
        self.cancel_requested = false;
        self.finished_at = None;
        self.wait_until(now);
        Ok(())
    }

    fn after_failure(&mut self, failure: &Failure, options: &QueueOptions, chance: f64, moment: Moment) {
        let now = moment.now;
        self.last_error = Some(failure.message.clone());
        if self.cancel_requested {
            self.end(JobState::Cancelled, now);
        } else if failure.retry && self.attempts < options.max_attempts {
            let backed_off = now.plus(options.wait_after(self.attempts, chance));
            self.wait_until(failure.not_before.map_or(backed_off, |at| moment.counted(at)));
        } else {
            self.end(JobState::Dead, now);
        }
    }

    fn wait_until(&mut self, run_at: Timestamp) {
        self.state = JobState::Waiting;
        self.run_at = run_at;
        self.let_go();
    }

    fn end(&mut self, state: JobState, now: Timestamp) {
        self.state = state;
        self.finished_at = Some(now);
        self.let_go();
    }

    fn let_go(&mut self) {
        self.lease_until = None;
        self.worker = None;
        self.yield_requested = false;
    }
}
