//! Opening: folder and file with private permissions, the lock, the pragmas, the schema.

use std::fs::{DirBuilder, File, OpenOptions, TryLockError};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use sqlx::migrate::Migrator;
use sqlx::sqlite::{SqliteConnectOptions, SqliteJournalMode, SqlitePool, SqlitePoolOptions, SqliteSynchronous};

use super::{Inner, OnConnect, Sqlite, SqliteOptions};
use crate::StoreError;

/// How long a statement waits for a lock. Within the process nothing contends (one writer); this is for a backup tool
/// or a shell that somebody points at the file.
const BUSY_TIMEOUT: Duration = Duration::from_secs(5);
/// The log file is cut back to this size after a checkpoint, in bytes.
const LOG_SIZE_LIMIT: &str = "67108864";
/// A reader that nobody used for this long is closed; each costs a thread and three descriptors.
const READER_IDLE: Duration = Duration::from_secs(30);
/// How long a caller waits for a free connection.
const ACQUIRE_TIMEOUT: Duration = Duration::from_secs(30);

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

        let writer = writer_pool(&path, options.on_connect).await?;
        if let Err(error) = migrate(&writer, options.migrator).await {
            writer.close().await;
            return Err(error);
        }
        let readers = reader_pool(&path, options);
        let known_version = known_version(options.migrator);
        Ok(Self {
            inner: Arc::new(Inner {
                path,
                writer,
                readers,
                known_version,
                backups: tokio::sync::Mutex::default(),
                lock,
            }),
        })
    }

    /// The version of the last migration that was applied; zero for a schema without migrations.
    pub async fn schema_version(&self) -> Result<i64, StoreError> {
        applied_version(&self.inner.readers).await
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

async fn writer_pool(path: &Path, on_connect: Option<OnConnect>) -> Result<SqlitePool, StoreError> {
    let options = SqliteConnectOptions::new()
        .filename(path)
        .create_if_missing(false)
        .journal_mode(SqliteJournalMode::Wal)
        .synchronous(SqliteSynchronous::Full)
        .foreign_keys(true)
        .busy_timeout(BUSY_TIMEOUT)
        .pragma("journal_size_limit", LOG_SIZE_LIMIT)
        // What was erased must not stay readable in free pages (M-14).
        .pragma("secure_delete", "ON")
        .optimize_on_close(true, 400);
    let pool = pool_options(on_connect)
        .max_connections(1)
        .idle_timeout(None)
        .max_lifetime(None);
    Ok(pool.connect_with(options).await?)
}

fn reader_pool(path: &Path, options: SqliteOptions) -> SqlitePool {
    let connect = SqliteConnectOptions::new()
        .filename(path)
        .create_if_missing(false)
        .read_only(true)
        .synchronous(SqliteSynchronous::Full)
        .foreign_keys(true)
        .busy_timeout(BUSY_TIMEOUT);
    pool_options(options.on_connect)
        .max_connections(options.readers.max(1))
        .min_connections(0)
        .idle_timeout(READER_IDLE)
        .connect_lazy_with(connect)
}

fn pool_options(on_connect: Option<OnConnect>) -> SqlitePoolOptions {
    let options = SqlitePoolOptions::new().acquire_timeout(ACQUIRE_TIMEOUT);
    match on_connect {
        Some(hook) => options.after_connect(move |connection, _| hook(connection)),
        None => options,
    }
}

async fn migrate(writer: &SqlitePool, migrator: &'static Migrator) -> Result<(), StoreError> {
    let found = applied_version(writer).await?;
    let known = known_version(migrator);
    if found > known {
        return Err(StoreError::NewerSchema { found, known });
    }
    migrator.run(writer).await?;
    Ok(())
}

fn known_version(migrator: &Migrator) -> i64 {
    migrator.iter().map(|migration| migration.version).max().unwrap_or(0)
}

async fn applied_version(pool: &SqlitePool) -> Result<i64, StoreError> {
    let tables: i64 = sqlx::query_scalar("SELECT count(*) FROM sqlite_schema WHERE name = '_sqlx_migrations'")
        .fetch_one(pool)
        .await?;
    if tables == 0 {
        return Ok(0);
    }
    Ok(
        sqlx::query_scalar("SELECT coalesce(max(version), 0) FROM _sqlx_migrations")
            .fetch_one(pool)
            .await?,
    )
}
