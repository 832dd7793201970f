//! One file per team, of which a bounded number is open.
//!
//! A file is opened once however many ask at the same time, and closed when it is the one that nobody has used for
//! longest. Files in use are never closed.

use std::collections::{BTreeSet, HashMap};
use std::ops::Deref;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use steward_base::error_chain;
use steward_base::names::TeamId;
use steward_store::{Sqlite, SqliteOptions, StoreError};
use tokio::time::{Instant, timeout};

use super::catch_up::{self, Progress};
use super::failure::Failure;
use super::{files, index};
use crate::fts;

pub(super) static MIGRATIONS: sqlx::migrate::Migrator = sqlx::migrate!("./migrations");

/// Read-only connections of one team.
const READERS: u32 = 4;

/// How long the closing of a file waits for its index, and the closing of all of them.
const LAST_CALL: Duration = Duration::from_secs(1);
const LAST_CALLS: Duration = Duration::from_secs(3);

/// An open file, and how far its index is.
#[derive(Debug)]
pub(super) struct TeamFile {
    sqlite: Sqlite,
    pub(super) progress: Progress,
}

impl Deref for TeamFile {
    type Target = Sqlite;

    fn deref(&self) -> &Sqlite {
        &self.sqlite
    }
}

impl TeamFile {
    /// Closes it, with its index up to date if that does not take longer. If it does, the rest waits in the file.
    async fn close_within(&self, patience: Duration) {
        if self.progress.is_behind() {
            match timeout(patience, catch_up::bring(&self.sqlite, &self.progress)).await {
                Ok(Ok(())) => {}
                Ok(Err(Failure(error))) => {
                    tracing::warn!(path = %self.path().display(), error = error_chain(&error), "messages wait for the index");
                }
                Err(_) => tracing::info!(path = %self.path().display(), "messages wait for the index"),
            }
        }
        self.sqlite.close().await;
    }
}

/// The open files.
#[derive(Debug)]
pub(super) struct Teams {
    folder: PathBuf,
    max_open: usize,
    slots: Mutex<Slots>,
}

#[derive(Debug, Default)]
struct Slots {
    by_team: HashMap<TeamId, Arc<Slot>>,
    /// Counts uses, as a clock that only this module knows.
    uses: u64,
}

#[derive(Debug, Default)]
struct Slot {
    /// Held while the file is opened or closed, so that both happen once and never at the same time.
    open: tokio::sync::Mutex<Option<Arc<TeamFile>>>,
    last_use: Mutex<u64>,
}

/// How every file of sessions is opened.
pub(super) fn options() -> SqliteOptions {
    SqliteOptions {
        migrator: &MIGRATIONS,
        readers: READERS,
        on_migrate: Some(fts::register_to_migrate),
        on_open: Some(fts::register_tokenizer),
    }
}

/// Whether a team without a file gets one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Missing {
    Create,
    Leave,
}

impl Teams {
    pub(super) fn new(folder: PathBuf, max_open: usize) -> Self {
        Self {
            folder,
            max_open: max_open.max(1),
            slots: Mutex::default(),
        }
    }

    /// Teams that have a file.
    pub(super) async fn known(&self) -> Result<BTreeSet<TeamId>, Failure> {
        let mut teams = BTreeSet::new();
        let mut files = match tokio::fs::read_dir(&self.folder).await {
            Ok(files) => files,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(teams),
            Err(error) => return Err(unavailable(error)),
        };
        while let Some(file) = files.next_entry().await.map_err(unavailable)? {
            let path = file.path();
            let is_database = path.extension().is_some_and(|extension| extension == "db");
            let stem = path.file_stem().and_then(|stem| stem.to_str());
            if let Some(team) = stem.filter(|_| is_database).and_then(|stem| TeamId::parse(stem).ok()) {
                teams.insert(team);
            }
        }
        Ok(teams)
    }

    /// The team's database; `None` if it has none and should not get one. Stays open while the answer is held.
    pub(super) async fn get(&self, team: &TeamId, missing: Missing) -> Result<Option<Arc<TeamFile>>, Failure> {
        if missing == Missing::Leave && !self.is_known(team) && !exists(&self.path(team)).await? {
            return Ok(None);
        }
        let slot = self.slot(team);
        let mut open = slot.open.lock().await;
        if let Some(sqlite) = open.as_ref() {
            return Ok(Some(Arc::clone(sqlite)));
        }
        let path = self.path(team);
        // Known, but closed since, or never opened because that failed.
        if exists(&path).await? {
            files::check_ours(&path).await?;
        } else if missing == Missing::Leave {
            return Ok(None);
        } else {
            files::create(&path).await?;
        }
        let sqlite = Sqlite::open(&path, options()).await?;
        let progress = Progress::default();
        match index::bring_up_to_date(&sqlite).await {
            Ok(false) => {}
            // Left by an earlier process, or by a file that was closed in a hurry.
            Ok(true) => progress.wrote(),
            Err(failure) => {
                sqlite.close().await;
                return Err(failure);
            }
        }
        let file = Arc::new(TeamFile { sqlite, progress });
        *open = Some(Arc::clone(&file));
        drop(open);
        self.close_unused(team).await;
        Ok(Some(file))
    }

