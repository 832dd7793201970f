//! The handle to one database: who may read, who may write, and how it is closed.

mod connection;
mod db;
mod group;
mod maintain;
mod open;
mod operation;
mod pool;
#[cfg(test)]
mod tests;
mod update;
mod view;
mod write_back;

use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use futures::future::BoxFuture;
use sqlx::migrate::Migrator;
use sqlx::sqlite::SqliteConnection;
use tokio::sync::Mutex;

use self::pool::Pool;
use self::update::Writer;
use self::write_back::WriteBack;

pub use connection::OnOpen;
pub use db::{Db, Sql};
pub use maintain::Checkpoint;

/// [`OnOpen`] for the connection on which the schema is migrated.
pub type OnMigrate = for<'c> fn(&'c mut SqliteConnection) -> BoxFuture<'c, Result<(), sqlx::Error>>;

/// How to open a database.
#[derive(Debug, Clone, Copy)]
pub struct SqliteOptions {
    /// The migrations that the program ships, forward only.
    pub migrator: &'static Migrator,
    /// Most read-only connections at a time, at least one. They are opened when needed and closed when idle.
    pub readers: u32,
    /// See [`OnOpen`].
    pub on_open: Option<OnOpen>,
    /// See [`OnMigrate`].
    pub on_migrate: Option<OnMigrate>,
}

/// One open database: a single writer, in whose queue writes are served in order, and a few readers. Clones share it.
#[derive(Debug, Clone)]
pub struct Sqlite {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    path: PathBuf,
    writer: Writer,
    readers: Arc<Pool>,
    write_back: WriteBack,
    known_version: i64,
    /// One backup at a time: two with one target would write over each other.
    backups: Mutex<()>,
    /// Held for as long as the database is open here; the operating system lets go of it if the process dies.
    lock: File,
}

impl Sqlite {
    /// The database file.
    pub fn path(&self) -> &Path {
        &self.inner.path
    }

    /// Waits for the writes and reads that were asked for before, writes the log back into the database file, and lets
    /// another process open it. Later calls on any clone answer [`crate::StoreError::Closed`].
    pub async fn close(&self) {
        let _nobody_else = self.inner.write_back.running.lock().await;
        // Readers first: the last connection to close writes the log back, and only the writer can.
        self.inner.readers.close().await;
        self.inner.writer.close().await;
        if let Err(error) = self.inner.lock.unlock() {
            tracing::warn!(path = %self.inner.path.display(), %error, "could not release the lock of a closed database");
        }
    }

    /// Whether [`Sqlite::close`] was called.
    pub fn is_closed(&self) -> bool {
        self.inner.writer.is_closed()
    }
}
