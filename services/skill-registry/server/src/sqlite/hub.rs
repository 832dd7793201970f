//! The hub's tables: quarantine items, locks, accepted findings, the log. Each function is one transaction or a part of
//! one; the bytes are blobs beside those of the library.

mod copies;
mod publications;
mod read;
mod revoked;
mod write;

use std::collections::BTreeSet;

use steward_base::error_chain;
use steward_runtime::failpoint;
use steward_skill_core::error::StoreFault;
use steward_skill_core::record::{FileEntry, SkillRecord};
use steward_skill_core::store::{Change, CommitError};
use steward_skill_hub::audit::Entry;
use steward_skill_hub::error::StoreError as HubError;
use steward_skill_hub::publish::Publication;
use steward_skill_hub::quarantine::Item;
use steward_skill_hub::store::Installed;
use steward_skill_hub::withdrawal::Withdrawal;
use steward_skill_scanner::Suppression;
use steward_store::{Db, SqlError, StoreError};

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

impl From<SqlError> for HubFailure {
    fn from(error: SqlError) -> Self {
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
    /// A read of a team's rows that may be many or large.
    async fn beside<T: Send + 'static>(
        &self,
        team: &str,
        read: impl FnOnce(Db<'_>, &str) -> Result<T, HubFailure> + Send + 'static,
    ) -> Result<T, HubFailure> {
        let team = team.to_owned();
        self.sqlite.view_beside(move |db| read(db, &team)).await
    }

    pub(crate) async fn hub_put_item(&self, stored: Stored) -> Result<(), HubFailure> {
        self.sqlite.update(move |db| write::put_item(db, stored)).await
    }

    pub(crate) async fn hub_item(&self, team: &str, id: &str) -> Result<Option<Item>, HubFailure> {
        let id = id.to_owned();
        self.beside(team, move |db, team| read::item(db, team, &id)).await
    }

    pub(crate) async fn hub_items(
        &self,
        team: &str,
        after: Option<&str>,
        limit: usize,
    ) -> Result<Vec<Item>, HubFailure> {
        let after = after.map(str::to_owned);
        self.beside(team, move |db, team| read::items(db, team, after.as_deref(), limit))
            .await
    }

    pub(crate) async fn hub_open_items(&self, team: &str) -> Result<usize, HubFailure> {
        self.sqlite.view(|db| read::open_items(db, team)).await
    }

    pub(crate) async fn hub_manifest(&self, team: &str, item: &str) -> Result<Manifest, HubFailure> {
        self.sqlite.view(|db| read::manifest(db, team, item)).await
    }

    /// The library's changes, the lock, the item's state and the log, together or not at all.
    pub(crate) async fn hub_install(&self, changes: Vec<Change>, settled: Settled) -> Result<(), HubFailure> {
        failpoint::hit("hub.install.before");
        let written = self.sqlite.update(move |db| write::install(db, changes, settled)).await;
        failpoint::hit("hub.install.after");
        written
    }

    pub(crate) async fn hub_remove(&self, changes: Vec<Change>, removed: Removed) -> Result<(), HubFailure> {
        self.sqlite.update(move |db| write::remove(db, changes, removed)).await
    }

    pub(crate) async fn hub_installed(&self, team: &str, name: &str) -> Result<Option<Installed>, HubFailure> {
        self.sqlite.view(|db| read::installed(db, team, name)).await
    }

    pub(crate) async fn hub_all_installed(&self, team: &str) -> Result<Vec<Installed>, HubFailure> {
        self.beside(team, read::all_installed).await
    }

    /// The library's changes, the withdrawal and the log, together or not at all.
    pub(crate) async fn hub_withdraw(&self, changes: Vec<Change>, withdrawn: Withdrawn) -> Result<(), HubFailure> {
        self.sqlite
            .update(move |db| write::withdraw(db, changes, withdrawn))
            .await
    }

    /// The skills that a withdrawal takes out of sight, or that its end brings back.
    pub(crate) async fn hub_copies(&self, withdrawn: &Withdrawn) -> Result<Vec<SkillRecord>, StoreFault> {
        let (team, digest) = (withdrawn.happened.team.clone(), withdrawn.digest.clone());
        let copies = if withdrawn.revokes() {
            self.sqlite
                .view_beside(move |db| copies::in_use(db, &team, &digest))
                .await
        } else {
            self.sqlite
                .view_beside(move |db| copies::hidden(db, &team, &digest))
                .await
        };
        copies.map_err(|failure| failure.into_fault("find the copies of a tree"))
    }

    pub(crate) async fn hub_withdrawal(&self, team: &str, digest: &str) -> Result<Option<Withdrawal>, HubFailure> {
        self.sqlite.view(|db| read::withdrawal(db, team, digest)).await
    }

    pub(crate) async fn hub_withdrawals(&self, team: &str) -> Result<Vec<Withdrawal>, HubFailure> {
        self.beside(team, read::withdrawals).await
    }

    pub(crate) async fn hub_publish(
        &self,
        publication: Publication,
        archive: Vec<u8>,
        happened: Happened,
    ) -> Result<(), HubFailure> {
        self.sqlite
            .update(move |db| publications::publish(db, &publication, &archive, happened))
            .await
    }

    pub(crate) async fn hub_unpublish(&self, name: String, happened: Happened) -> Result<bool, HubFailure> {
        self.sqlite
            .update(move |db| publications::unpublish(db, &name, happened))
            .await
    }

    pub(crate) async fn hub_publications(&self, team: &str) -> Result<Vec<Publication>, HubFailure> {
        self.beside(team, publications::all).await
    }

    pub(crate) async fn hub_archive(
        &self,
        team: &str,
        name: &str,
        digest: &str,
    ) -> Result<Option<Vec<u8>>, HubFailure> {
        let (name, digest) = (name.to_owned(), digest.to_owned());
        self.beside(team, move |db, team| publications::archive(db, team, &name, &digest))
            .await
    }

    /// Teams for which something is installed or waits in quarantine.
    pub(crate) async fn hub_teams(&self) -> Result<Vec<String>, HubFailure> {
        self.sqlite.view_beside(read::teams).await
    }

    /// Teams for which anything is installed and not yet scanned all together by these rules.
    pub(crate) async fn hub_teams_to_rescan(&self, rule_set: &str) -> Result<Vec<String>, HubFailure> {
        let rule_set = rule_set.to_owned();
        self.sqlite
            .view_beside(move |db| read::teams_to_rescan(db, &rule_set))
            .await
    }

    pub(crate) async fn hub_rescanned(&self, team: String, rule_set: String) -> Result<(), HubFailure> {
        self.sqlite
            .update(move |db| write::rescanned(db, &team, &rule_set))
            .await
    }

    pub(crate) async fn hub_accepted(&self, team: &str) -> Result<Vec<Suppression>, HubFailure> {
        self.beside(team, read::accepted).await
    }

    pub(crate) async fn hub_accept(&self, suppression: Suppression, happened: Happened) -> Result<(), HubFailure> {
        self.sqlite
            .update(move |db| write::accept(db, &suppression, happened))
            .await
    }

    pub(crate) async fn hub_record(&self, happened: Happened) -> Result<(), HubFailure> {
        self.sqlite.update(move |db| write::append(db, happened)).await
    }

    pub(crate) async fn hub_log(&self, team: &str, after: u64, limit: usize) -> Result<Vec<Entry>, HubFailure> {
        self.beside(team, move |db, team| read::log(db, team, after, limit))
            .await
    }
}
