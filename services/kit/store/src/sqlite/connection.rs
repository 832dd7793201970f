//! How a connection is made: with which settings, and what runs on it before anything else. Its statements run on the thread of
//! whoever asks, since a change of thread costs more than most of them ([ADR 0016]).
//!
//! [ADR 0016]: ../../../../adr/0016-statements-where-the-caller-is.md

use std::path::{Path, PathBuf};
use std::time::Duration;

use rusqlite::{Connection, OpenFlags};

use super::write_back;
use crate::StoreError;

/// How long a statement waits for a lock. Within the process nothing contends (one writer); this is for a backup tool
/// or a shell that somebody points at the file.
pub(super) const BUSY_TIMEOUT: Duration = Duration::from_secs(5);
/// The log file is cut back to this size after a checkpoint, in bytes.
const LOG_SIZE_LIMIT: i64 = 67_108_864;
/// Statements that a connection keeps prepared.
const KEPT_PREPARED: usize = 128;

/// Run on every new connection, writer and readers, before anything else uses it. For tokenizers and functions that SQLite keeps
/// per connection.
pub type OnOpen = fn(&Connection) -> Result<(), Box<dyn std::error::Error + Send + Sync>>;

/// Makes connections of one kind.
#[derive(Debug)]
pub(super) struct Opener {
    path: PathBuf,
    writes: bool,
    on_open: Option<OnOpen>,
}

impl Opener {
    pub(super) fn writer(path: &Path, on_open: Option<OnOpen>) -> Self {
        Self::of(path, true, on_open)
    }

    pub(super) fn reader(path: &Path, on_open: Option<OnOpen>) -> Self {
        Self::of(path, false, on_open)
    }

    fn of(path: &Path, writes: bool, on_open: Option<OnOpen>) -> Self {
        Self {
            path: path.to_owned(),
            writes,
            on_open,
        }
    }

    pub(super) fn open(&self) -> Result<Connection, StoreError> {
        let access = if self.writes {
            OpenFlags::SQLITE_OPEN_READ_WRITE
        } else {
            OpenFlags::SQLITE_OPEN_READ_ONLY
        };
        // A connection is used by one thread at a time, so that SQLite needs no lock around it.
        let connection = Connection::open_with_flags(&self.path, access | OpenFlags::SQLITE_OPEN_NO_MUTEX)?;
        connection.busy_timeout(BUSY_TIMEOUT)?;
        connection.set_prepared_statement_cache_capacity(KEPT_PREPARED);
        connection.pragma_update(None, "synchronous", "FULL")?;
        connection.pragma_update(None, "foreign_keys", "ON")?;
        if self.writes {
            connection.pragma_update_and_check(None, "journal_size_limit", LOG_SIZE_LIMIT, |_| Ok(()))?;
            // What was erased must not stay readable in free pages (M-14).
            connection.pragma_update_and_check(None, "secure_delete", "ON", |_| Ok(()))?;
            // In the place of SQLite's own `wal_autocheckpoint`.
            write_back::watch(&connection);
        }
        if let Some(hook) = self.on_open {
            hook(&connection).map_err(StoreError::unavailable)?;
        }
        Ok(connection)
    }
}

/// Closes it; statistics that the planner uses are brought up to date where a writer finds them outdated.
pub(super) fn close(connection: Connection, writes: bool) {
    let optimized = if writes {
        connection.execute_batch("PRAGMA analysis_limit=400; PRAGMA optimize")
    } else {
        Ok(())
    };
    let closed = connection.close().map_err(|(_, error)| error);
    if let Err(error) = optimized.and(closed) {
        tracing::warn!(%error, "a connection did not close well");
    }
}
