//! The other services as this one calls them. Calls run one way: recall, memory and skills never call back.

mod beside;
mod knowledge;
mod recall;
mod recall_convert;

use steward_base::ErrorKind;
use steward_client::{ClientError, ErrorOrigin};
use steward_orchestrator_core::Error;

#[cfg(test)]
pub(crate) use beside::Expanded;
#[cfg(test)]
pub(crate) use beside::ProviderReply;
pub(crate) use beside::{At, Beside, Happened, ProviderCall, RemoteBeside, Told};
pub(crate) use knowledge::{About, Knowledge, Known, Offered, RemoteKnowledge};
pub(crate) use recall::RecallSessions;

/// What an error of a peer is to our caller, where the peer's own reasons were looked at before.
fn failed(dependency: &'static str, operation: &'static str, error: ClientError) -> Error {
    match error.kind {
        ErrorKind::Unavailable | ErrorKind::Timeout => Error::Unavailable {
            dependency,
            source: Box::new(error),
        },
        ErrorKind::Exhausted if error.reason == "STORAGE_FULL" => Error::StorageFull,
        ErrorKind::Internal if error.origin == ErrorOrigin::Transport => Error::Unavailable {
            dependency,
            source: Box::new(error),
        },
        ErrorKind::InvalidInput
        | ErrorKind::NotFound
        | ErrorKind::AlreadyExists
        | ErrorKind::Precondition
        | ErrorKind::Conflict
        | ErrorKind::Exhausted
        | ErrorKind::Unauthenticated
        | ErrorKind::Forbidden
        | ErrorKind::Internal
        | ErrorKind::DataLoss => Error::internal(operation, error),
    }
}

/// A value of the metadata of an error.
fn metadata(error: &ClientError, key: &str) -> String {
    let found = error.metadata.iter().find(|(name, _)| *name == key);
    found.map(|(_, value)| value.clone()).unwrap_or_default()
}
