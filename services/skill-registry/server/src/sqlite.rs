//! The skill store on SQLite: one file, `skills.db`, that only this service opens.
//!
//! SQL stands beside the function that runs it: [`read`] for what is asked, [`write`] for the one transaction per
//! change, [`rows`] between columns and records. Rules are not here; the core decides before a change is handed over.

mod erase;
mod hub;
mod library;
mod proposals;
mod read;
mod rows;
mod secrets;
mod shelf;
#[cfg(test)]
mod tests;
mod write;

use std::collections::BTreeSet;
use std::convert::Infallible;
use std::path::Path;
use std::sync::Arc;

use async_trait::async_trait;
use sqlx::migrate::Migrator;
use steward_base::names::{SkillId, TeamId, UserId};
use steward_runtime::failpoint;
use steward_skill_core::error::StoreFault;
use steward_skill_core::name::Scope;
use steward_skill_core::record::{Files, Found, Revision};
use steward_skill_core::store::{Change, CommitError, FirstAnswer, Purge, Reader, SkillStore, View};
use steward_store::{Sqlite, SqliteOptions, StoreError};

use self::write::Failure;
use crate::keyring::Keyring;

pub(crate) use hub::{Happened, HubFailure, Removed, Settled, Stored, Withdrawn};

/// Most bytes of files that are read and hashed on the thread of whoever asks.
const SMALL: u64 = 128 * 1024;

static MIGRATIONS: Migrator = sqlx::migrate!("./migrations");

/// Skills in a SQLite database.
#[derive(Debug, Clone)]
pub(crate) struct SqliteSkillStore {
    sqlite: Sqlite,
    keys: Arc<Keyring>,
}

impl SqliteSkillStore {
    /// Opens the database, making and migrating it as needed.
    pub(crate) async fn open(path: &Path, readers: u32) -> Result<Self, StoreError> {
        let options = SqliteOptions {
            migrator: &MIGRATIONS,
            readers,
            on_migrate: None,
            on_open: None,
        };
        Ok(Self {
            sqlite: Sqlite::open(path, options).await?,
            keys: Arc::new(Keyring::none()),
        })
    }

    /// With keys for secrets; without any, none can be kept.
    #[must_use]
    pub(crate) fn with_keys(mut self, keys: Keyring) -> Self {
        self.keys = Arc::new(keys);
        self
    }

    /// Closes it, with the log written back.
    pub(crate) async fn close(&self) {
        self.sqlite.close().await;
    }
}

/// How a change ended that is not to be kept.
enum DryRun {
    Passed,
    Failed(Failure),
}

impl From<StoreError> for DryRun {
    fn from(error: StoreError) -> Self {
        Self::Failed(error.into())
    }
}

/// What a store error is to the rules.
fn fault(operation: &'static str, error: StoreError) -> StoreFault {
    match error {
        StoreError::Unavailable { .. } | StoreError::Closed | StoreError::InUse { .. } => StoreFault::Unavailable {
            source: Box::new(error),
        },
        StoreError::Full => StoreFault::Full,
        StoreError::Damaged { .. } => StoreFault::Damaged {
            what: "the database file".to_owned(),
        },
        StoreError::NewerSchema { .. }
        | StoreError::Migration { .. }
        | StoreError::Constraint { .. }
        | StoreError::TargetExists { .. }
        | StoreError::Panicked
        | StoreError::Statement { .. } => StoreFault::Internal {
            operation,
            source: Box::new(error),
        },
    }
}

