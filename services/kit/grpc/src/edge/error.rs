//! What can go wrong with a call outside of its handler's own errors.

use std::any::Any;

use steward_base::{ErrorKind, Fault};
use steward_runtime::tasks::panic_text;

#[derive(Debug, thiserror::Error)]
pub(super) enum EdgeError {
    /// The caller has stopped waiting; the handler was dropped.
    #[error("the deadline passed")]
    DeadlineExceeded,
    /// The process ends, and with it a stream that only shows something.
    #[error("{service} is stopping")]
    Stopping { service: &'static str },
    /// The audit log takes no records at present, and nothing is done that it could not record.
    #[error("the audit log takes no records at present")]
    NotRecorded,
    /// A bug. The process goes on, this call does not.
    #[error("the handler panicked: {text}")]
    Panicked { text: String },
}

impl EdgeError {
    pub(super) fn panicked(panic: &(dyn Any + Send)) -> Self {
        Self::Panicked {
            text: panic_text(panic).to_owned(),
        }
    }
}

impl Fault for EdgeError {
    fn kind(&self) -> ErrorKind {
        match self {
            Self::DeadlineExceeded => ErrorKind::Timeout,
            Self::Stopping { .. } | Self::NotRecorded => ErrorKind::Unavailable,
            Self::Panicked { .. } => ErrorKind::Internal,
        }
    }

    fn reason(&self) -> &'static str {
        match self {
            Self::DeadlineExceeded => "DEADLINE_EXCEEDED",
            Self::Stopping { .. } | Self::NotRecorded => "DEPENDENCY_UNAVAILABLE",
            Self::Panicked { .. } => "INTERNAL",
        }
    }

    fn metadata(&self) -> Vec<(&'static str, String)> {
        match self {
            Self::Stopping { service } => vec![("dependency", (*service).to_owned())],
            Self::NotRecorded => vec![("dependency", "audit log".to_owned())],
            Self::DeadlineExceeded | Self::Panicked { .. } => Vec::new(),
        }
    }
}
