//! What a queue refuses.

use steward_base::{ErrorKind, Fault, ResourceRef};
use steward_store::StoreError;

use crate::JobState;

/// Why a queue did not do what it was asked.
#[derive(Debug, thiserror::Error)]
pub enum QueueError {
    /// The team has no such job.
    #[error("there is no job {id}")]
    NoSuchJob {
        /// The job's id.
        id: String,
    },
    /// The claim is no longer the current one: its lease ran out and the job went on without it, or it ended.
    #[error("claim {fence} of job {id} is stale; the job is {state} with fence {current}")]
    StaleFence {
        /// The job's id.
        id: String,
        /// The fence that was shown.
        fence: u64,
        /// The job's fence now.
        current: u64,
        /// The job's state now.
        state: JobState,
    },
    /// The job gave way as often as it may; it is to be finished now (`R-2`).
    #[error("job {id} has given way {releases} times already")]
    NoReleaseLeft {
        /// The job's id.
        id: String,
        /// How often it gave way.
        releases: u32,
    },
    /// Only a dead or cancelled job can be brought back.
    #[error("job {id} is {state} and cannot be brought back")]
    NotRevivable {
        /// The job's id.
        id: String,
        /// The job's state.
        state: JobState,
    },
    /// The store failed.
    #[error("the queue's store failed")]
    Store(#[from] StoreError),
}

impl Fault for QueueError {
    fn kind(&self) -> ErrorKind {
        match self {
            Self::NoSuchJob { .. } => ErrorKind::NotFound,
            Self::StaleFence { .. } => ErrorKind::Conflict,
            Self::NoReleaseLeft { .. } | Self::NotRevivable { .. } => ErrorKind::Precondition,
            Self::Store(error) => error.kind(),
        }
    }

    fn reason(&self) -> &'static str {
        match self {
            Self::NoSuchJob { .. } => "JOB_NOT_FOUND",
            Self::StaleFence { .. } => "STALE_FENCE",
            Self::NoReleaseLeft { .. } => "NO_RELEASE_LEFT",
            Self::NotRevivable { .. } => "JOB_NOT_REVIVABLE",
            Self::Store(error) => error.reason(),
        }
    }

    fn metadata(&self) -> Vec<(&'static str, String)> {
        match self {
            Self::NoSuchJob { id } => vec![("job", id.clone())],
            Self::StaleFence {
                id,
                fence,
                current,
                state,
            } => vec![
                ("job", id.clone()),
                ("fence", fence.to_string()),
                ("current", current.to_string()),
                ("state", state.to_string()),
            ],
            Self::NoReleaseLeft { id, releases } => vec![("job", id.clone()), ("releases", releases.to_string())],
            Self::NotRevivable { id, state } => vec![("job", id.clone()), ("state", state.to_string())],
            Self::Store(error) => error.metadata(),
        }
    }

    fn resource(&self) -> Option<ResourceRef> {
        match self {
            Self::NoSuchJob { id } => Some(ResourceRef {
                resource_type: "learning.steward.dev/Job",
                name: id.clone(),
            }),
            Self::StaleFence { .. } | Self::NoReleaseLeft { .. } | Self::NotRevivable { .. } | Self::Store(_) => None,
        }
    }
}