/// Changes the file of a stopped service, as an operator could.
#[cfg(test)]
pub(crate) async fn by_hand(file: &Path, statements: &[&'static str]) {
    use sqlx::{ConnectOptions as _, Connection as _};
    let options = sqlx::sqlite::SqliteConnectOptions::new()
        .filename(file)
        .foreign_keys(false);
    let mut connection = options.connect().await.unwrap();
    for statement in statements {
        sqlx::query(*statement).execute(&mut connection).await.unwrap();
    }
    connection.close().await.unwrap();
}

#[async_trait]
impl SkillStore for SqliteSkillStore {
    async fn first_answer(&self, team: &TeamId, scope: &str, id: &str) -> Result<Option<FirstAnswer>, StoreFault> {
        let found = self.sqlite.view(|db| read::first_answer(db, team, scope, id)).await;
        found.map_err(|error| fault("look up an answer", error))
    }

    async fn list(&self, team: &TeamId, scopes: &[Scope], archived: bool) -> Result<Vec<Found>, StoreFault> {
        let (team, scopes) = (team.clone(), scopes.to_vec());
        let listed = self
            .sqlite
            .view_beside(move |db| read::list(db, &team, &scopes, archived));
        listed.await.map_err(|error| fault("list skills", error))
    }

    async fn named(&self, team: &TeamId, scopes: &[Scope], name: &SkillId) -> Result<Vec<Found>, StoreFault> {
        let found = self.sqlite.view(|db| read::named(db, team, scopes, name)).await;
        found.map_err(|error| fault("find a skill", error))
    }

    async fn revisions(
        &self,
        team: &TeamId,
        uid: &str,
        before: Option<u64>,
        limit: u32,
    ) -> Result<Vec<Revision>, StoreFault> {
        let (team, uid) = (team.clone(), uid.to_owned());
        let listed = self
            .sqlite
            .view_beside(move |db| read::revisions(db, &team, &uid, before, limit));
        listed.await.map_err(|failure| failure.into_fault("list revisions"))
    }

    async fn revision(&self, team: &TeamId, uid: &str, id: &str) -> Result<Option<Revision>, StoreFault> {
        let found = self.sqlite.view(|db| read::revision(db, team, uid, id)).await;
        found.map_err(|failure| failure.into_fault("find a revision"))
    }

    async fn files(&self, team: &TeamId, revision: &Revision) -> Result<Files, StoreFault> {
        let size = revision.files.iter().map(|file| file.size).sum::<u64>();
        let files = if size <= SMALL {
            self.sqlite.view(|db| read::files(db, team, revision)).await
        } else {
            let (team, revision) = (team.clone(), revision.clone());
            self.sqlite
                .view_beside(move |db| read::files(db, &team, &revision))
                .await
        };
        files.map_err(|failure: Failure| failure.into_fault("read files"))
    }

    async fn last_read(&self, team: &TeamId, reader: &Reader, uid: &str) -> Result<Option<String>, StoreFault> {
        let found = self.sqlite.view(|db| read::last_read(db, team, reader, uid)).await;
        found.map_err(|error| fault("look up a reading", error))
    }

    async fn record_view(&self, view: View) -> Result<(), StoreFault> {
        let written = self.sqlite.update(move |db| write::record_view(db, &view)).await;
        written.map_err(|error| fault("count a view", error))
    }

    async fn generation(&self, team: &TeamId) -> Result<u64, StoreFault> {
        let found = self.sqlite.view(|db| read::generation(db, team)).await;
        found.map_err(|error| fault("look for changes", error))
    }

    async fn hidden(&self, team: &TeamId, user: Option<&UserId>) -> Result<BTreeSet<String>, StoreFault> {
        let found = self.sqlite.view(|db| read::hidden(db, team, user)).await;
        found.map_err(|error| fault("list hidden skills", error))
    }

    async fn set_hidden(
        &self,
        team: &TeamId,
        user: Option<&UserId>,
        uid: &str,
        hidden: bool,
    ) -> Result<(), StoreFault> {
        let (team, user, uid) = (team.clone(), shelf::owner(user), uid.to_owned());
        let written = self
            .sqlite
            .update(move |db| write::set_hidden(db, &team, &user, &uid, hidden));
        written.await.map_err(|error| fault("hide a skill", error))
    }

    async fn set_references(&self, team: &TeamId, holder: &str, uids: &[String]) -> Result<(), StoreFault> {
        let (team, holder, uids) = (team.clone(), holder.to_owned(), uids.to_vec());
        let written = self
            .sqlite
            .update(move |db| write::set_references(db, &team, &holder, &uids));
        written
            .await
            .map_err(|error| fault("record what a schedule names", error))
    }

    async fn is_referenced(&self, team: &TeamId, uid: &str) -> Result<bool, StoreFault> {
        let found = self.sqlite.view(|db| read::is_referenced(db, team, uid)).await;
        found.map_err(|error| fault("look for references", error))
    }

    async fn commit(&self, change: Change) -> Result<(), CommitError> {
        failpoint::hit("skill.write.before");
        let written = self.sqlite.update(move |db| write::commit(db, change)).await;
        failpoint::hit("skill.write.after");
        written.map_err(Failure::into_commit_error)
    }

    async fn dry_run(&self, change: Change) -> Result<(), CommitError> {
        let tried = self.sqlite.update(move |db| -> Result<Infallible, DryRun> {
            write::commit(db, change).map_err(DryRun::Failed)?;
            // Undoes it.
            Err(DryRun::Passed)
        });
        match tried.await {
            Err(DryRun::Passed) => Ok(()),
            Err(DryRun::Failed(failure)) => Err(failure.into_commit_error()),
            Ok(never) => match never {},
        }
    }

    async fn purge(&self, purge: Purge) -> Result<u64, CommitError> {
        let purged = self.sqlite.update(move |db| write::purge(db, &purge)).await;
        purged.map_err(Failure::into_commit_error)
    }
}
