//! What goes wrong inside a transaction, as a domain error.

use rusqlite::types::FromSqlError;
use steward_recall_core::Error;
use steward_store::StoreError;

/// A domain error that `?` makes from the store's and the driver's.
#[derive(Debug)]
pub(super) struct Failure(pub(super) Error);

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Self(error)
    }
}

impl From<Failure> for Error {
    fn from(failure: Failure) -> Self {
        failure.0
    }
}

impl From<StoreError> for Failure {
    fn from(error: StoreError) -> Self {
        Self(match error {
            StoreError::Full => Error::StoreFull,
            StoreError::Damaged { .. } => Error::damaged(error),
            StoreError::Unavailable { .. } | StoreError::Closed | StoreError::InUse { .. } => Error::StoreUnavailable {
                source: Box::new(error),
            },
            StoreError::NewerSchema { .. }
            | StoreError::Migration { .. }
            | StoreError::Constraint { .. }
            | StoreError::TargetExists { .. }
            | StoreError::Panicked
            | StoreError::Statement { .. } => Error::internal("an operation of the session store", error),
        })
    }
}

impl From<rusqlite::Error> for Failure {
    fn from(error: rusqlite::Error) -> Self {
        StoreError::from(error).into()
    }
}

impl From<FromSqlError> for Failure {
    fn from(error: FromSqlError) -> Self {
        StoreError::Statement { source: error.into() }.into()
    }
}

impl From<serde_json::Error> for Failure {
    fn from(error: serde_json::Error) -> Self {
        Self(Error::damaged(error))
    }
}
