//! How a connection is made: with which settings, and what runs on it before anything else.

use std::path::Path;
use std::time::Duration;

use sqlx::Connection;
use sqlx::sqlite::{SqliteConnectOptions, SqliteConnection, SqliteJournalMode, SqliteSynchronous};

use super::OnConnect;
use crate::StoreError;

/// How long a statement waits for a lock. Within the process nothing contends (one writer); this is for a backup tool
/// or a shell that somebody points at the file.
pub(super) const BUSY_TIMEOUT: Duration = Duration::from_secs(5);
/// The log file is cut back to this size after a checkpoint, in bytes.
pub(super) const LOG_SIZE_LIMIT: &str = "67108864";
/// Pages in the log at which a commit writes it back itself, if nothing did it beside: as many as that size has.
pub(super) const AT_LAST: &str = "16384";

/// Makes connections of one kind.
#[derive(Debug)]
pub(super) struct Connector {
    options: SqliteConnectOptions,
    on_connect: Option<OnConnect>,
}

impl Connector {
    pub(super) fn writer(path: &Path, on_connect: Option<OnConnect>) -> Self {
        let options = common(path)
            .journal_mode(SqliteJournalMode::Wal)
            .pragma("journal_size_limit", LOG_SIZE_LIMIT)
            .pragma("wal_autocheckpoint", AT_LAST)
            // What was erased must not stay readable in free pages (M-14).
            .pragma("secure_delete", "ON")
            .optimize_on_close(true, 400);
        Self { options, on_connect }
    }

    pub(super) fn reader(path: &Path, on_connect: Option<OnConnect>) -> Self {
        let options = common(path).read_only(true);
        Self { options, on_connect }
    }

    pub(super) async fn connect(&self) -> Result<SqliteConnection, StoreError> {
        let mut connection = SqliteConnection::connect_with(&self.options).await?;
        if let Some(hook) = self.on_connect {
            hook(&mut connection).await?;
        }
        Ok(connection)
    }
}

fn common(path: &Path) -> SqliteConnectOptions {
    SqliteConnectOptions::new()
        .filename(path)
        .create_if_missing(false)
        .synchronous(SqliteSynchronous::Full)
        .foreign_keys(true)
        .busy_timeout(BUSY_TIMEOUT)
}
