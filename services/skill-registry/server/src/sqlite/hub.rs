//! The hub's tables: quarantine items, locks, accepted findings, the log. Each function is one transaction or a part of
//! one; the bytes are blobs beside those of the library.

mod publications;
mod read;
mod revoked;
mod write;

use std::collections::BTreeSet;

use steward_base::error_chain;
use steward_runtime::failpoint;
use steward_skill_core::record::FileEntry;
use steward_skill_core::store::{Change, CommitError};
use steward_skill_hub::audit::Entry;
use steward_skill_hub::error::StoreError as HubError;
use steward_skill_hub::publish::Publication;
use steward_skill_hub::quarantine::Item;
use steward_skill_hub::store::Installed;
use steward_skill_hub::withdrawal::Withdrawal;
use steward_skill_scanner::Suppression;
use steward_store::StoreError;

use super::SqliteSkillStore;
use super::write::Failure;

pub(super) use revoked::check as check_revoked;
pub(crate) use write::{Happened, Removed, Settled, Stored, Withdrawn};

/// Why a transaction of the hub is rolled back.
#[derive(Debug)]
pub(crate) enum HubFailure {
    /// The library's part failed.
    Library(CommitError),
    /// What the change rests on is no longer so.
    Conflict(&'static str),
    /// The database failed, or a row cannot be read.
    Failed(String),
}

impl From<StoreError> for HubFailure {
    fn from(error: StoreError) -> Self {
        Self::Failed(error_chain(&error))
    }
}

impl From<sqlx::Error> for HubFailure {
    fn from(error: sqlx::Error) -> Self {
        StoreError::from(error).into()
    }
}

impl From<serde_json::Error> for HubFailure {
    fn from(error: serde_json::Error) -> Self {
        Self::Failed(format!("a row of the hub: {error}"))
    }
}

impl From<Failure> for HubFailure {
    fn from(failure: Failure) -> Self {
        Self::Library(failure.into_commit_error())
    }
}

impl From<HubFailure> for HubError {
    fn from(failure: HubFailure) -> Self {
        match failure {
            HubFailure::Conflict(problem) => Self::conflict(problem),
            HubFailure::Failed(problem) => Self::failed(problem),
            HubFailure::Library(error) => Self::failed(error_chain(&error)),
        }
    }
}

/// The files of an item without their bytes.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Manifest {
    /// In path order, as the library writes them.
    pub(crate) files: Vec<FileEntry>,
    /// Paths that may be executed.
    pub(crate) executables: BTreeSet<String>,
}

impl SqliteSkillStore {
    pub(crate) async fn hub_put_item(&self, stored: Stored) -> Result<(), HubFailure> {
        self.sqlite
            .write(move |connection| Box::pin(write::put_item(connection, stored)))
            .await
    }

    pub(crate) async fn hub_item(&self, team: &str, id: &str) -> Result<Option<Item>, HubFailure> {
        read::item(&mut *self.sqlite.read().await?, team, id).await
    }

    pub(crate) async fn hub_items(
        &self,
        team: &str,
        after: Option<&str>,
        limit: usize,
    ) -> Result<Vec<Item>, HubFailure> {
        read::items(&mut *self.sqlite.read().await?, team, after, limit).await
    }

    pub(crate) async fn hub_open_items(&self, team: &str) -> Result<usize, HubFailure> {
        read::open_items(&mut *self.sqlite.read().await?, team).await
    }

    pub(crate) async fn hub_manifest(&self, team: &str, item: &str) -> Result<Manifest, HubFailure> {
        read::manifest(&mut *self.sqlite.read().await?, team, item).await
    }

    /// The library's changes, the lock, the item's state and the log, together or not at all.
    pub(crate) async fn hub_install(&self, changes: Vec<Change>, settled: Settled) -> Result<(), HubFailure> {
        failpoint::hit("hub.install.before");
        let written = self
            .sqlite
            .write(move |connection| Box::pin(write::install(connection, changes, settled)))
            .await;
        failpoint::hit("hub.install.after");
        written
    }

