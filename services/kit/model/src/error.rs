//! What can go wrong with a model, by class. The class decides what happens next: try again, compress, or tell the
//! person (`T-10`).

use std::time::Duration;

use steward_base::{ErrorKind, Fault};

use crate::redact::presentable;
use crate::secret::Secret;

/// An error of a model call. Messages are cut, on one line and free of credentials.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ModelError {
    /// Too many requests for now; the same request will be accepted later.
    #[error("the model provider limits the rate of requests: {message}")]
    RateLimited {
        /// What the provider said.
        message: String,
        /// When it said to come back.
        retry_after: Option<Duration>,
    },
    /// The account's allowance is used up; waiting seconds will not help.
    #[error("the quota at the model provider is used up: {message}")]
    QuotaExhausted {
        /// What the provider said.
        message: String,
    },
    /// The conversation does not fit the model's window.
    #[error("the conversation is too long for the model: {message}")]
    ContextTooLong {
        /// What the provider said.
        message: String,
    },
    /// The key is missing, wrong, or not allowed to use the model.
    #[error("the model provider refused the credential (status {status}): {message}")]
    CredentialRefused {
        /// HTTP status.
        status: u16,
        /// What the provider said.
        message: String,
    },
    /// The provider understood the request and will not serve it.
    #[error("the model provider rejected the request (status {status}): {message}")]
    Rejected {
        /// HTTP status; 0 when the error came inside a stream.
        status: u16,
        /// What the provider said.
        message: String,
    },
    /// The provider is overloaded or broken for now.
    #[error("the model provider is not able to answer (status {status}): {message}")]
    Overloaded {
        /// HTTP status; 0 when the error came inside a stream.
        status: u16,
        /// What the provider said.
        message: String,
        /// When it said to come back.
        retry_after: Option<Duration>,
    },
    /// No connection, or it broke.
    #[error("the model provider cannot be reached: {message}")]
    Unreachable {
        /// What the network said.
        message: String,
    },
    /// Nothing came for too long.
    #[error("the model provider sent nothing for too long")]
    TimedOut,
    /// The stream ended before the answer did.
    #[error("the model's answer broke off")]
    BrokenOff,
    /// The answer is not what the protocol says.
    #[error("the model provider sent an unreadable answer: {what}")]
    Unreadable {
        /// What was wrong with it.
        what: String,
    },
    /// The answer is larger than this service accepts.
    #[error("the model's answer is too large: {what} has a limit of {limit} bytes")]
    TooLarge {
        /// Which part.
        what: &'static str,
        /// Its limit in bytes.
        limit: usize,
    },
    /// The model answered with neither text nor a call, twice.
    #[error("the model gave an empty answer")]
    Empty,
    /// The request could not be put into the provider's form.
    #[error("the request to the model is not valid: {what}")]
    InvalidRequest {
        /// What is wrong.
        what: String,
    },
    /// The model is not available to this service: none is configured, or a peer that holds it is gone.
    #[error("no model is available: {what}")]
    NotAvailable {
        /// Why.
        what: String,
    },
}

impl ModelError {
    /// Whether the same request may succeed in a moment.
    pub fn is_retryable(&self) -> bool {
        match self {
            Self::RateLimited { .. }
            | Self::Overloaded { .. }
            | Self::Unreachable { .. }
            | Self::TimedOut
            | Self::BrokenOff => true,
            Self::QuotaExhausted { .. }
            | Self::ContextTooLong { .. }
            | Self::CredentialRefused { .. }
            | Self::Rejected { .. }
            | Self::Unreadable { .. }
            | Self::TooLarge { .. }
            | Self::Empty
            | Self::InvalidRequest { .. }
            | Self::NotAvailable { .. } => false,
        }
    }

    /// Whether compressing the conversation may help (`T-10`).
    pub fn is_context_length(&self) -> bool {
        matches!(self, Self::ContextTooLong { .. })
    }

    /// Whether the account's allowance is used up.
    pub fn is_quota(&self) -> bool {
        matches!(self, Self::QuotaExhausted { .. })
    }