    /// Puts a file in the place of the team's, which is closed first and stands in `aside` afterwards; whether there was one.
    /// Nobody opens either in the meantime.
    pub(super) async fn replace(&self, team: &TeamId, with: &Path, aside: &Path) -> Result<bool, Failure> {
        let slot = self.slot(team);
        let mut open = slot.open.lock().await;
        let path = self.path(team);
        if open.is_none() && exists(&path).await? && files::check_ours(&path).await.is_ok() {
            // Its log is written back when it is closed. A file that cannot be opened is set aside as it is.
            if let Ok(sqlite) = Sqlite::open(&path, options()).await {
                sqlite.close().await;
            }
        }
        if let Some(file) = open.take() {
            file.sqlite.close().await;
        }
        let (with, aside) = (with.to_owned(), aside.to_owned());
        files::blocking(move || files::swap(&path, &with, &aside)).await
    }

    /// A file beside the teams', for what is not yet one of them.
    pub(super) fn beside(&self, team: &TeamId, what: &str) -> PathBuf {
        self.folder.join(format!("{team}.db.{what}"))
    }

    /// Closes every file, waiting for what is in flight.
    pub(super) async fn close(&self) {
        let slots: Vec<Arc<Slot>> = self.lock().by_team.drain().map(|(_, slot)| slot).collect();
        let end = Instant::now() + LAST_CALLS;
        for slot in slots {
            if let Some(file) = slot.open.lock().await.take() {
                let left = end.saturating_duration_since(Instant::now());
                file.close_within(left.min(LAST_CALL)).await;
            }
        }
    }

    async fn close_unused(&self, opened: &TeamId) {
        for slot in self.oldest_first(opened) {
            // A slot that is being opened or closed right now is in use.
            let Ok(mut open) = slot.open.try_lock() else { continue };
            let unused = open.take_if(|file| Arc::strong_count(file) == 1);
            if let Some(file) = unused {
                file.close_within(LAST_CALL).await;
            }
        }
    }

    /// As many slots as are open beyond the limit, those not used for longest first.
    fn oldest_first(&self, opened: &TeamId) -> Vec<Arc<Slot>> {
        let slots = self.lock();
        let is_open = |slot: &Slot| slot.open.try_lock().is_ok_and(|open| open.is_some());
        let mut open: Vec<(u64, Arc<Slot>)> = slots
            .by_team
            .iter()
            .filter(|(team, slot)| *team != opened && is_open(slot))
            .map(|(_, slot)| (*last_use(slot), Arc::clone(slot)))
            .collect();
        open.sort_by_key(|(used, _)| *used);
        let excess = (open.len() + 1).saturating_sub(self.max_open);
        open.into_iter().take(excess).map(|(_, slot)| slot).collect()
    }

    fn slot(&self, team: &TeamId) -> Arc<Slot> {
        let mut slots = self.lock();
        slots.uses += 1;
        let uses = slots.uses;
        let slot = slots.by_team.entry(team.clone()).or_default();
        *last_use(slot) = uses;
        Arc::clone(slot)
    }

    fn is_known(&self, team: &TeamId) -> bool {
        self.lock().by_team.contains_key(team)
    }

    fn lock(&self) -> MutexGuard<'_, Slots> {
        self.slots.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn path(&self, team: &TeamId) -> PathBuf {
        self.folder.join(format!("{team}.db"))
    }

    #[cfg(test)]
    pub(super) fn open_count(&self) -> usize {
        self.lock()
            .by_team
            .values()
            .filter(|slot| slot.open.try_lock().is_ok_and(|open| open.is_some()))
            .count()
    }
}

fn last_use(slot: &Slot) -> MutexGuard<'_, u64> {
    slot.last_use.lock().unwrap_or_else(PoisonError::into_inner)
}

async fn exists(path: &Path) -> Result<bool, Failure> {
    tokio::fs::try_exists(path).await.map_err(unavailable)
}

pub(super) fn unavailable(error: std::io::Error) -> Failure {
    StoreError::Unavailable {
        source: Box::new(error),
    }
    .into()
}
