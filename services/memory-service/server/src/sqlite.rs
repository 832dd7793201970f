//! Memory in SQLite: one database for all teams, `memory.db`. Not a rule here: a write loads, lets the core decide and
//! keeps what it decided, in one transaction.

mod known;
mod personal;
mod proposals;
mod read;
mod rows;
#[cfg(test)]
mod tests;
mod write;

use std::path::PathBuf;
use std::sync::Arc;

use async_trait::async_trait;
use sqlx::Connection as _;
use steward_base::Timestamp;
use steward_base::names::{EntryId, TeamId, UserId};
use steward_memory_core::{
    Book, Decide, Error, Frame, Held, Holding, Listed, MemoryStore, Proposal, ProposalId, ProposalQuery, Receipt,
    Revision, StoreName, Visible,
};
use steward_store::{Sqlite, SqliteOptions, StoreError};

static MIGRATIONS: sqlx::migrate::Migrator = sqlx::migrate!();

/// The [`MemoryStore`] of an installation on one machine.
#[derive(Debug, Clone)]
pub(crate) struct SqliteMemoryStore {
    sqlite: Sqlite,
    shared: Arc<write::Shared>,
}

impl SqliteMemoryStore {
    pub(crate) async fn open(path: PathBuf, readers: u32) -> Result<Self, StoreError> {
        let options = SqliteOptions {
            migrator: &MIGRATIONS,
            readers,
            on_connect: None,
        };
        Ok(Self {
            sqlite: Sqlite::open(path, options).await?,
            shared: Arc::default(),
        })
    }

    /// Writes the log back and lets go of the file.
    pub(crate) async fn close(&self) {
        self.sqlite.close().await;
    }
}

/// A rule's verdict, or a failure of the engine below it.
#[derive(Debug)]
enum Failure {
    Rule(Error),
    Store(StoreError),
}

impl From<StoreError> for Failure {
    fn from(error: StoreError) -> Self {
        Self::Store(error)
    }
}

impl From<sqlx::Error> for Failure {
    fn from(error: sqlx::Error) -> Self {
        Self::Store(error.into())
    }
}

impl From<Failure> for Error {
    fn from(failure: Failure) -> Self {
        match failure {
            Failure::Rule(error) => error,
            Failure::Store(error) => from_store(error),
        }
    }
}

fn from_store(error: StoreError) -> Error {
    match error {
        StoreError::Unavailable { .. } | StoreError::Closed => Error::StoreUnavailable {
            source: Box::new(error),
        },
        StoreError::Full => Error::StorageFull {
            source: Box::new(error),
        },
        StoreError::Damaged { .. } => Error::DataDamaged {
            what: steward_base::error_chain(&error),
        },
        StoreError::InUse { .. }
        | StoreError::NewerSchema { .. }
        | StoreError::Migration { .. }
        | StoreError::Constraint { .. }
        | StoreError::TargetExists { .. }
        | StoreError::Panicked
        | StoreError::Statement { .. } => Error::Internal {
            operation: "using the memory store",
            source: Box::new(error),
        },
    }
}

/// A stored value that is none of those that are ever written.
fn damaged(what: &str, value: &str) -> Failure {
    Failure::Rule(Error::DataDamaged {
        what: format!("{what} {value:?}"),
    })
}

#[async_trait]
impl MemoryStore for SqliteMemoryStore {
    async fn write(&self, frame: Frame, decide: Decide) -> Result<String, Error> {
        let shared = Arc::clone(&self.shared);
        let ask = write::ask(&frame);
        let answer = self.sqlite.write_in_two(ask, move |connection, rows| {
            Box::pin(async move { write::transact(connection, rows, &shared, frame, decide).await })
        });
        Ok(answer.await?)
    }

    async fn book(&self, store: &StoreName) -> Result<Book, Error> {
        let books = self.books(std::slice::from_ref(store)).await?;
        Ok(books.into_iter().next().unwrap_or_default())
    }

    async fn books(&self, stores: &[StoreName]) -> Result<Vec<Book>, Error> {
        let read = async {
            let mut connection = self.sqlite.read().await?;
            // One view for all: a write between two statements must not show.
            let mut view = connection.begin().await?;
            let mut books = Vec::with_capacity(stores.len());
            for store in stores {
                books.push(read::book(&mut view, store).await?);
            }
            view.commit().await?;
            Ok::<_, Failure>(books)
        };
        Ok(read.await?)
    }

    async fn history(&self, store: &StoreName, entry: &EntryId) -> Result<Vec<Revision>, Error> {
        let read = async {
            let mut connection = self.sqlite.read().await?;
            read::history(&mut connection, store, entry).await
        };
        Ok(read.await?)
    }

    async fn proposal(&self, team: &TeamId, proposal: &ProposalId) -> Result<Option<Proposal>, Error> {
        let read = async {
            let mut connection = self.sqlite.read().await?;
            proposals::get(&mut connection, team, proposal).await
        };
        Ok(read.await?)
    }

    async fn proposals(&self, query: &ProposalQuery) -> Result<Vec<Listed>, Error> {
        let read = async {
            let mut connection = self.sqlite.read().await?;
            proposals::page(&mut connection, query).await
        };
        Ok(read.await?)
    }

    async fn waiting(
        &self,
        team: &TeamId,
        visible: &Visible,
        at: Timestamp,
    ) -> Result<(usize, Option<Timestamp>), Error> {
        let read = async {
            let mut connection = self.sqlite.read().await?;
            proposals::waiting(&mut connection, team, visible, at).await
        };
        Ok(read.await?)
    }

    async fn stale(&self, team: &TeamId, user: Option<&UserId>, at: Timestamp) -> Result<usize, Error> {
        let read = async {
            let mut connection = self.sqlite.read().await?;
            read::stale(&mut connection, team, user, at).await
        };
        Ok(read.await?)
    }

    async fn held(&self, store: &StoreName) -> Result<Vec<Held>, Error> {
        let read = async {
            let mut connection = self.sqlite.read().await?;
            personal::held(&mut connection, store).await
        };
        Ok(read.await?)
    }

    async fn personal(&self, team: &TeamId, user: &UserId) -> Result<Vec<Holding>, Error> {
        let read = async {
            let mut connection = self.sqlite.read().await?;
            let mut view = connection.begin().await?;
            let holdings = personal::holdings(&mut view, team, user).await?;
            view.commit().await?;
            Ok::<_, Failure>(holdings)
        };
        Ok(read.await?)
    }

    async fn erase(&self, team: &TeamId, user: &UserId, shared: bool, at: Timestamp) -> Result<Receipt, Error> {
        let (team, user) = (team.clone(), user.clone());
        let known = self.shared.known.clone();
        let erased = self.sqlite.write(move |connection| {
            Box::pin(async move {
                let receipt = personal::erase(connection, &team, &user, shared, at).await?;
                known.forget_all();
                Ok::<_, Failure>(receipt)
            })
        });
        let receipt = erased.await?;
        // What was removed still stands in the log until that is written back.
        if let Err(error) = self.sqlite.checkpoint().await {
            tracing::warn!(%error, "the log could not be written back after an erasure");
        }
        Ok(receipt)
    }
}
