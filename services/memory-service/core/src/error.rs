//! What can go wrong with a call. What memory declines to do ([`Refused`]) is one of these: it carries the answer for
//! the model in its metadata, so that who calls for the model only has to pass it on.

use std::error::Error as StdError;
use std::time::Duration;

use steward_base::{ErrorKind, Fault, FieldViolation, FieldViolations, ResourceRef, Role};

use crate::refusal::{Refusal, Refused};

/// Type of an entry in `google.rpc.ResourceInfo`.
const ENTRY: &str = "memory.steward.dev/Entry";
/// Type of an owner's memory.
const STORE: &str = "memory.steward.dev/Store";
/// Type of a proposal.
const PROPOSAL: &str = "memory.steward.dev/Proposal";

/// A source that is only for the log.
pub type Source = Box<dyn StdError + Send + Sync>;

/// Why a call to memory failed.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Fields of the request are wrong.
    #[error("{0}")]
    InvalidRequest(FieldViolations),
    /// No such owner, or not the caller's.
    #[error("memory of {store} not found")]
    StoreNotFound {
        /// Resource name of the owner.
        store: String,
    },
    /// No such entry, or not the caller's.
    #[error("entry {entry} not found")]
    EntryNotFound {
        /// Resource name.
        entry: String,
    },
    /// The entry has no such revision.
    #[error("entry {entry} has no revision {revision} with a text")]
    RevisionNotFound {
        /// Resource name.
        entry: String,
        /// The number asked for.
        revision: u32,
    },
    /// No such proposal, or not in the caller's team.
    #[error("proposal {proposal} not found")]
    ProposalNotFound {
        /// Resource name.
        proposal: String,
    },
    /// The proposal was decided before.
    #[error("proposal {proposal} is {state}")]
    ProposalDecided {
        /// Resource name.
        proposal: String,
        /// Its state.
        state: &'static str,
    },
    /// Too many proposals wait for a decision already.
    #[error("{limit} proposals wait for a decision on {store}")]
    ProposalsPending {
        /// Resource name of the owner.
        store: String,
        /// How many may wait.
        limit: usize,
    },
    /// It changed since the caller read it.
    #[error("it changed: expected {expected}, is {current}")]
    EtagMismatch {
        /// What the caller had read.
        expected: String,
        /// What it is.
        current: String,
    },
    /// The job was claimed again since; what this claim still does no longer counts.
    #[error("fence {fence} of job {job} is stale, {current} is the present one")]
    StaleFence {
        /// The job.
        job: String,
        /// The caller's fence.
        fence: u64,
        /// The highest fence seen.
        current: u64,
    },
    /// The request id was used for another request.
    #[error("request_id: {request_id} was used before for another request")]
    RequestIdReused {
        /// The request id.
        request_id: String,
    },
    /// The caller's role does not permit it.
    #[error("needs the role {required:?}, the caller is {role:?}")]
    RoleRequired {
        /// What the caller is.
        role: Role,
        /// What is needed.
        required: Role,
    },
    /// Only a person who is present may decide; the caller is automatic.
    #[error("only a person may decide")]
    AutomaticDecision,
    /// The change itself was refused.
    #[error("{}", .0.refused.refusal.summary())]
    Refused(Box<Declined>),
    /// The store does not answer.
    #[error("the memory store does not answer")]
    StoreUnavailable {
        /// For the log.
        #[source]
        source: Source,
    },
    /// The disk is full; nothing was changed.
    #[error("the disk of the memory store is full, nothing was changed")]
    StorageFull {
        /// For the log.
        #[source]
        source: Source,
    },
    /// Stored data cannot be read.
    #[error("stored memory is damaged: {what}")]
    DataDamaged {
        /// What could not be read.
        what: String,
    },
    /// A fault of ours.
    #[error("{operation} failed")]
    Internal {
        /// What was being done.
        operation: &'static str,
        /// For the log.
        #[source]
        source: Source,
    },
}

