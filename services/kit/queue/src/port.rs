//! What a queue can do, whatever keeps it.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use async_trait::async_trait;
use steward_base::Timestamp;
use steward_base::names::TeamId;
use tokio::sync::Notify;

use crate::{
    Cancelled, Claim, ClaimRequest, ClaimedJob, Enqueued, Failure, Heartbeat, Job, JobState, NewJob, QueueError,
    Release,
};

/// A durable queue of jobs. Every answer is given after the change is durable.
#[async_trait]
pub trait Queue: fmt::Debug + Send + Sync {
    /// Puts a job in, once per id. If an older job with the same merge key waits, the new one absorbs it.
    async fn enqueue(&self, job: NewJob) -> Result<Enqueued, QueueError>;

    /// Hands out the next job, or `None`. Teams take turns; within a team the longest due comes first. Passed over are
    /// teams that run as many as they may, and jobs whose merge key is running.
    async fn claim(&self, request: ClaimRequest) -> Result<Option<ClaimedJob>, QueueError>;

    /// Passes while the claim is the current one.
    async fn check(&self, claim: &Claim) -> Result<(), QueueError>;

    /// Renews the lease to `lease` from now and brings back what others ask of the worker.
    async fn heartbeat(&self, claim: &Claim, lease: Duration) -> Result<Heartbeat, QueueError>;

    /// Ends the job well.
    async fn complete(&self, claim: &Claim) -> Result<(), QueueError>;

    /// Ends the try. The job waits for the next one, or is dead after the last; cancelled if that was asked for.
    /// Answers where it stands.
    async fn fail(&self, claim: &Claim, failure: Failure) -> Result<JobState, QueueError>;

    /// Puts the job back without losing a try, due at once; cancelled if that was asked for. Answers where it stands.
    async fn release(&self, claim: &Claim, reason: Release) -> Result<JobState, QueueError>;

    /// Ends a waiting job; asks the worker of a running one.
    async fn cancel(&self, team: &TeamId, id: &str) -> Result<Cancelled, QueueError>;

    /// Asks running jobs of this merge key to give way (`R-2`). Answers how many there are.
    async fn ask_to_give_way(&self, team: &TeamId, merge_key: &str) -> Result<u64, QueueError>;

    /// Gives a dead or cancelled job a fresh start, due at once.
    async fn revive(&self, team: &TeamId, id: &str) -> Result<(), QueueError>;

    /// Takes back jobs whose lease ran out. Claims do so too; this is for a timer, when nobody claims.
    async fn sweep(&self) -> Result<Sweep, QueueError>;

    /// One job.
    async fn get(&self, team: &TeamId, id: &str) -> Result<Job, QueueError>;

    /// Jobs in the order of arrival.
    async fn list(&self, list: ListJobs) -> Result<Vec<Job>, QueueError>;

    /// How the queue stands.
    async fn stats(&self) -> Result<QueueStats, QueueError>;

    /// Notified when there may be something to claim. A hint that spares idle polling; polling is the truth.
    fn wakes(&self) -> &Notify;
}

/// Which jobs to list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListJobs {
    /// Of this team only.
    pub team: Option<TeamId>,
    /// In these states; empty means any.
    pub states: Vec<JobState>,
    /// That arrived after the job with this [`Job::seq`]; zero for the first page.
    pub after: u64,
    /// Most jobs to answer.
    pub limit: u32,
}

/// How a queue stands.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct QueueStats {
    /// Jobs in each state that has any.
    pub by_state: BTreeMap<JobState, u64>,
    /// Waiting jobs that are due.
    pub ready: u64,
    /// How long the longest due job has been due.
    pub oldest_ready: Option<Duration>,
    /// When the next job becomes due that is not due yet, by the machine's clock.
    pub next_due: Option<Timestamp>,
}

/// What a sweep took back.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Sweep {
    /// Jobs that wait for another try.
    pub waiting: u64,
    /// Jobs that had no try left, or that were to be cancelled.
    pub ended: u64,
}

impl Sweep {
    pub(crate) fn count(&mut self, job: &Job) {
        if job.state.is_final() {
            self.ended += 1;
        } else {
            self.waiting += 1;
        }
    }
}
