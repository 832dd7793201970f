//! Everything recall-service can refuse or fail with, one variant per cause. Reasons and their metadata are documented
//! in `steward/recall/v1/error_reason.proto` and `steward/common/v1/error_reason.proto`.

use std::error::Error as StdError;

use steward_base::{ErrorKind, Fault, FieldViolation, FieldViolations, ResourceRef};

/// A source that is not ours.
pub type Source = Box<dyn StdError + Send + Sync>;

/// Why an operation of recall-service did not happen.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Fields of the request are wrong.
    #[error("{0}")]
    Invalid(FieldViolations),
    /// The request id was used before with another request (`T-9`).
    #[error("request id {request_id} was used before with another request")]
    RequestIdReused {
        /// The request id.
        request_id: String,
        /// Names the field, as callers of an invalid request expect.
        violations: FieldViolations,
    },
    /// No such session, or it is not the caller's.
    #[error("session {session} does not exist")]
    SessionNotFound {
        /// Full resource name.
        session: String,
    },
    /// The session was deleted; what comes late is refused.
    #[error("session {session} was deleted")]
    SessionDeleted {
        /// Full resource name.
        session: String,
    },
    /// The id is taken.
    #[error("session {session} exists already")]
    SessionExists {
        /// Full resource name.
        session: String,
    },
    /// No such visible message.
    #[error("session {session} has no message {seq} that can be shown")]
    MessageNotFound {
        /// Full resource name of the session.
        session: String,
        /// Number of the message.
        seq: u64,
    },
    /// No such turn.
    #[error("turn {turn} does not exist")]
    TurnNotFound {
        /// Turn id.
        turn: String,
    },
    /// Another turn holds the session (`T-7`).
    #[error("turn {turn} is running in this session")]
    TurnRunning {
        /// The turn that holds the lease.
        turn: String,
        /// Who runs it.
        holder: String,
    },
    /// The fence is not that of the present holding.
    #[error("fence {fence} is not the current one, {current}")]
    StaleFence {
        /// What the caller gave.
        fence: u64,
        /// What is current.
        current: u64,
    },
    /// The session has other messages than the caller expected.
    #[error("the session ends at message {current}, not at {expected}")]
    SequenceMismatch {
        /// What the caller expected.
        expected: u64,
        /// What is stored.
        current: u64,
    },
    /// The session is not as the caller read it.
    #[error("the session is at {current}, not at {expected}")]
    EtagMismatch {
        /// What the caller read.
        expected: String,
        /// What is stored.
        current: String,
    },
    /// The session that was asked about is the one the question comes from (`Q-5`).
    #[error("session {session} is the current one; its messages are in context already")]
    InContext {
        /// Full resource name.
        session: String,
    },
    /// The team has no such backup.
    #[error("backup {backup} does not exist")]
    BackupNotFound {
        /// Full resource name.
        backup: String,
    },
    /// The backup cannot be put back; nothing was changed.
    #[error("backup {backup} cannot be used: {problem}")]
    BackupUnusable {
        /// Full resource name.
        backup: String,
        /// What is wrong with it.
        problem: String,
    },
    /// A message exceeds the size limit.
    #[error("a message has {actual} bytes; at most {limit} are kept")]
    MessageTooLarge {
        /// Limit in bytes.
        limit: u64,
        /// What was sent, in bytes.
        actual: u64,
    },
    /// The store does not answer.
    #[error("the session store does not answer")]
    StoreUnavailable {
        /// What it said.
        #[source]
        source: Source,
    },
    /// No room left; nothing was changed.
    #[error("the disk is full; nothing was changed")]
    StoreFull,
    /// Stored data is damaged.
    #[error("stored sessions are damaged")]
    Damaged {
        /// What was met.
        #[source]
        source: Source,
    },
    /// A fault of ours.
    #[error("{operation} failed")]
    Internal {
        /// What was being done.
        operation: &'static str,
        /// Why it did not work.
        #[source]
        source: Source,
    },
}

impl Error {
    /// One wrong field.
    pub fn field(field: impl Into<String>, description: impl Into<String>) -> Self {
        Self::Invalid(FieldViolations::one(field, description))
    }

    /// The request id was used before with another request.
    pub fn request_id_reused(request_id: &str) -> Self {
        Self::RequestIdReused {
            request_id: request_id.to_owned(),
            violations: FieldViolations::one("request_id", "was used before with another request"),
        }
    }

    /// A fault of ours while doing `operation`.
    pub fn internal(operation: &'static str, source: impl Into<Source>) -> Self {
        Self::Internal {
            operation,
            source: source.into(),
        }
    }

    /// Stored data that cannot be what was written.
    pub fn damaged(source: impl Into<Source>) -> Self {
        Self::Damaged { source: source.into() }
    }
}

impl From<FieldViolations> for Error {
    fn from(violations: FieldViolations) -> Self {
        Self::Invalid(violations)
    }
}

