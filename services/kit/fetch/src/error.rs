//! Why a fetch failed, in kinds that callers act on.

use std::time::Duration;

use steward_base::{ErrorKind, Fault};

/// Why nothing was fetched. An answer with an error status is no error here, except where patience is asked for.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FetchError {
    /// Not an address that may be asked: scheme, credentials in it, no host.
    #[error("{url} may not be fetched: {reason}")]
    Address {
        /// The address, without credentials or query.
        url: String,
        /// What is wrong with it.
        reason: &'static str,
    },
    /// The name leads to an address that is not on the public internet.
    #[error("{host} leads to a private or reserved address")]
    Private {
        /// The host.
        host: String,
    },
    /// The name leads nowhere.
    #[error("{host} cannot be resolved")]
    Unresolved {
        /// The host.
        host: String,
    },
    /// More redirects than are followed.
    #[error("{url} redirects more than {limit} times")]
    Redirects {
        /// The first address.
        url: String,
        /// The limit.
        limit: usize,
    },
    /// The answer is larger than what was permitted.
    #[error("the answer of {host} is larger than {limit} bytes")]
    TooLarge {
        /// The host.
        host: String,
        /// The limit in bytes.
        limit: u64,
    },
    /// No whole answer in time.
    #[error("{host} gave no whole answer in time")]
    Timeout {
        /// The host.
        host: String,
    },
    /// The host asks for patience, or was asked as often as is permitted.
    #[error("{host} must not be asked again yet")]
    Later {
        /// The host.
        host: String,
        /// How long to wait.
        retry_after: Duration,
    },
    /// The connection failed.
    #[error("{host} cannot be reached: {problem}")]
    Connection {
        /// The host.
        host: String,
        /// What the transport says.
        problem: String,
    },
}

impl Fault for FetchError {
    fn kind(&self) -> ErrorKind {
        match self {
            Self::Address { .. } => ErrorKind::InvalidInput,
            Self::Private { .. } | Self::Redirects { .. } => ErrorKind::Precondition,
            Self::TooLarge { .. } | Self::Later { .. } => ErrorKind::Exhausted,
            Self::Timeout { .. } => ErrorKind::Timeout,
            Self::Unresolved { .. } | Self::Connection { .. } => ErrorKind::Unavailable,
        }
    }

    fn reason(&self) -> &'static str {
        match self {
            Self::Address { .. } => "FETCH_ADDRESS_REFUSED",
            Self::Private { .. } => "FETCH_PRIVATE_ADDRESS",
            Self::Unresolved { .. } => "FETCH_UNRESOLVED",
            Self::Redirects { .. } => "FETCH_TOO_MANY_REDIRECTS",
            Self::TooLarge { .. } => "FETCH_TOO_LARGE",
            Self::Timeout { .. } => "FETCH_TIMEOUT",
            Self::Later { .. } => "FETCH_LATER",
            Self::Connection { .. } => "FETCH_CONNECTION",
        }
    }

    fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::Later { retry_after, .. } => Some(*retry_after),
            Self::Address { .. }
            | Self::Private { .. }
            | Self::Unresolved { .. }
            | Self::Redirects { .. }
            | Self::TooLarge { .. }
            | Self::Timeout { .. }
            | Self::Connection { .. } => None,
        }
    }
}
