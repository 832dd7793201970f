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
use steward_base::Timestamp;
use steward_base::names::{EntryId, TeamId, UserId};
use steward_memory_core::{
    Book, Decide, Error, Frame, Held, Holding, Listed, MemoryStore, Proposal, ProposalId, ProposalQuery, Receipt,
    Revision, StoreName, Visible,
};
use steward_store::{SqlError, Sqlite, SqliteOptions, StoreError};

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
            on_migrate: None,
            on_open: None,
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

impl From<SqlError> for Failure {
    fn from(error: SqlError) -> Self {
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
        let written = self
            .sqlite
            .update(move |db| write::transact(db, &shared, &frame, decide));
        Ok(written.await?)
    }

    async fn book(&self, store: &StoreName) -> Result<Book, Error> {
        Ok(self.sqlite.view(|db| read::book(db, store)).await?)
    }

    async fn books(&self, stores: &[StoreName]) -> Result<Vec<Book>, Error> {
        let books = self.sqlite.view(|db| {
            stores
                .iter()
                .map(|store| read::book(db, store))
                .collect::<Result<_, _>>()
        });
        Ok(books.await?)
    }

    async fn history(&self, store: &StoreName, entry: &EntryId) -> Result<Vec<Revision>, Error> {
        Ok(self.sqlite.view(|db| read::history(db, store, entry)).await?)
    }

    async fn proposal(&self, team: &TeamId, proposal: &ProposalId) -> Result<Option<Proposal>, Error> {
        Ok(self.sqlite.view(|db| proposals::get(db, team, proposal)).await?)
    }

    async fn proposals(&self, query: &ProposalQuery) -> Result<Vec<Listed>, Error> {
        let query = query.clone();
        Ok(self.sqlite.view_beside(move |db| proposals::page(db, &query)).await?)
    }

    async fn waiting(
        &self,
        team: &TeamId,
        visible: &Visible,
        at: Timestamp,
    ) -> Result<(usize, Option<Timestamp>), Error> {
        let (team, visible) = (team.clone(), visible.clone());
        let waiting = self
            .sqlite
            .view_beside(move |db| proposals::waiting(db, &team, &visible, at));
        Ok(waiting.await?)
    }

    async fn stale(&self, team: &TeamId, user: Option<&UserId>, at: Timestamp) -> Result<usize, Error> {
        let (team, user) = (team.clone(), user.cloned());
        let stale = self
            .sqlite
            .view_beside(move |db| read::stale(db, &team, user.as_ref(), at));
        Ok(stale.await?)
    }

    async fn held(&self, store: &StoreName) -> Result<Vec<Held>, Error> {
        let store = store.clone();
        Ok(self.sqlite.view_beside(move |db| personal::held(db, &store)).await?)
    }

    async fn personal(&self, team: &TeamId, user: &UserId) -> Result<Vec<Holding>, Error> {
        let (team, user) = (team.clone(), user.clone());
        let holdings = self.sqlite.view_beside(move |db| personal::holdings(db, &team, &user));
        Ok(holdings.await?)
    }

    async fn erase(&self, team: &TeamId, user: &UserId, shared: bool, at: Timestamp) -> Result<Receipt, Error> {
        let (team, user) = (team.clone(), user.clone());
        let known = self.shared.known.clone();
        let erased = self.sqlite.update(move |db| {
            let receipt = personal::erase(db, &team, &user, shared, at)?;
            known.forget_all();
            Ok::<_, Failure>(receipt)
        });
        let receipt = erased.await?;
        // What was removed still stands in the log until that is written back.
        if let Err(error) = self.sqlite.checkpoint().await {
            tracing::warn!(%error, "the log could not be written back after an erasure");
        }
        Ok(receipt)
    }
}