impl Fault for Error {
    fn kind(&self) -> ErrorKind {
        match self {
            Self::Invalid(_) | Self::RequestIdReused { .. } => ErrorKind::InvalidInput,
            Self::SessionNotFound { .. }
            | Self::SessionDeleted { .. }
            | Self::MessageNotFound { .. }
            | Self::TurnNotFound { .. }
            | Self::BackupNotFound { .. } => ErrorKind::NotFound,
            Self::SessionExists { .. } => ErrorKind::AlreadyExists,
            Self::TurnRunning { .. }
            | Self::StaleFence { .. }
            | Self::SequenceMismatch { .. }
            | Self::EtagMismatch { .. } => ErrorKind::Conflict,
            Self::InContext { .. } | Self::BackupUnusable { .. } => ErrorKind::Precondition,
            Self::MessageTooLarge { .. } | Self::StoreFull => ErrorKind::Exhausted,
            Self::StoreUnavailable { .. } => ErrorKind::Unavailable,
            Self::Damaged { .. } => ErrorKind::DataLoss,
            Self::Internal { .. } => ErrorKind::Internal,
        }
    }

    fn reason(&self) -> &'static str {
        match self {
            Self::Invalid(_) => "INVALID_REQUEST",
            Self::RequestIdReused { .. } => "REQUEST_ID_REUSED",
            Self::SessionNotFound { .. } => "SESSION_NOT_FOUND",
            Self::SessionDeleted { .. } => "SESSION_DELETED",
            Self::SessionExists { .. } => "SESSION_EXISTS",
            Self::MessageNotFound { .. } => "MESSAGE_NOT_FOUND",
            Self::TurnNotFound { .. } => "TURN_NOT_FOUND",
            Self::TurnRunning { .. } => "TURN_RUNNING",
            Self::StaleFence { .. } => "STALE_FENCE",
            Self::SequenceMismatch { .. } => "SEQUENCE_MISMATCH",
            Self::EtagMismatch { .. } => "ETAG_MISMATCH",
            Self::InContext { .. } => "IN_CONTEXT",
            Self::BackupNotFound { .. } => "BACKUP_NOT_FOUND",
            Self::BackupUnusable { .. } => "BACKUP_UNUSABLE",
            Self::MessageTooLarge { .. } => "MESSAGE_TOO_LARGE",
            Self::StoreUnavailable { .. } => "DEPENDENCY_UNAVAILABLE",
            Self::StoreFull => "STORAGE_FULL",
            Self::Damaged { .. } => "DATA_DAMAGED",
            Self::Internal { .. } => "INTERNAL",
        }
    }

    fn metadata(&self) -> Vec<(&'static str, String)> {
        match self {
            Self::RequestIdReused { request_id, .. } => vec![("requestId", request_id.clone())],
            Self::SessionNotFound { session }
            | Self::SessionDeleted { session }
            | Self::SessionExists { session }
            | Self::InContext { session } => {
                vec![("session", session.clone())]
            }
            Self::MessageNotFound { session, seq } => vec![("session", session.clone()), ("seq", seq.to_string())],
            Self::TurnNotFound { turn } => vec![("turn", turn.clone())],
            Self::TurnRunning { turn, holder } => vec![("turn", turn.clone()), ("holder", holder.clone())],
            Self::StaleFence { fence, current } => {
                vec![("fence", fence.to_string()), ("current", current.to_string())]
            }
            Self::SequenceMismatch { expected, current } => {
                vec![("expected", expected.to_string()), ("current", current.to_string())]
            }
            Self::EtagMismatch { expected, current } => {
                vec![("expected", expected.clone()), ("current", current.clone())]
            }
            Self::BackupNotFound { backup } => vec![("backup", backup.clone())],
            Self::BackupUnusable { backup, problem } => {
                vec![("backup", backup.clone()), ("problem", problem.clone())]
            }
            Self::MessageTooLarge { limit, actual } => {
                vec![("limit", limit.to_string()), ("actual", actual.to_string())]
            }
            Self::StoreUnavailable { .. } => vec![("dependency", "session store".to_owned())],
            Self::Invalid(_) | Self::StoreFull | Self::Damaged { .. } | Self::Internal { .. } => Vec::new(),
        }
    }

    fn violations(&self) -> &[FieldViolation] {
        match self {
            Self::Invalid(violations) | Self::RequestIdReused { violations, .. } => violations.as_slice(),
            _ => &[],
        }
    }

    fn resource(&self) -> Option<ResourceRef> {
        match self {
            Self::SessionNotFound { session } | Self::SessionDeleted { session } | Self::SessionExists { session } => {
                Some(ResourceRef {
                    resource_type: "recall.steward.dev/Session",
                    name: session.clone(),
                })
            }
            Self::MessageNotFound { session, seq } => Some(ResourceRef {
                resource_type: "recall.steward.dev/Message",
                name: format!("{session}/messages/{seq}"),
            }),
            Self::BackupNotFound { backup } => Some(ResourceRef {
                resource_type: "recall.steward.dev/Backup",
                name: backup.clone(),
            }),
            Self::TurnNotFound { turn } => Some(ResourceRef {
                resource_type: "recall.steward.dev/Turn",
                name: turn.clone(),
            }),
            _ => None,
        }
    }
}