/// A refusal with what its error needs to say.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Declined {
    /// What was refused and why.
    pub refused: Refused,
    /// The answer for the model.
    pub tool_text: String,
    violations: FieldViolations,
}

impl Error {
    /// One wrong field.
    pub fn invalid(field: &str, description: impl Into<String>) -> Self {
        Self::InvalidRequest(FieldViolations::one(field, description))
    }

    /// A refusal as an error, with the answer for the model.
    pub fn refused(refused: Refused, tool_text: String) -> Self {
        let at = refused.operation.map_or_else(
            || "operations".to_owned(),
            |operation| format!("operations[{operation}]"),
        );
        let field = match &refused.refusal {
            Refusal::Missing { field, .. } => format!("{at}.{field}"),
            Refusal::Blocked { .. } => format!("{at}.content"),
            _ => at,
        };
        let violations = FieldViolations::one(field, refused.refusal.summary());
        Self::Refused(Box::new(Declined {
            refused,
            tool_text,
            violations,
        }))
    }

    fn refusal_kind(refusal: &Refusal) -> ErrorKind {
        match refusal {
            Refusal::Missing { .. } | Refusal::Blocked { .. } => ErrorKind::InvalidInput,
            Refusal::NoMatch { .. }
            | Refusal::Ambiguous { .. }
            | Refusal::EvidenceMissing
            | Refusal::RejectedBefore { .. }
            | Refusal::Private => ErrorKind::Precondition,
            Refusal::OverBudget { .. } => ErrorKind::Exhausted,
        }
    }
}

impl From<FieldViolations> for Error {
    fn from(violations: FieldViolations) -> Self {
        Self::InvalidRequest(violations)
    }
}

impl Fault for Error {
    fn kind(&self) -> ErrorKind {
        match self {
            Self::InvalidRequest(_) | Self::RequestIdReused { .. } => ErrorKind::InvalidInput,
            Self::StoreNotFound { .. }
            | Self::EntryNotFound { .. }
            | Self::RevisionNotFound { .. }
            | Self::ProposalNotFound { .. } => ErrorKind::NotFound,
            Self::ProposalDecided { .. } => ErrorKind::Precondition,
            Self::EtagMismatch { .. } | Self::StaleFence { .. } => ErrorKind::Conflict,
            Self::RoleRequired { .. } | Self::AutomaticDecision => ErrorKind::Forbidden,
            Self::Refused(declined) => Self::refusal_kind(&declined.refused.refusal),
            Self::ProposalsPending { .. } | Self::StorageFull { .. } => ErrorKind::Exhausted,
            Self::StoreUnavailable { .. } => ErrorKind::Unavailable,
            Self::DataDamaged { .. } => ErrorKind::DataLoss,
            Self::Internal { .. } => ErrorKind::Internal,
        }
    }

