//! Files of teams as files: whether one is ours, making a new one, and putting one in the place of another.
//!
//! A file that is empty or somebody else's is refused and not touched: it stands where messages were, and what is made in
//! their place would hide that they are gone.

use std::fs::File;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use rusqlite::{Connection, OpenFlags};
use steward_recall_core::Error;
use steward_store::Sqlite;

use super::failure::Failure;
use super::teams::{options, unavailable};

/// What every database of SQLite begins with.
const MAGIC: &[u8; 16] = b"SQLite format 3\0";

/// Work on files, which waits.
pub(super) async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, Failure> + Send + 'static,
) -> Result<T, Failure> {
    let done = tokio::task::spawn_blocking(work).await;
    done.unwrap_or_else(|error| Err(Error::internal("work on a file", error).into()))
}

/// Refuses what is no file of sessions, and leaves it as it is.
pub(super) async fn check_ours(path: &Path) -> Result<(), Failure> {
    let at = path.to_owned();
    blocking(move || {
        check_header(&at)?;
        check_tables(&at)
    })
    .await
}

fn check_tables(path: &Path) -> Result<(), Failure> {
    let connection = Connection::open_with_flags(path, OpenFlags::SQLITE_OPEN_READ_ONLY)?;
    let tables: i64 = connection.query_row(
        "SELECT count(*) FROM sqlite_master
         WHERE type = 'table' AND name IN ('_sqlx_migrations', 'meta', 'session', 'message')",
        (),
        |row| row.get(0),
    )?;
    if tables < 4 {
        return Err(Error::damaged(format!("{} is a database of something else", path.display())).into());
    }
    Ok(())
}

fn check_header(path: &Path) -> Result<(), Failure> {
    let mut begins = [0; 16];
    let mut file = File::open(path).map_err(unavailable)?;
    let is_empty = file.metadata().map_err(unavailable)?.len() == 0;
    let is_database = file.read_exact(&mut begins).is_ok() && begins == *MAGIC;
    if is_database {
        return Ok(());
    }
    let what = if is_empty { "is empty" } else { "is no database" };
    let told = format!("{} {what}; what it held is elsewhere or gone", path.display());
    Err(Error::damaged(told).into())
}

/// Makes a new file. It has its name only when it is one, so that an empty file under the name is never our doing.
pub(super) async fn create(path: &Path) -> Result<(), Failure> {
    let mut unfinished = path.as_os_str().to_owned();
    unfinished.push(".new");
    let unfinished = PathBuf::from(unfinished);
    Sqlite::open(&unfinished, options()).await?.close().await;
    let path = path.to_owned();
    blocking(move || {
        forget_lock(&unfinished);
        publish(&unfinished, &path)
    })
    .await
}

/// The lock of a file that has another name from now on.
pub(super) fn forget_lock(path: &Path) {
    let mut lock = path.as_os_str().to_owned();
    lock.push(".lock");
    let _ = std::fs::remove_file(lock);
}

/// What a database that is done with leaves beside it.
pub(super) fn forget_logs(path: &Path) {
    forget_lock(path);
    for log in ["-wal", "-shm"] {
        let mut name = path.as_os_str().to_owned();
        name.push(log);
        let _ = std::fs::remove_file(name);
    }
}

/// Puts `with` in the place of `path`, and what stood there in `aside`; whether anything stood there. Neither is open.
pub(super) fn swap(path: &Path, with: &Path, aside: &Path) -> Result<bool, Failure> {
    let stood = path.exists();
    if stood && std::fs::hard_link(path, aside).is_err() {
        std::fs::copy(path, aside).map_err(unavailable)?;
        File::open(aside)
            .and_then(|file| file.sync_all())
            .map_err(unavailable)?;
    }
    // A log that could not be written back belongs to what is set aside: on the new file it would be damage.
    for log in ["-wal", "-shm"] {
        let of = |path: &Path| {
            let mut name = path.as_os_str().to_owned();
            name.push(log);
            PathBuf::from(name)
        };
        if of(path).exists() {
            std::fs::copy(of(path), of(aside)).map_err(unavailable)?;
            std::fs::remove_file(of(path)).map_err(unavailable)?;
        }
    }
    publish(with, path)?;
    Ok(stood)
}

/// Gives a file its name, durably.
fn publish(from: &Path, to: &Path) -> Result<(), Failure> {
    File::open(from).and_then(|file| file.sync_all()).map_err(unavailable)?;
    std::fs::rename(from, to).map_err(unavailable)?;
    match to.parent() {
        Some(folder) => File::open(folder)
            .and_then(|folder| folder.sync_all())
            .map_err(unavailable),
        None => Ok(()),
    }
}
