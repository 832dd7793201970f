//! Writing the log back into the database file, beside the writes. Left to itself, SQLite does it in the midst of a commit, and
//! whoever waits for that one waits for a thousand pages and two more flushes.
//!
//! A log of which everything was written back is begun anew by the next write; one that is written over keeps its size, so that a
//! flush writes pages and nothing else. So the last pages are written back between two commits, when none can come meanwhile.
//!
//! Nothing depends on it: what is in the log is durable, and is written back after a commit if the log grows all the same.

use std::cell::Cell;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use rusqlite::Connection;
use tokio::sync::Mutex;
use tokio::task::spawn_blocking;

use super::Inner;
use super::connection::Opener;
use crate::StoreError;

/// Pages that came to the log at which they are written back.
#[cfg(not(test))]
const PAGES: i64 = 1_000;
/// So that a test need not write much.
#[cfg(test)]
const PAGES: i64 = 100;
/// So few that are left are written back between two commits.
const FEW: i64 = 64;
/// Times that what has come meanwhile is written back beside the commits.
const PASSES: u32 = 3;
/// Pages in the log at which it is written back before the next commit: 64 MiB.
const AT_LAST: i64 = 16_384;

thread_local! {
    /// Pages in the log after the last commit on this thread.
    static LOG: Cell<i64> = const { Cell::new(0) };
}

/// Has a connection that writes tell how long the log is.
pub(super) fn watch(connection: &Connection) {
    connection.wal_hook(Some(|_, pages| {
        LOG.set(i64::from(pages));
        Ok(())
    }));
}

/// What is known of the log, and whether it is being written back.
#[derive(Debug)]
pub(super) struct WriteBack {
    opener: Opener,
    /// Pages of the log that are in the database file.
    moved: AtomicI64,
    /// Held while it runs, and by whoever closes or writes back in full.
    pub(super) running: Mutex<()>,
}

impl WriteBack {
    pub(super) fn new(opener: Opener) -> Self {
        Self {
            opener,
            moved: AtomicI64::new(0),
            running: Mutex::new(()),
        }
    }

    /// Whether it is due with a log of so many pages.
    fn is_due(&self, pages: i64) -> bool {
        if pages < self.moved.load(Ordering::Relaxed) {
            // It was begun anew.
            self.moved.store(0, Ordering::Relaxed);
        }
        pages - self.moved.load(Ordering::Relaxed) >= PAGES
    }
}

/// Something was committed on this thread, by this connection.
pub(super) fn committed(inner: &Arc<Inner>, connection: &Connection) {
    let pages = LOG.get();
    if pages >= AT_LAST
        && let Err(error) = move_pages(connection)
    {
        tracing::warn!(path = %inner.path.display(), %error, "a long log could not be written back");
    }
    if !inner.write_back.is_due(pages) {
        return;
    }
    let inner = Arc::clone(inner);
    // Ends by itself; close() waits for it.
    drop(spawn_blocking(move || {
        let Ok(_alone) = inner.write_back.running.try_lock() else {
            return;
        };
        match run(&inner) {
            Ok(()) | Err(StoreError::Closed) => {}
            Err(error) => tracing::warn!(path = %inner.path.display(), %error, "the log could not be written back"),
        }
    }));
}

fn run(inner: &Inner) -> Result<(), StoreError> {
    let beside = inner.write_back.opener.open()?;
    for _ in 0..PASSES {
        let (pages, moved) = move_pages(&beside)?;
        if pages - moved <= FEW {
            break;
        }
    }
    let (_, moved) = inner.writer.with(move_pages)?;
    inner.write_back.moved.store(moved, Ordering::Relaxed);
    Ok(())
}

/// Moves what no reader needs in the log; how many pages that has, and how many of them are moved.
fn move_pages(connection: &Connection) -> Result<(i64, i64), StoreError> {
    let told = connection.query_row("PRAGMA wal_checkpoint(PASSIVE)", (), |row| {
        Ok((row.get(1)?, row.get(2)?))
    });
    Ok(told?)
}
