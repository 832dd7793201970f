//! Everything agent-orchestrator can refuse or fail with when people talk to the agent, one variant per cause. Reasons
//! and their metadata are documented in `steward/agent/v1/error_reason.proto` and
//! `steward/common/v1/error_reason.proto`.
//!
//! No variant holds a word of a model provider: what a provider says may repeat a key or somebody's prompt.

use std::time::Duration;

use steward_base::{ErrorKind, Fault, FieldViolation, FieldViolations, ResourceRef};

/// A source that is not ours.
pub type Source = Box<dyn std::error::Error + Send + Sync>;

/// Why an operation on sessions, turns or models did not happen.
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
    /// No such turn.
    #[error("turn {turn} does not exist in the session")]
    TurnNotFound {
        /// Turn id.
        turn: String,
    },
    /// A turn runs in the session (`T-7`).
    #[error("turn {turn} is running in this session")]
    TurnRunning {
        /// The turn.
        turn: String,
    },
    /// There is nothing to steer.
    #[error("no turn is running in session {session}")]
    NoTurnToSteer {
        /// Full resource name.
        session: String,
    },
    /// There is nothing that waits for tool results.
    #[error("no calls are waiting for results in session {session}")]
    NoOpenCalls {
        /// Full resource name.
        session: String,
    },
    /// The results do not answer exactly the open calls.
    #[error("the tool results do not match the open calls: {violations}")]
    CallsMismatch {
        /// The turn that waits.
        turn: String,
        /// Each result too many and each one that is missing.
        violations: FieldViolations,
    },
    /// No model endpoint is set.
    #[error("no model is configured; set agent.model.base_url and agent.model.name")]
    ModelNotConfigured,
    /// The named model is not a configured one.
    #[error("model {model} is not configured")]
    ModelUnknown {
        /// What was named.
        model: String,
    },
    /// The provider does not answer.
    #[error("the provider of model {model} does not answer or is overloaded")]
    ModelUnavailable {
        /// The model.
        model: String,
        /// When it wants to be asked again.
        retry_after: Option<Duration>,
    },
    /// The provider refuses the request or the key.
    #[error("the provider of model {model} refused the request or the key (status {status})")]
    ModelRefused {
        /// The model.
        model: String,
        /// HTTP status; 0 when it came inside a stream.
        status: u16,
    },
    /// The provider's limit is reached.
    #[error("the rate limit or quota at the provider of model {model} is used up")]
    ModelQuota {
        /// The model.
        model: String,
        /// When it wants to be asked again.
        retry_after: Option<Duration>,
    },
    /// The conversation does not fit the model.
    #[error("the conversation no longer fits the window of model {model}")]
    ContextTooLong {
        /// The model.
        model: String,
    },
    /// What came from the provider cannot be used.
    #[error("the answer of model {model} was cut off, empty or malformed")]
    ModelAnswerInvalid {
        /// The model.
        model: String,
    },
    /// The turn used up its model calls (`T-1`).
    #[error("the turn used up its {limit} model calls without a final answer")]
    IterationsSpent {
        /// The limit.
        limit: u32,
    },
    /// A client tool's name is taken.
    #[error("the name {tool} belongs to a built-in tool or to another client tool")]
    ToolNameTaken {
        /// The name.
        tool: String,
    },
    /// The session is not as the caller read it.
    #[error("session {session} is not as it was read: it is at {current}, not at {expected}")]
    SessionChanged {
        /// Full resource name.
        session: String,
        /// What the caller expected: an etag, or the number of the last message.
        expected: String,
        /// What it is.
        current: String,
    },
    /// Another process has taken the session over; this one must stop (`T-7`).
    #[error("fence {fence} is not the current one, {current}")]
    StaleFence {
        /// Ours.
        fence: u64,
        /// The present one, where it is known.
        current: String,
    },
    /// A store or another service does not answer.
    #[error("{dependency} does not answer")]
    Unavailable {
        /// Which one.
        dependency: &'static str,
        /// What happened.
        #[source]
        source: Source,
    },
    /// A store has no room left; nothing was changed.
    #[error("the disk is full; nothing was changed")]
    StorageFull,
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

    /// Whether the same message may succeed later, as a failed turn says it.
    pub fn may_succeed_later(&self) -> bool {
        match self.kind() {
            ErrorKind::Unavailable | ErrorKind::Timeout => true,
            ErrorKind::Exhausted => matches!(self, Self::ModelQuota { .. } | Self::StorageFull),
            _ => false,
        }
    }

    /// The sentence for people: what a caller would be told, too.
    pub fn public_message(&self) -> String {
        match self {
            Self::Internal { .. } => "something went wrong inside Steward; the log has the details".to_owned(),
            other => other.to_string(),
        }
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
            Self::Invalid(_)
            | Self::RequestIdReused { .. }
            | Self::CallsMismatch { .. }
            | Self::ModelUnknown { .. }
            | Self::ToolNameTaken { .. } => ErrorKind::InvalidInput,
            Self::SessionNotFound { .. } | Self::TurnNotFound { .. } => ErrorKind::NotFound,
            Self::TurnRunning { .. } | Self::SessionChanged { .. } | Self::StaleFence { .. } => ErrorKind::Conflict,
            Self::NoTurnToSteer { .. }
            | Self::NoOpenCalls { .. }
            | Self::ModelNotConfigured
            | Self::ModelRefused { .. }
            | Self::ContextTooLong { .. } => ErrorKind::Precondition,
            Self::ModelQuota { .. } | Self::IterationsSpent { .. } | Self::StorageFull => ErrorKind::Exhausted,
            Self::ModelUnavailable { .. } | Self::ModelAnswerInvalid { .. } | Self::Unavailable { .. } => {
                ErrorKind::Unavailable
            }
            Self::Internal { .. } => ErrorKind::Internal,
        }
    }

    fn reason(&self) -> &'static str {
        match self {
            Self::Invalid(_) => "INVALID_REQUEST",
            Self::RequestIdReused { .. } => "REQUEST_ID_REUSED",
            Self::SessionNotFound { .. } => "SESSION_NOT_FOUND",
            Self::TurnNotFound { .. } => "TURN_NOT_FOUND",
            Self::TurnRunning { .. } => "TURN_RUNNING",
            Self::NoTurnToSteer { .. } => "NO_TURN_TO_STEER",
            Self::NoOpenCalls { .. } => "NO_OPEN_CALLS",
            Self::CallsMismatch { .. } => "CALLS_MISMATCH",
            Self::ModelNotConfigured => "MODEL_NOT_CONFIGURED",
            Self::ModelUnknown { .. } => "MODEL_UNKNOWN",
            Self::ModelUnavailable { .. } => "MODEL_UNAVAILABLE",
            Self::ModelRefused { .. } => "MODEL_REFUSED",
            Self::ModelQuota { .. } => "MODEL_QUOTA",
            Self::ContextTooLong { .. } => "CONTEXT_TOO_LONG",
            Self::ModelAnswerInvalid { .. } => "MODEL_ANSWER_INVALID",
            Self::IterationsSpent { .. } => "ITERATIONS_SPENT",
            Self::ToolNameTaken { .. } => "TOOL_NAME_TAKEN",
            Self::SessionChanged { .. } => "ETAG_MISMATCH",
            Self::StaleFence { .. } => "STALE_FENCE",
            Self::Unavailable { .. } => "DEPENDENCY_UNAVAILABLE",
            Self::StorageFull => "STORAGE_FULL",
            Self::Internal { .. } => "INTERNAL",
        }
    }

    fn metadata(&self) -> Vec<(&'static str, String)> {
        match self {
            Self::RequestIdReused { request_id, .. } => vec![("requestId", request_id.clone())],
            Self::SessionNotFound { session } | Self::NoTurnToSteer { session } | Self::NoOpenCalls { session } => {
                vec![("session", session.clone())]
            }
            Self::TurnNotFound { turn } | Self::TurnRunning { turn } | Self::CallsMismatch { turn, .. } => {
                vec![("turn", turn.clone())]
            }
            Self::ModelRefused { model, status } => vec![("model", model.clone()), ("status", status.to_string())],
            Self::ModelUnknown { model }
            | Self::ModelUnavailable { model, .. }
            | Self::ModelQuota { model, .. }
            | Self::ContextTooLong { model }
            | Self::ModelAnswerInvalid { model } => vec![("model", model.clone())],
            Self::IterationsSpent { limit } => vec![("limit", limit.to_string())],
            Self::ToolNameTaken { tool } => vec![("tool", tool.clone())],
            Self::SessionChanged { expected, current, .. } => {
                vec![("expected", expected.clone()), ("current", current.clone())]
            }
            Self::StaleFence { fence, current } => vec![("fence", fence.to_string()), ("current", current.clone())],
            Self::Unavailable { dependency, .. } => vec![("dependency", (*dependency).to_owned())],
            Self::Invalid(_) | Self::ModelNotConfigured | Self::StorageFull | Self::Internal { .. } => Vec::new(),
        }
    }

    fn violations(&self) -> &[FieldViolation] {
        match self {
            Self::Invalid(violations)
            | Self::RequestIdReused { violations, .. }
            | Self::CallsMismatch { violations, .. } => violations.as_slice(),
            _ => &[],
        }
    }

    fn resource(&self) -> Option<ResourceRef> {
        let (resource_type, name) = match self {
            Self::SessionNotFound { session } => ("agent.steward.dev/Session", session.clone()),
            Self::TurnNotFound { turn } => ("agent.steward.dev/Turn", turn.clone()),
            _ => return None,
        };
        Some(ResourceRef { resource_type, name })
    }

    fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::ModelUnavailable { retry_after, .. } | Self::ModelQuota { retry_after, .. } => *retry_after,
            _ => None,
        }
    }
}
