//! Opening: folder and file with private permissions, the lock, the pragmas, the schema.

use std::fs::{DirBuilder, File, OpenOptions, TryLockError};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use sqlx::Connection;
use sqlx::migrate::Migrator;
use sqlx::sqlite::{SqliteConnectOptions, SqliteConnection, SqliteJournalMode, SqliteSynchronous};

use super::connection::{BUSY_TIMEOUT, Opener};
use super::pool::Pool;
use super::update::Writer;
use super::write_back::WriteBack;
use super::{Inner, Sqlite, SqliteOptions};
use crate::StoreError;

/// Whether any migration was applied, and the last one.
const HAS_VERSIONS: &str = "SELECT 1 FROM sqlite_schema WHERE name = '_sqlx_migrations'";
const LAST_VERSION: &str = "SELECT coalesce(max(version), 0) FROM _sqlx_migrations";

impl Sqlite {
    /// Opens the database at `path`, creating it with its folders, and brings its schema up to date.
    ///
    /// Refuses a database that is open elsewhere ([`StoreError::InUse`]) and one with a later schema
    /// ([`StoreError::NewerSchema`]), and leaves it untouched in both cases.
    pub async fn open(path: impl Into<PathBuf>, options: SqliteOptions) -> Result<Self, StoreError> {
        let path = path.into();
        let prepared = path.clone();
        let lock = tokio::task::spawn_blocking(move || prepare(&prepared))
            .await
            .map_err(StoreError::unavailable)??;

        migrate(&path, options).await?;
        let writer = Writer::new(Opener::writer(&path, options.on_open));
        let readers = Pool::new(Opener::reader(&path, options.on_open), options.readers);
        let write_back = WriteBack::new(Opener::writer(&path, None));
        let known_version = known_version(options.migrator);
        Ok(Self {
            inner: Arc::new(Inner {
                path,
                writer,
                readers,
                write_back,
                known_version,
                backups: tokio::sync::Mutex::default(),
                lock,
            }),
        })
    }

    /// The version of the last migration that was applied; zero for a schema without migrations.
    pub async fn schema_version(&self) -> Result<i64, StoreError> {
        self.view(|db| {
            if db.exists(HAS_VERSIONS, ())? {
                db.value(LAST_VERSION, ())
            } else {
                Ok(0)
            }
        })
        .await
    }

    /// The version of the last migration that this program ships.
    pub fn known_version(&self) -> i64 {
        self.inner.known_version
    }
}

/// Folders, lock, file. In this order, so that a process that may not have the database does not touch it.
fn prepare(path: &Path) -> Result<File, StoreError> {
    if let Some(folder) = path.parent().filter(|folder| !folder.as_os_str().is_empty()) {
        private_folder().create(folder).map_err(StoreError::unavailable)?;
    }
    let mut lock_path = path.as_os_str().to_owned();
    lock_path.push(".lock");
    let lock = private_file().open(&lock_path).map_err(StoreError::unavailable)?;
    match lock.try_lock() {
        Ok(()) => {}
        Err(TryLockError::WouldBlock) => return Err(StoreError::in_use(path)),
        Err(TryLockError::Error(error)) => return Err(StoreError::unavailable(error)),
    }
    // SQLite gives its log and shared-memory files the permissions of the database file.
    private_file().open(path).map_err(StoreError::unavailable)?;
    Ok(lock)
}

fn private_folder() -> DirBuilder {
    let mut builder = DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder
}

fn private_file() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.create(true).truncate(false).read(true).write(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options
}

/// Brings the schema up to date, on a connection of its own: the migrator is sqlx's.
async fn migrate(path: &Path, options: SqliteOptions) -> Result<(), StoreError> {
    let connect = SqliteConnectOptions::new()
        .filename(path)
        .create_if_missing(false)
        .journal_mode(SqliteJournalMode::Wal)
        .synchronous(SqliteSynchronous::Full)
        .foreign_keys(true)
        .busy_timeout(BUSY_TIMEOUT)
        // What a migration erases must not stay readable in free pages (M-14).
        .pragma("secure_delete", "ON");
    let mut connection = SqliteConnection::connect_with(&connect).await?;
    let migrated = async {
        if let Some(hook) = options.on_migrate {
            hook(&mut connection).await?;
        }
        bring_up_to_date(&mut connection, options.migrator).await
    };
    let migrated = migrated.await;
    let closed = connection.close().await;
    migrated?;
    Ok(closed?)
}

async fn bring_up_to_date(connection: &mut SqliteConnection, migrator: &'static Migrator) -> Result<(), StoreError> {
    let found = applied_version(&mut *connection).await?;
    let known = known_version(migrator);
    if found > known {
        return Err(StoreError::NewerSchema { found, known });
    }
    // Not `run`: of what that takes, the compiler cannot tell whether it can be sent between threads.
    migrator.run_direct(None, connection, false).await?;
    Ok(())
}

fn known_version(migrator: &Migrator) -> i64 {
    migrator.iter().map(|migration| migration.version).max().unwrap_or(0)
}

async fn applied_version(connection: &mut SqliteConnection) -> Result<i64, StoreError> {
    let versions = sqlx::query(HAS_VERSIONS).fetch_optional(&mut *connection).await?;
    if versions.is_none() {
        return Ok(0);
    }
    Ok(sqlx::query_scalar(LAST_VERSION).fetch_one(connection).await?)
}
