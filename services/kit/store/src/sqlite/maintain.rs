//! Looking after a database that is open: checks, backups, checkpoints.

use std::fs::{File, OpenOptions};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use tracing::Instrument as _;

use super::Sqlite;
use crate::StoreError;

/// What a checkpoint did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Checkpoint {
    /// Whether a long reader kept part of the log in use.
    pub blocked: bool,
    /// Pages in the log.
    pub log_pages: i64,
    /// Pages of the log that are in the database file now.
    pub moved_pages: i64,
}

impl Sqlite {
    /// Reads the whole file and answers what is wrong with it: structure, indexes, foreign keys. Empty means sound.
    pub async fn integrity_check(&self) -> Result<Vec<String>, StoreError> {
        self.view_beside(|db| {
            let mut problems: Vec<String> =
                db.all("PRAGMA integrity_check", (), |row| Ok::<_, StoreError>(row.get(0)?))?;
            problems.retain(|line| line != "ok");
            let orphans = db.all("PRAGMA foreign_key_check", (), |row| {
                let (table, row, parent): (String, Option<i64>, String) = (row.get(0)?, row.get(1)?, row.get(2)?);
                let row = row.map_or_else(|| "unknown".to_owned(), |row| row.to_string());
                Ok::<_, StoreError>(format!("row {row} of {table} refers to a missing row of {parent}"))
            })?;
            problems.extend(orphans);
            Ok(problems)
        })
        .await
    }

    /// Writes a consistent, compact copy of the database to the new file `to`, while readers and the writer go on.
    /// The file appears only when it is complete and on disk. Goes on to its end when the caller leaves, since SQLite
    /// would, too; a second backup waits for the first.
    pub async fn backup(&self, to: impl Into<PathBuf>) -> Result<(), StoreError> {
        let (sqlite, target) = (self.clone(), to.into());
        let copying = async move { sqlite.copy(target).await };
        #[expect(
            clippy::disallowed_methods,
            reason = "awaited right here; close() waits for its reader"
        )]
        tokio::spawn(copying.in_current_span())
            .await
            .map_err(StoreError::unavailable)?
    }

    async fn copy(&self, target: PathBuf) -> Result<(), StoreError> {
        let _alone = self.inner.backups.lock().await;
        let mut partial = target.as_os_str().to_owned();
        partial.push(".partial");
        let partial = PathBuf::from(partial);

        let (checked, created) = (target.clone(), partial.clone());
        blocking(move || create_empty(&checked, &created)).await?;
        let name = partial.to_string_lossy().into_owned();
        if let Err(error) = self.vacuum_into(name).await {
            blocking(move || std::fs::remove_file(&partial).map_err(StoreError::unavailable)).await?;
            return Err(error);
        }
        blocking(move || publish(&partial, &target)).await
    }

    /// Moves the log into the database file and empties it, as far as readers permit.
    pub async fn checkpoint(&self) -> Result<Checkpoint, StoreError> {
        // Two at a time would only find each other busy.
        let _nobody_else = self.inner.write_back.running.lock().await;
        let inner = Arc::clone(&self.inner);
        blocking(move || {
            inner.writer.with(|connection| {
                let checkpoint = connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", (), |row| {
                    Ok(Checkpoint {
                        blocked: row.get::<_, i64>(0)? != 0,
                        log_pages: row.get(1)?,
                        moved_pages: row.get(2)?,
                    })
                });
                Ok(checkpoint?)
            })
        })
        .await
    }
}

pub(super) async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, StoreError> + Send + 'static,
) -> Result<T, StoreError> {
    tokio::task::spawn_blocking(work)
        .await
        .map_err(StoreError::unavailable)?
}

/// `VACUUM INTO` accepts an empty file, and keeps its permissions.
fn create_empty(target: &Path, partial: &Path) -> Result<(), StoreError> {
    if target.exists() {
        return Err(StoreError::TargetExists {
            path: target.to_owned(),
        });
    }
    let mut options = OpenOptions::new();
    options.create(true).truncate(true).write(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(partial).map_err(StoreError::unavailable)?;
    Ok(())
}

fn publish(partial: &Path, target: &Path) -> Result<(), StoreError> {
    File::open(partial)
        .and_then(|file| file.sync_all())
        .map_err(StoreError::unavailable)?;
    std::fs::rename(partial, target).map_err(StoreError::unavailable)?;
    if let Some(folder) = target.parent().filter(|folder| !folder.as_os_str().is_empty()) {
        File::open(folder)
            .and_then(|folder| folder.sync_all())
            .map_err(StoreError::unavailable)?;
    }
    Ok(())
}