    pub(crate) async fn hub_remove(&self, changes: Vec<Change>, removed: Removed) -> Result<(), HubFailure> {
        self.sqlite
            .write(move |connection| Box::pin(write::remove(connection, changes, removed)))
            .await
    }

    pub(crate) async fn hub_installed(&self, team: &str, name: &str) -> Result<Option<Installed>, HubFailure> {
        read::installed(&mut *self.sqlite.read().await?, team, name).await
    }

    pub(crate) async fn hub_all_installed(&self, team: &str) -> Result<Vec<Installed>, HubFailure> {
        read::all_installed(&mut *self.sqlite.read().await?, team).await
    }

    /// The library's changes, the withdrawal and the log, together or not at all.
    pub(crate) async fn hub_withdraw(&self, changes: Vec<Change>, withdrawn: Withdrawn) -> Result<(), HubFailure> {
        self.sqlite
            .write(move |connection| Box::pin(write::withdraw(connection, changes, withdrawn)))
            .await
    }

    pub(crate) async fn hub_withdrawal(&self, team: &str, digest: &str) -> Result<Option<Withdrawal>, HubFailure> {
        read::withdrawal(&mut *self.sqlite.read().await?, team, digest).await
    }

    pub(crate) async fn hub_withdrawals(&self, team: &str) -> Result<Vec<Withdrawal>, HubFailure> {
        read::withdrawals(&mut *self.sqlite.read().await?, team).await
    }

    pub(crate) async fn hub_publish(
        &self,
        publication: Publication,
        archive: Vec<u8>,
        happened: Happened,
    ) -> Result<(), HubFailure> {
        self.sqlite
            .write(move |connection| Box::pin(publications::publish(connection, publication, archive, happened)))
            .await
    }

    pub(crate) async fn hub_unpublish(&self, name: String, happened: Happened) -> Result<bool, HubFailure> {
        self.sqlite
            .write(move |connection| Box::pin(publications::unpublish(connection, name, happened)))
            .await
    }

    pub(crate) async fn hub_publications(&self, team: &str) -> Result<Vec<Publication>, HubFailure> {
        publications::all(&mut *self.sqlite.read().await?, team).await
    }

    pub(crate) async fn hub_archive(
        &self,
        team: &str,
        name: &str,
        digest: &str,
    ) -> Result<Option<Vec<u8>>, HubFailure> {
        publications::archive(&mut *self.sqlite.read().await?, team, name, digest).await
    }

    /// Teams for which something is installed or waits in quarantine.
    pub(crate) async fn hub_teams(&self) -> Result<Vec<String>, HubFailure> {
        read::teams(&mut *self.sqlite.read().await?).await
    }

    /// Teams for which anything is installed and not yet scanned all together by these rules.
    pub(crate) async fn hub_teams_to_rescan(&self, rule_set: &str) -> Result<Vec<String>, HubFailure> {
        read::teams_to_rescan(&mut *self.sqlite.read().await?, rule_set).await
    }

    pub(crate) async fn hub_rescanned(&self, team: String, rule_set: String) -> Result<(), HubFailure> {
        self.sqlite
            .write(move |connection| Box::pin(write::rescanned(connection, team, rule_set)))
            .await
    }

    pub(crate) async fn hub_accepted(&self, team: &str) -> Result<Vec<Suppression>, HubFailure> {
        read::accepted(&mut *self.sqlite.read().await?, team).await
    }

    pub(crate) async fn hub_accept(&self, suppression: Suppression, happened: Happened) -> Result<(), HubFailure> {
        self.sqlite
            .write(move |connection| Box::pin(write::accept(connection, suppression, happened)))
            .await
    }

    pub(crate) async fn hub_record(&self, happened: Happened) -> Result<(), HubFailure> {
        self.sqlite
            .write(move |connection| Box::pin(async move { write::append(connection, happened).await }))
            .await
    }

    pub(crate) async fn hub_log(&self, team: &str, after: u64, limit: usize) -> Result<Vec<Entry>, HubFailure> {
        read::log(&mut *self.sqlite.read().await?, team, after, limit).await
    }
}