    fn reason(&self) -> &'static str {
        match self {
            Self::InvalidRequest(_) => "INVALID_REQUEST",
            Self::StoreNotFound { .. } => "STORE_NOT_FOUND",
            Self::EntryNotFound { .. } => "ENTRY_NOT_FOUND",
            Self::RevisionNotFound { .. } => "REVISION_NOT_FOUND",
            Self::ProposalNotFound { .. } => "PROPOSAL_NOT_FOUND",
            Self::ProposalDecided { .. } => "PROPOSAL_DECIDED",
            Self::ProposalsPending { .. } => "BUDGET_EXCEEDED",
            Self::EtagMismatch { .. } => "ETAG_MISMATCH",
            Self::StaleFence { .. } => "STALE_FENCE",
            Self::RequestIdReused { .. } => "REQUEST_ID_REUSED",
            Self::RoleRequired { .. } => "ROLE_REQUIRED",
            Self::AutomaticDecision => "METHOD_DENIED",
            Self::Refused(declined) => declined.refused.refusal.reason(),
            Self::StoreUnavailable { .. } => "DEPENDENCY_UNAVAILABLE",
            Self::StorageFull { .. } => "STORAGE_FULL",
            Self::DataDamaged { .. } => "DATA_DAMAGED",
            Self::Internal { .. } => "INTERNAL",
        }
    }

    fn metadata(&self) -> Vec<(&'static str, String)> {
        match self {
            Self::StoreNotFound { store } => vec![("store", store.clone())],
            Self::EntryNotFound { entry } => vec![("entry", entry.clone())],
            Self::RevisionNotFound { entry, revision } => {
                vec![("entry", entry.clone()), ("revision", revision.to_string())]
            }
            Self::ProposalNotFound { proposal } => vec![("proposal", proposal.clone())],
            Self::ProposalDecided { proposal, state } => {
                vec![("proposal", proposal.clone()), ("state", (*state).to_owned())]
            }
            Self::ProposalsPending { limit, .. } => vec![
                ("used", limit.to_string()),
                ("limit", limit.to_string()),
                ("needed", limit.saturating_add(1).to_string()),
            ],
            Self::RequestIdReused { request_id } => vec![("requestId", request_id.clone())],
            Self::EtagMismatch { expected, current } => {
                vec![("expected", expected.clone()), ("current", current.clone())]
            }
            Self::StaleFence { job, fence, current } => {
                vec![
                    ("job", job.clone()),
                    ("fence", fence.to_string()),
                    ("current", current.to_string()),
                ]
            }
            Self::RoleRequired { role, required } => {
                vec![("role", name_of(*role)), ("required", name_of(*required))]
            }
            Self::Refused(declined) => refusal_metadata(declined),
            Self::StoreUnavailable { .. } => vec![("dependency", "memory store".to_owned())],
            Self::AutomaticDecision => vec![("method", "decide".to_owned())],
            Self::InvalidRequest(_) | Self::StorageFull { .. } | Self::DataDamaged { .. } | Self::Internal { .. } => {
                Vec::new()
            }
        }
    }

    fn violations(&self) -> &[FieldViolation] {
        match self {
            Self::InvalidRequest(violations) => violations.as_slice(),
            Self::Refused(declined) => declined.violations.as_slice(),
            _ => &[],
        }
    }

    fn resource(&self) -> Option<ResourceRef> {
        let (resource_type, name) = match self {
            Self::StoreNotFound { store } => (STORE, store),
            Self::EntryNotFound { entry } | Self::RevisionNotFound { entry, .. } => (ENTRY, entry),
            Self::ProposalNotFound { proposal } | Self::ProposalDecided { proposal, .. } => (PROPOSAL, proposal),
            _ => return None,
        };
        Some(ResourceRef {
            resource_type,
            name: name.clone(),
        })
    }

    fn retry_after(&self) -> Option<Duration> {
        matches!(self, Self::StoreUnavailable { .. }).then(|| Duration::from_millis(200))
    }
}

fn name_of(role: Role) -> String {
    format!("{role:?}").to_lowercase()
}

fn refusal_metadata(declined: &Declined) -> Vec<(&'static str, String)> {
    let mut metadata = match &declined.refused.refusal {
        Refusal::OverBudget {
            used, limit, needed, ..
        } => {
            vec![
                ("used", used.to_string()),
                ("limit", limit.to_string()),
                ("needed", needed.to_string()),
            ]
        }
        Refusal::Ambiguous { matches, .. } => vec![("matches", matches.len().to_string())],
        Refusal::Blocked { category } => vec![("category", category.clone())],
        Refusal::Missing { field, .. } => vec![("field", field.clone())],
        Refusal::NoMatch { .. } | Refusal::EvidenceMissing | Refusal::RejectedBefore { .. } | Refusal::Private => {
            Vec::new()
        }
    };
    if let Some(operation) = declined.refused.operation {
        metadata.push(("operation", operation.to_string()));
    }
    metadata.push(("toolText", declined.tool_text.clone()));
    metadata
}
