//! Connections whose statements run on the thread of whoever asks, without a thread of their own: a change of thread costs
//! more than most statements ([ADR 0016]).
//!
//! [ADR 0016]: ../../../../adr/0016-statements-where-the-caller-is.md

mod db;
mod group;
mod pool;
mod update;
mod view;

use std::path::{Path, PathBuf};

use rusqlite::{Connection, OpenFlags};

use super::connector::{AT_LAST, BUSY_TIMEOUT, LOG_SIZE_LIMIT};
use crate::StoreError;

pub use db::{Db, Sql};
pub(super) use group::run as run_group;
pub(super) use pool::Pool;
pub(super) use update::{AskedUpdate, Update};

/// Statements that a connection keeps prepared.
const KEPT_PREPARED: usize = 128;

/// Run on every new direct connection before anything else uses it. For tokenizers and functions that SQLite keeps per
/// connection.
pub type OnOpen = fn(&Connection) -> Result<(), Box<dyn std::error::Error + Send + Sync>>;

/// Makes direct connections of one kind.
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
            connection.pragma_update_and_check(None, "wal_autocheckpoint", AT_LAST, |_| Ok(()))?;
            // What was erased must not stay readable in free pages (M-14).
            connection.pragma_update_and_check(None, "secure_delete", "ON", |_| Ok(()))?;
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
