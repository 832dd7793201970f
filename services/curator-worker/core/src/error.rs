//! Why the worker did not do what it was asked. One reason per variant of its own; faults of the store and of other
//! services keep theirs.

use steward_base::{ErrorKind, Fault, FieldViolation, FieldViolations, ResourceRef};

use crate::review::ReviewState;

/// A fault of somebody else, as a source.
#[derive(Debug)]
pub struct Cause(Box<dyn Fault>);

impl std::ops::Deref for Cause {
    type Target = dyn Fault;

    fn deref(&self) -> &Self::Target {
        &*self.0
    }
}

impl std::fmt::Display for Cause {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.fmt(f)
    }
}

impl std::error::Error for Cause {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.0.source()
    }
}

/// An error of this service.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Fields of the request are wrong.
    #[error(transparent)]
    Invalid(#[from] FieldViolations),
    /// No such review, or another person's.
    #[error("there is no review {review}")]
    ReviewNotFound {
        /// Its resource name, as it was asked for.
        review: String,
    },
    /// The review waits, runs or has done its work.
    #[error("review {review} is {state}; only a failed, dead or cancelled one can be retried")]
    NotRetryable {
        /// Its resource name.
        review: String,
        /// Its state.
        state: ReviewState,
    },
    /// The review has ended and cannot be cancelled.
    #[error("review {review} has ended as {state}")]
    Ended {
        /// Its resource name.
        review: String,
        /// Its state.
        state: ReviewState,
    },
    /// No such run of a curation, or another team's.
    #[error("there is no run {run}")]
    RunNotFound {
        /// Its resource name, as it was asked for.
        run: String,
    },
    /// A run of the team waits or runs.
    #[error("run {run} of the team has not ended; there is one at a time")]
    CurationOpen {
        /// Its resource name.
        run: String,
    },
    /// The run has not ended, or is of a kind that is not undone.
    #[error("run {run} is {state}; only a curation that ended and a roll-back that ended well can be undone")]
    NotUndoable {
        /// Its resource name.
        run: String,
        /// Its state, or that it was a dry run.
        state: &'static str,
    },
    /// The request id was used for something else.
    #[error("request id {request_id} was used before with another request")]
    RequestIdReused {
        /// The id.
        request_id: String,
        /// The field, as every refusal of a request names it.
        violations: FieldViolations,
    },
    /// Another claim of the job is newer, or the job is no longer running.
    #[error("claim {fence} of review {review} is stale")]
    StaleFence {
        /// The review's id.
        review: String,
        /// The fence that was shown.
        fence: u64,
        /// The job's fence now.
        current: u64,
    },
    /// The store of queue and ledger failed.
    #[error("the learning store failed")]
    Store {
        /// What it said.
        #[source]
        source: Cause,
    },
    /// Another service refused, or did not answer.
    #[error("{service} did not do its part")]
    Peer {
        /// Which one.
        service: &'static str,
        /// What it said.
        #[source]
        source: Cause,
    },
    /// What a store or a peer returned cannot be understood: a fault of ours.
    #[error("{what} cannot be read")]
    Unreadable {
        /// What it is.
        what: &'static str,
        /// Why.
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
}

impl Error {
    /// The request id was used for something else.
    pub fn request_id_reused(request_id: impl Into<String>) -> Self {
        Self::RequestIdReused {
            request_id: request_id.into(),
            violations: FieldViolations::one("request_id", "was used before with another request"),
        }
    }

    /// A fault of another service.
    pub fn peer(service: &'static str, source: impl Fault + 'static) -> Self {
        Self::Peer {
            service,
            source: Cause(Box::new(source)),
        }
    }

    /// A fault of the store.
    pub fn store(source: impl Fault + 'static) -> Self {
        Self::Store {
            source: Cause(Box::new(source)),
        }
    }

    /// Something that cannot be read.
    pub fn unreadable(what: &'static str, source: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Self {
        Self::Unreadable {
            what,
            source: source.into(),
        }
    }
}

impl Fault for Error {
    fn kind(&self) -> ErrorKind {
        match self {
            Self::Invalid(_) | Self::RequestIdReused { .. } => ErrorKind::InvalidInput,
            Self::ReviewNotFound { .. } | Self::RunNotFound { .. } => ErrorKind::NotFound,
            Self::NotRetryable { .. } | Self::Ended { .. } | Self::CurationOpen { .. } | Self::NotUndoable { .. } => {
                ErrorKind::Precondition
            }
            Self::StaleFence { .. } => ErrorKind::Conflict,
            Self::Store { source } => store_kind(source),
            Self::Peer { source, .. } => source.kind(),
            Self::Unreadable { .. } => ErrorKind::Internal,
        }
    }

    fn reason(&self) -> &'static str {
        match self {
            Self::Invalid(_) => "INVALID_REQUEST",
            Self::ReviewNotFound { .. } => "REVIEW_NOT_FOUND",
            Self::NotRetryable { .. } => "REVIEW_NOT_RETRYABLE",
            Self::Ended { .. } => "REVIEW_ENDED",
            Self::RunNotFound { .. } => "CURATION_RUN_NOT_FOUND",
            Self::CurationOpen { .. } => "CURATION_OPEN",
            Self::NotUndoable { .. } => "CURATION_NOT_UNDOABLE",
            Self::RequestIdReused { .. } => "REQUEST_ID_REUSED",
            Self::StaleFence { .. } => "STALE_FENCE",
            Self::Store { source } => match store_kind(source) {
                ErrorKind::Unavailable => "DEPENDENCY_UNAVAILABLE",
                ErrorKind::Exhausted => "STORAGE_FULL",
                ErrorKind::DataLoss => "DATA_DAMAGED",
                _ => "INTERNAL",
            },
            Self::Peer { source, .. } => source.reason(),
            Self::Unreadable { .. } => "INTERNAL",
        }
    }

    fn metadata(&self) -> Vec<(&'static str, String)> {
        match self {
            Self::ReviewNotFound { review } => vec![("review", review.clone())],
            Self::NotRetryable { review, state } | Self::Ended { review, state } => {
                vec![("review", review.clone()), ("state", state.as_str().to_owned())]
            }
            Self::RunNotFound { run } | Self::CurationOpen { run } => vec![("run", run.clone())],
            Self::NotUndoable { run, state } => vec![("run", run.clone()), ("state", (*state).to_owned())],
            Self::RequestIdReused { request_id, .. } => vec![("requestId", request_id.clone())],
            Self::StaleFence { fence, current, .. } => {
                vec![("fence", fence.to_string()), ("current", current.to_string())]
            }
            Self::Store { source } if store_kind(source) == ErrorKind::Unavailable => {
                vec![("dependency", "learning store".to_owned())]
            }
            Self::Peer { source, .. } => source.metadata(),
            Self::Invalid(_) | Self::Store { .. } | Self::Unreadable { .. } => Vec::new(),
        }
    }

    fn violations(&self) -> &[FieldViolation] {
        match self {
            Self::Invalid(violations) | Self::RequestIdReused { violations, .. } => violations.as_slice(),
            Self::ReviewNotFound { .. }
            | Self::NotRetryable { .. }
            | Self::Ended { .. }
            | Self::RunNotFound { .. }
            | Self::CurationOpen { .. }
            | Self::NotUndoable { .. }
            | Self::StaleFence { .. }
            | Self::Store { .. }
            | Self::Peer { .. }
            | Self::Unreadable { .. } => &[],
        }
    }

    fn resource(&self) -> Option<ResourceRef> {
        let (resource_type, name) = match self {
            Self::ReviewNotFound { review } => ("learning.steward.dev/Review", review),
            Self::RunNotFound { run } => ("learning.steward.dev/CurationRun", run),
            _ => return None,
        };
        Some(ResourceRef {
            resource_type,
            name: name.clone(),
        })
    }

    fn retry_after(&self) -> Option<std::time::Duration> {
        match self {
            Self::Store { source } | Self::Peer { source, .. } => source.retry_after(),
            Self::Invalid(_)
            | Self::ReviewNotFound { .. }
            | Self::NotRetryable { .. }
            | Self::Ended { .. }
            | Self::RunNotFound { .. }
            | Self::CurationOpen { .. }
            | Self::NotUndoable { .. }
            | Self::RequestIdReused { .. }
            | Self::StaleFence { .. }
            | Self::Unreadable { .. } => None,
        }
    }
}

/// What of a store's fault concerns a caller; the rest is a fault of ours.
fn store_kind(source: &Cause) -> ErrorKind {
    match source.kind() {
        kind @ (ErrorKind::Unavailable | ErrorKind::Exhausted | ErrorKind::DataLoss) => kind,
        ErrorKind::Timeout => ErrorKind::Unavailable,
        ErrorKind::InvalidInput
        | ErrorKind::NotFound
        | ErrorKind::AlreadyExists
        | ErrorKind::Precondition
        | ErrorKind::Conflict
        | ErrorKind::Unauthenticated
        | ErrorKind::Forbidden
        | ErrorKind::Internal => ErrorKind::Internal,
    }
}