    /// The error that a peer reported by its reason ([`Fault::reason`]); `None` for reasons that are not ours. What the
    /// reason alone does not say is left at a neutral value.
    pub fn from_reason(reason: &str, message: &str, retry_after: Option<Duration>) -> Option<Self> {
        let message = presentable(message, None);
        Some(match reason {
            "MODEL_RATE_LIMITED" => Self::RateLimited { message, retry_after },
            "MODEL_QUOTA_EXHAUSTED" => Self::QuotaExhausted { message },
            "MODEL_CONTEXT_TOO_LONG" => Self::ContextTooLong { message },
            "MODEL_CREDENTIAL_REFUSED" => Self::CredentialRefused { status: 0, message },
            "MODEL_REQUEST_REJECTED" => Self::Rejected { status: 0, message },
            "MODEL_OVERLOADED" => Self::Overloaded {
                status: 0,
                message,
                retry_after,
            },
            "MODEL_UNREACHABLE" => Self::Unreachable { message },
            "MODEL_TIMED_OUT" => Self::TimedOut,
            "MODEL_ANSWER_BROKEN_OFF" => Self::BrokenOff,
            "MODEL_ANSWER_UNREADABLE" => Self::Unreadable { what: message },
            "MODEL_ANSWER_TOO_LARGE" => Self::TooLarge {
                what: "the answer",
                limit: 0,
            },
            "MODEL_ANSWER_EMPTY" => Self::Empty,
            "MODEL_REQUEST_INVALID" => Self::InvalidRequest { what: message },
            "MODEL_NOT_AVAILABLE" => Self::NotAvailable { what: message },
            _ => return None,
        })
    }

    /// Classifies an HTTP error by status, `Retry-After` and what the body says (`T-10`).
    pub(crate) fn from_http(status: u16, retry_after: Option<Duration>, body: &str, key: Option<&Secret>) -> Self {
        let message = presentable(&spoken(body), key);
        let lowered = body.to_lowercase();
        match status {
            400 if speaks_of_money(&lowered) => Self::QuotaExhausted { message },
            401 | 403 => Self::CredentialRefused { status, message },
            402 => Self::QuotaExhausted { message },
            429 if speaks_of_quota(&lowered) && retry_after.is_none_or(|wait| wait > SHORT_WAIT) => {
                Self::QuotaExhausted { message }
            }
            429 => Self::RateLimited { message, retry_after },
            413 => Self::ContextTooLong { message },
            400 | 404 | 422 | 500 if speaks_of_context(&lowered) => Self::ContextTooLong { message },
            408 | 409 | 425 | 500..=599 => Self::Overloaded {
                status,
                message,
                retry_after,
            },
            _ => Self::Rejected { status, message },
        }
    }

    /// Classifies an error that arrived as an event after status 200.
    pub(crate) fn from_stream(error: &serde_json::Value, key: Option<&Secret>) -> Self {
        let body = error.to_string();
        let message = presentable(&spoken(&format!("{{\"error\":{body}}}")), key);
        let lowered = body.to_lowercase();
        let status = error
            .get("code")
            .and_then(serde_json::Value::as_u64)
            .and_then(|code| u16::try_from(code).ok());
        if speaks_of_context(&lowered) {
            return Self::ContextTooLong { message };
        }
        match error.get("type").and_then(serde_json::Value::as_str) {
            Some("authentication_error") => return Self::CredentialRefused { status: 401, message },
            Some("permission_error") => return Self::CredentialRefused { status: 403, message },
            Some("billing_error") => return Self::QuotaExhausted { message },
            Some("not_found_error") => return Self::Rejected { status: 0, message },
            Some("request_too_large") => return Self::ContextTooLong { message },
            _ => {}
        }
        match status {
            Some(status @ 400..=599) => Self::from_http(status, None, &body, key),
            _ if lowered.contains("insufficient_quota") => Self::QuotaExhausted { message },
            _ if lowered.contains("rate_limit") || lowered.contains("rate limit") => Self::RateLimited {
                message,
                retry_after: None,
            },
            _ if lowered.contains("invalid_request") => Self::Rejected { status: 0, message },
            _ => Self::Overloaded {
                status: 0,
                message,
                retry_after: None,
            },
        }
    }
}

