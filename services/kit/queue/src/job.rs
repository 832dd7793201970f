//! A job and the words for what is done with it.

use std::fmt;
use std::time::Duration;

use steward_base::names::TeamId;
use steward_base::{Timestamp, names::NameError};

use crate::time::Moment;

/// What is put into the queue.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewJob {
    /// The team that the job belongs to.
    pub team: TeamId,
    /// The caller's id for it, unique within the team for ever: an id that was ever put in is not put in again.
    pub id: String,
    /// What kind of work it is; workers claim by kind.
    pub kind: String,
    /// What the worker needs, in the caller's own encoding. References, not contents.
    pub payload: String,
    /// Jobs of one team and kind with the same key are about the same thing: a newer one absorbs an older one that
    /// waits, and no two of them run at the same time (`R-2`).
    pub merge_key: Option<String>,
    /// Not before this time by the machine's clock; at once if `None`.
    pub run_at: Option<Timestamp>,
    /// A hint for the worker, kept with the job: started later than this, its plan must be made anew (`R-2`).
    pub start_by: Option<Timestamp>,
}

/// Where a job stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum JobState {
    /// Will be handed out when it is due.
    Waiting,
    /// Handed out, under a lease.
    Running,
    /// Ended well.
    Done,
    /// Given up after its last try, or by the worker.
    Dead,
    /// Ended by request.
    Cancelled,
    /// Taken over by a newer job.
    Absorbed,
}

impl JobState {
    /// Every state.
    pub const ALL: [Self; 6] = [
        Self::Waiting,
        Self::Running,
        Self::Done,
        Self::Dead,
        Self::Cancelled,
        Self::Absorbed,
    ];

    /// The stable name, in lower case.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Waiting => "waiting",
            Self::Running => "running",
            Self::Done => "done",
            Self::Dead => "dead",
            Self::Cancelled => "cancelled",
            Self::Absorbed => "absorbed",
        }
    }

    /// The state with this name.
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|state| state.as_str() == name)
    }

    /// Whether nothing will happen to the job any more by itself.
    pub const fn is_final(self) -> bool {
        !matches!(self, Self::Waiting | Self::Running)
    }
}

impl fmt::Display for JobState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// All that the queue knows of a job. Times are the store's: where the machine's clock was set back they may be ahead of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Job {
    /// Its team.
    pub team: TeamId,
    /// The caller's id for it.
    pub id: String,
    /// Order of arrival in the whole queue, from 1.
    pub seq: u64,
    /// Kind of work.
    pub kind: String,
    /// What the worker needs.
    pub payload: String,
    /// See [`NewJob::merge_key`].
    pub merge_key: Option<String>,
    /// Where it stands.
    pub state: JobState,
    /// How often it was handed out; a write with a lower number is stale.
    pub fence: u64,
    /// Tries used up, the running one included.
    pub attempts: u32,
    /// How often it gave way to something more urgent.
    pub releases: u32,
    /// When it was put in.
    pub created_at: Timestamp,
    /// Not handed out before.
    pub run_at: Timestamp,
    /// See [`NewJob::start_by`].
    pub start_by: Option<Timestamp>,
    /// End of the lease while it runs.
    pub lease_until: Option<Timestamp>,
    /// Who runs it.
    pub worker: Option<String>,
    /// Somebody asked to end it while it runs.
    pub cancel_requested: bool,
    /// Somebody asked it to give way while it runs.
    pub yield_requested: bool,
    /// Why the last try failed.
    pub last_error: Option<String>,
    /// The job that took it over.
    pub absorbed_by: Option<String>,
    /// When it reached a final state.
    pub finished_at: Option<Timestamp>,
}

impl Job {
    pub(crate) fn new(job: NewJob, seq: u64, moment: Moment) -> Self {
        let now = moment.now;
        Self {
            team: job.team,
            id: job.id,
            seq,
            kind: job.kind,
            payload: job.payload,
            merge_key: job.merge_key,
            state: JobState::Waiting,
            fence: 0,
            attempts: 0,
            releases: 0,
            created_at: now,
            run_at: job.run_at.map_or(now, |at| moment.counted(at)),
            start_by: job.start_by.map(|at| moment.counted(at)),
            lease_until: None,
            worker: None,
            cancel_requested: false,
            yield_requested: false,
            last_error: None,
            absorbed_by: None,
            finished_at: None,
        }
    }

    /// Whether the start-by time has passed.
    pub fn is_late(&self, now: Timestamp) -> bool {
        self.start_by.is_some_and(|start_by| now > start_by)
    }
}

/// The right to work on a job until the lease ends or somebody else gets a higher fence.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Claim {
    /// The job's team.
    pub team: TeamId,
    /// The job's id.
    pub job: String,
    /// The fence of this claim.
    pub fence: u64,
}

impl Claim {
    /// A claim from its parts, as they come back from a token or a request.
    pub fn new(team: impl Into<String>, job: impl Into<String>, fence: u64) -> Result<Self, NameError> {
        Ok(Self {
            team: TeamId::parse(team)?,
            job: job.into(),
            fence,
        })
    }
}

/// Who wants work, and which.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClaimRequest {
    /// Name of the worker, for people who look at the queue.
    pub worker: String,
    /// Kinds of work that it does; empty means any.
    pub kinds: Vec<String>,
    /// How long the lease lasts without a heartbeat.
    pub lease: Duration,
}

/// A job that was handed out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClaimedJob {
    /// To be shown with every further step.
    pub claim: Claim,
    /// End of the lease, by the store's clock.
    pub lease_until: Timestamp,
    /// Whether its start-by time had passed when it was handed out.
    pub late: bool,
    /// The job as it is now.
    pub job: Job,
}

/// What a heartbeat brings back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Heartbeat {
    /// The new end of the lease.
    pub lease_until: Timestamp,
    /// End the job: any failure or release makes it cancelled.
    pub cancel_requested: bool,
    /// Stop at the next safe point and [release](Release::GiveWay).
    pub yield_requested: bool,
}

/// Why a try failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    /// For people; without contents and secrets.
    pub message: String,
    /// Whether another try may go better.
    pub retry: bool,
    /// When the worker knows a better time for the next try than the back-off, by the machine's clock.
    pub not_before: Option<Timestamp>,
}

/// Why a job goes back unfinished without losing a try.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Release {
    /// Something more urgent came. Permitted a limited number of times (`R-2`).
    GiveWay,
    /// The worker stops. Not counted: the next worker goes on at once.
    Shutdown,
}

/// What came of putting a job in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Enqueued {
    /// It waits.
    New,
    /// It waits, and took over the waiting job with this id.
    Absorbed(String),
    /// The id was known; nothing changed. Where the known job stands.
    Known(JobState),
}

/// What came of a request to cancel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cancelled {
    /// It waited and has ended.
    AtOnce,
    /// It runs; its worker hears of it at the next heartbeat.
    Requested,
    /// It had ended before.
    Already(JobState),
}
