//! Writing the log back into the database file, beside the writes. Left to itself, SQLite does it in the midst of a commit, and
//! whoever waits for that one waits for a thousand pages and two more flushes.
//!
//! Nothing depends on it: what is in the log is durable, and a commit still writes back itself if the log grows all the same.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use tokio::sync::Mutex;
use tokio::task::spawn_blocking;

use super::Inner;
use super::connection::Opener;
use crate::StoreError;

/// Pages in the log at which it is written back.
const PAGES: i64 = 1_000;
/// Commits after which it is looked at for the first time.
const FIRST: u32 = 64;
/// Most commits between two looks.
const MOST: u32 = 1_024;
/// What was committed meanwhile stays in the log, and only an empty one is begun anew; the second time it is little.
const PASSES: u32 = 3;

/// When it is due, and whether it runs.
#[derive(Debug)]
pub(super) struct WriteBack {
    opener: Opener,
    commits: AtomicU32,
    /// Commits until it is due: as many as have filled the log before.
    due: AtomicU32,
    /// Held while it runs, and by whoever closes or writes back in full.
    pub(super) running: Mutex<()>,
}

impl WriteBack {
    pub(super) fn new(opener: Opener) -> Self {
        Self {
            opener,
            commits: AtomicU32::new(0),
            due: AtomicU32::new(FIRST),
            running: Mutex::new(()),
        }
    }

    /// Whether it is due with this commit.
    fn is_due(&self) -> bool {
        self.commits.fetch_add(1, Ordering::Relaxed) + 1 >= self.due.load(Ordering::Relaxed)
    }

    /// Writes it back, and counts how many commits fill it.
    fn run(&self) -> Result<(), StoreError> {
        let commits = self.commits.swap(0, Ordering::Relaxed);
        let connection = self.opener.open()?;
        let mut filled = 0;
        for _ in 0..PASSES {
            let (pages, moved): (i64, i64) = connection.query_row("PRAGMA wal_checkpoint(PASSIVE)", (), |row| {
                Ok((row.get(1)?, row.get(2)?))
            })?;
            filled = filled.max(pages);
            if moved >= pages {
                break;
            }
        }
        let due = i64::from(commits) * PAGES / filled.max(1);
        let due = u32::try_from(due).unwrap_or(MOST).clamp(1, MOST);
        self.due.store(due, Ordering::Relaxed);
        Ok(())
    }
}

/// Something was committed; has the log written back on another thread if that is due.
pub(super) fn committed(inner: &Arc<Inner>) {
    if !inner.write_back.is_due() {
        return;
    }
    let inner = Arc::clone(inner);
    // Ends by itself; close() waits for it.
    drop(spawn_blocking(move || {
        let Ok(_alone) = inner.write_back.running.try_lock() else {
            return;
        };
        if inner.writer.is_closed() {
            return;
        }
        if let Err(error) = inner.write_back.run() {
            tracing::warn!(path = %inner.path.display(), %error, "the log could not be written back");
        }
    }));
}