/// A limit that is over within this time is a rate, not a quota, whatever the provider calls it.
const SHORT_WAIT: Duration = Duration::from_mins(2);

fn speaks_of_context(lowered: &str) -> bool {
    const SIGNS: [&str; 11] = [
        "context_length",
        "context length",
        "context window",
        "context size",
        "maximum context",
        "context limit",
        "prompt is too long",
        "prompt too long",
        "input is too long",
        "too many input tokens",
        "exceeds the available context",
    ];
    SIGNS.iter().any(|sign| lowered.contains(sign))
}

/// Signs that are clear enough to be believed of a request that was called invalid.
fn speaks_of_money(lowered: &str) -> bool {
    const SIGNS: [&str; 3] = ["insufficient_quota", "credit balance", "api usage limits"];
    SIGNS.iter().any(|sign| lowered.contains(sign))
}

fn speaks_of_quota(lowered: &str) -> bool {
    const SIGNS: [&str; 6] = [
        "insufficient_quota",
        "quota",
        "billing",
        "credit balance",
        "spending limit",
        "usage limit",
    ];
    SIGNS.iter().any(|sign| lowered.contains(sign))
}

/// The human part of an error body: `error.message`, `message` or `detail` where there is one, else the body.
fn spoken(body: &str) -> String {
    let parsed: serde_json::Value = serde_json::from_str(body).unwrap_or_default();
    let found = ["/error/message", "/message", "/detail", "/error"]
        .iter()
        .find_map(|path| parsed.pointer(path).and_then(serde_json::Value::as_str));
    found.unwrap_or(body).to_owned()
}

impl Fault for ModelError {
    fn kind(&self) -> ErrorKind {
        match self {
            Self::QuotaExhausted { .. } => ErrorKind::Exhausted,
            Self::ContextTooLong { .. }
            | Self::CredentialRefused { .. }
            | Self::Rejected { .. }
            | Self::NotAvailable { .. } => ErrorKind::Precondition,
            Self::RateLimited { .. }
            | Self::Overloaded { .. }
            | Self::Unreachable { .. }
            | Self::BrokenOff
            | Self::Unreadable { .. }
            | Self::TooLarge { .. }
            | Self::Empty => ErrorKind::Unavailable,
            Self::TimedOut => ErrorKind::Timeout,
            Self::InvalidRequest { .. } => ErrorKind::InvalidInput,
        }
    }

    fn reason(&self) -> &'static str {
        match self {
            Self::RateLimited { .. } => "MODEL_RATE_LIMITED",
            Self::QuotaExhausted { .. } => "MODEL_QUOTA_EXHAUSTED",
            Self::ContextTooLong { .. } => "MODEL_CONTEXT_TOO_LONG",
            Self::CredentialRefused { .. } => "MODEL_CREDENTIAL_REFUSED",
            Self::Rejected { .. } => "MODEL_REQUEST_REJECTED",
            Self::Overloaded { .. } => "MODEL_OVERLOADED",
            Self::Unreachable { .. } => "MODEL_UNREACHABLE",
            Self::TimedOut => "MODEL_TIMED_OUT",
            Self::BrokenOff => "MODEL_ANSWER_BROKEN_OFF",
            Self::Unreadable { .. } => "MODEL_ANSWER_UNREADABLE",
            Self::TooLarge { .. } => "MODEL_ANSWER_TOO_LARGE",
            Self::Empty => "MODEL_ANSWER_EMPTY",
            Self::InvalidRequest { .. } => "MODEL_REQUEST_INVALID",
            Self::NotAvailable { .. } => "MODEL_NOT_AVAILABLE",
        }
    }

    fn metadata(&self) -> Vec<(&'static str, String)> {
        match self {
            Self::CredentialRefused { status, .. }
            | Self::Rejected { status, .. }
            | Self::Overloaded { status, .. } => {
                vec![("status", status.to_string())]
            }
            Self::TooLarge { what, limit } => vec![("part", (*what).to_owned()), ("limit", limit.to_string())],
            _ => Vec::new(),
        }
    }

    fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::RateLimited { retry_after, .. } | Self::Overloaded { retry_after, .. } => *retry_after,
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests;
