//! The promises of the crate, each tried on a real file.

mod direct;
mod group;
mod hostile;
mod pieces;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt;
use sqlx::migrate::{Migration, MigrationType, Migrator};
use sqlx::{AssertSqlSafe, Connection, SqlSafeStr};
use steward_base::{ErrorKind, Fault};
use tempfile::TempDir;
use tokio::sync::{Notify, oneshot};
use tokio::task::JoinSet;

use super::*;

const SCHEMA: &str = "
CREATE TABLE parent (id TEXT PRIMARY KEY) STRICT;
CREATE TABLE entry (
    id TEXT PRIMARY KEY,
    parent TEXT REFERENCES parent (id),
    text TEXT NOT NULL,
    size INTEGER NOT NULL DEFAULT 1 CONSTRAINT size_is_positive CHECK (size > 0)
) STRICT;
CREATE UNIQUE INDEX entry_text ON entry (lower(text));
";

fn migrator(versions: &[(i64, &'static str)]) -> &'static Migrator {
    let migrations = versions.iter().map(|(version, sql)| {
        Migration::new(
            *version,
            "test".into(),
            MigrationType::Simple,
            AssertSqlSafe(*sql).into_sql_str(),
            false,
        )
    });
    Box::leak(Box::new(Migrator::with_migrations(migrations.collect())))
}

fn options() -> SqliteOptions {
    SqliteOptions {
        migrator: migrator(&[(1, SCHEMA)]),
        readers: 2,
        on_connect: None,
        on_open: None,
    }
}

struct Rig {
    _folder: TempDir,
    path: PathBuf,
    sqlite: Sqlite,
}

async fn rig() -> Rig {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("deep/er/test.db");
    let sqlite = Sqlite::open(&path, options()).await.expect("a fresh database opens");
    Rig {
        _folder: folder,
        path,
        sqlite,
    }
}

async fn insert(connection: &mut SqliteConnection, id: &str) -> Result<(), StoreError> {
    sqlx::query("INSERT INTO entry (id, text) VALUES (?, ?)")
        .bind(id)
        .bind(id)
        .execute(connection)
        .await?;
    Ok(())
}

async fn add(sqlite: &Sqlite, id: &'static str) -> Result<(), StoreError> {
    sqlite.write(move |connection| insert(connection, id).boxed()).await
}

async fn ids(sqlite: &Sqlite) -> Vec<String> {
    let mut reader = sqlite.read().await.expect("a reader");
    sqlx::query_scalar("SELECT id FROM entry ORDER BY id")
        .fetch_all(&mut *reader)
        .await
        .expect("rows")
}

async fn pragma(connection: &mut SqliteConnection, name: &str) -> String {
    let sql = AssertSqlSafe(format!("SELECT CAST({name} AS TEXT) FROM pragma_{name}"));
    sqlx::query_scalar(sql).fetch_one(connection).await.expect("a pragma")
}

#[tokio::test]
async fn every_connection_is_durable_and_checks_foreign_keys() {
    let rig = rig().await;
    let seen: Vec<(String, String)> = rig
        .sqlite
        .write(|connection| {
            async move {
                let mut seen = Vec::new();
                for name in [
                    "journal_mode",
                    "synchronous",
                    "foreign_keys",
                    "journal_size_limit",
                    "secure_delete",
                ] {
                    seen.push((name.to_owned(), pragma(connection, name).await));
                }
                Ok::<_, StoreError>(seen)
            }
            .boxed()
        })
        .await
        .expect("pragmas");
    let value = |wanted: &str| {
        seen.iter()
            .find(|(name, _)| name == wanted)
            .map(|(_, value)| value.as_str())
    };
    assert_eq!(value("journal_mode"), Some("wal"));
    assert_eq!(value("synchronous"), Some("2"), "2 is FULL");
    assert_eq!(value("foreign_keys"), Some("1"));
    assert_eq!(value("journal_size_limit"), Some("67108864"));
    assert_eq!(value("secure_delete"), Some("1"));

    let mut readers = [
        rig.sqlite.read().await.expect("first"),
        rig.sqlite.read().await.expect("second"),
    ];
    for reader in &mut readers {
        assert_eq!(pragma(reader, "journal_mode").await, "wal");
        assert_eq!(pragma(reader, "foreign_keys").await, "1");
        let timeout: i64 = sqlx::query_scalar("PRAGMA busy_timeout")
            .fetch_one(&mut **reader)
            .await
            .expect("timeout");
        assert_eq!(timeout, 5_000, "milliseconds");
    }
}

#[cfg(unix)]
#[tokio::test]
async fn files_and_folders_are_private() {
    use std::os::unix::fs::PermissionsExt;
    let rig = rig().await;
    add(&rig.sqlite, "a").await.expect("a write");
    let mode = |path: PathBuf| std::fs::metadata(path).expect("metadata").permissions().mode() & 0o777;
    let with = |suffix: &str| PathBuf::from(format!("{}{suffix}", rig.path.display()));
    for suffix in ["", "-wal", "-shm", ".lock"] {
        assert_eq!(mode(with(suffix)), 0o600, "{suffix}");
    }
    assert_eq!(mode(rig.path.parent().expect("a folder").to_owned()), 0o700);
}

#[tokio::test]
async fn an_error_rolls_everything_back() {
    let rig = rig().await;
    let outcome: Result<(), StoreError> = rig
        .sqlite
        .write(|connection| {
            async move {
                insert(connection, "a").await?;
                sqlx::query("INSERT INTO entry (id, text) VALUES ('a', 'other')")
                    .execute(connection)
                    .await?;
                Ok(())
            }
            .boxed()
        })
        .await;
    assert!(outcome.expect_err("the id is taken").violates("entry.id"));
    assert_eq!(ids(&rig.sqlite).await, Vec::<String>::new());
    add(&rig.sqlite, "b").await.expect("the writer goes on");
}

#[tokio::test]
async fn a_write_whose_caller_left_is_finished() {
    let rig = rig().await;
    let (started, has_started) = oneshot::channel();
    let go_on = Arc::new(Notify::new());
    let gate = Arc::clone(&go_on);
    let sqlite = rig.sqlite.clone();
    let mut callers = JoinSet::new();
    let caller = callers.spawn(async move {
        sqlite
            .write(move |connection| {
                async move {
                    insert(connection, "first-half").await?;
                    started.send(()).ok();
                    gate.notified().await;
                    insert(connection, "second-half").await
                }
                .boxed()
            })
            .await
    });
    has_started.await.expect("the write began");
    caller.abort();
    let left = callers.join_next().await.expect("one caller");
    assert!(left.expect_err("the caller is gone").is_cancelled());
    go_on.notify_one();

    // Queued behind the abandoned write, so that its end is what this waits for.
    add(&rig.sqlite, "third").await.expect("the writer is not poisoned");
    assert_eq!(ids(&rig.sqlite).await, ["first-half", "second-half", "third"]);
}

#[tokio::test]
async fn a_panic_rolls_back_and_is_an_error() {
    let rig = rig().await;
    let outcome: Result<(), StoreError> = rig
        .sqlite
        .write(|connection| {
            async move {
                insert(connection, "half").await?;
                panic!("a bug")
            }
            .boxed()
        })
        .await;
    assert!(matches!(outcome, Err(StoreError::Panicked)));
    add(&rig.sqlite, "next").await.expect("the writer is not poisoned");
    assert_eq!(ids(&rig.sqlite).await, ["next"]);
}

#[tokio::test]
async fn a_reader_cannot_write() {
    let rig = rig().await;
    let mut reader = rig.sqlite.read().await.expect("a reader");
    let error = sqlx::query("DELETE FROM entry")
        .execute(&mut *reader)
        .await
        .expect_err("read-only");
    assert_eq!(crate::error::result_code(&error), Some(libsqlite3_sys::SQLITE_READONLY));
}

#[tokio::test]
async fn a_second_opening_is_refused_until_the_first_is_closed() {
    let rig = rig().await;
    add(&rig.sqlite, "kept").await.expect("a write");
    let refused = Sqlite::open(&rig.path, options()).await.expect_err("it is open");
    assert!(matches!(&refused, StoreError::InUse { path } if *path == rig.path));
    assert_eq!(
        (refused.kind(), refused.reason()),
        (ErrorKind::Precondition, "STORE_IN_USE")
    );

    rig.sqlite.close().await;
    assert!(matches!(add(&rig.sqlite, "late").await, Err(StoreError::Closed)));
    assert!(
        !PathBuf::from(format!("{}-wal", rig.path.display())).exists(),
        "closing writes the log back"
    );
    let again = Sqlite::open(&rig.path, options()).await.expect("it is free");
    assert_eq!(ids(&again).await, ["kept"]);
}

#[tokio::test]
async fn a_newer_schema_is_refused_and_left_as_it_is() {
    let rig = rig().await;
    rig.sqlite.close().await;
    let newer = SqliteOptions {
        migrator: migrator(&[(1, SCHEMA), (2, "CREATE TABLE later (id TEXT) STRICT")]),
        ..options()
    };
    let upgraded = Sqlite::open(&rig.path, newer).await.expect("migrates forward");
    assert_eq!(
        (
            upgraded.schema_version().await.expect("a version"),
            upgraded.known_version()
        ),
        (2, 2)
    );
    upgraded.close().await;

    let refused = Sqlite::open(&rig.path, options())
        .await
        .expect_err("written by a later program");
    assert!(matches!(refused, StoreError::NewerSchema { found: 2, known: 1 }));
    let again = Sqlite::open(&rig.path, newer)
        .await
        .expect("refusing released the lock and changed nothing");
    assert_eq!(again.schema_version().await.expect("a version"), 2);
}

#[tokio::test]
async fn a_failed_migration_says_so() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let broken = SqliteOptions {
        migrator: migrator(&[(1, "CREATE TABLE oops (")]),
        ..options()
    };
    let error = Sqlite::open(folder.path().join("x.db"), broken)
        .await
        .expect_err("the migration is wrong");
    assert!(matches!(error, StoreError::Migration { .. }), "{error:?}");
}

#[tokio::test]
async fn a_full_database_keeps_what_it_had_and_recovers() {
    let rig = rig().await;
    add(&rig.sqlite, "kept").await.expect("a write");
    let error = rig
        .sqlite
        .write(|connection| {
            async move {
                let pages: i64 = sqlx::query_scalar("PRAGMA page_count")
                    .fetch_one(&mut *connection)
                    .await?;
                let limit = AssertSqlSafe(format!("PRAGMA max_page_count = {}", pages + 1));
                sqlx::query(limit).execute(&mut *connection).await?;
                insert(connection, "lost").await?;
                sqlx::query("INSERT INTO entry (id, text) VALUES ('big', hex(zeroblob(200000)))")
                    .execute(connection)
                    .await?;
                Ok::<_, StoreError>(())
            }
            .boxed()
        })
        .await
        .expect_err("no room");
    assert!(matches!(error, StoreError::Full), "{error:?}");
    assert_eq!((error.kind(), error.reason()), (ErrorKind::Exhausted, "STORE_FULL"));
    assert_eq!(ids(&rig.sqlite).await, ["kept"]);

    rig.sqlite
        .write(|connection| {
            async move {
                sqlx::query("PRAGMA max_page_count = 4294967294")
                    .execute(&mut *connection)
                    .await?;
                insert(connection, "after").await
            }
            .boxed()
        })
        .await
        .expect("room again");
    assert_eq!(ids(&rig.sqlite).await, ["after", "kept"]);
}

#[tokio::test]
async fn a_file_that_is_no_database_is_damaged() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("x.db");
    std::fs::write(
        &path,
        "this is certainly not a database, and it is long enough to look like one".repeat(100),
    )
    .expect("a file");
    let error = Sqlite::open(&path, options()).await.expect_err("not a database");
    assert!(matches!(error, StoreError::Damaged { .. }), "{error:?}");
    assert_eq!(error.kind(), ErrorKind::DataLoss);
}

#[tokio::test]
async fn constraints_are_told_apart_by_name() {
    let rig = rig().await;
    add(&rig.sqlite, "a").await.expect("a write");
    for (sql, name) in [
        ("INSERT INTO entry (id, text) VALUES ('a', 'other')", "entry.id"),
        ("INSERT INTO entry (id, text) VALUES ('b', 'A')", "entry_text"),
        ("INSERT INTO entry (id, text) VALUES ('b', NULL)", "entry.text"),
        (
            "INSERT INTO entry (id, text, size) VALUES ('b', 'b', 0)",
            "size_is_positive",
        ),
        (
            "INSERT INTO entry (id, text, parent) VALUES ('b', 'b', 'nobody')",
            "foreign key",
        ),
    ] {
        let outcome: Result<(), StoreError> = rig
            .sqlite
            .write(move |connection| {
                async move {
                    sqlx::query(sql).execute(connection).await?;
                    Ok(())
                }
                .boxed()
            })
            .await;
        let error = outcome.expect_err(sql);
        assert!(error.violates(name), "{sql}: {error}");
    }
}

#[tokio::test]
async fn a_backup_is_complete_private_and_never_overwrites() {
    let rig = rig().await;
    add(&rig.sqlite, "a").await.expect("a write");
    let copy = rig.path.with_file_name("copy.db");
    rig.sqlite.backup(&copy).await.expect("a backup");
    let error = rig.sqlite.backup(&copy).await.expect_err("it exists");
    assert!(matches!(&error, StoreError::TargetExists { path } if *path == copy));
    assert!(!rig.path.with_file_name("copy.db.partial").exists());
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        assert_eq!(
            std::fs::metadata(&copy).expect("metadata").permissions().mode() & 0o777,
            0o600
        );
    }
    let opened = Sqlite::open(&copy, options()).await.expect("the backup opens");
    assert_eq!(ids(&opened).await, ["a"]);
    assert_eq!(opened.integrity_check().await.expect("a check"), Vec::<String>::new());
}

#[tokio::test]
async fn a_damaged_page_is_found() {
    let rig = rig().await;
    for id in ["a", "b"] {
        add(&rig.sqlite, id).await.expect("a write");
    }
    rig.sqlite.close().await;
    let mut bytes = std::fs::read(&rig.path).expect("the file");
    let last_page = bytes.len() - 4096;
    bytes[last_page..].fill(0xAB);
    std::fs::write(&rig.path, bytes).expect("the file");
    let sqlite = Sqlite::open(&rig.path, options()).await.expect("its head is intact");
    let problems = sqlite.integrity_check().await;
    assert!(
        !matches!(&problems, Ok(problems) if problems.is_empty()),
        "{problems:?}"
    );
}

#[tokio::test]
async fn a_checkpoint_empties_the_log() {
    let rig = rig().await;
    add(&rig.sqlite, "a").await.expect("a write");
    let checkpoint = rig.sqlite.checkpoint().await.expect("a checkpoint");
    assert!(!checkpoint.blocked);
    let log = std::fs::metadata(format!("{}-wal", rig.path.display())).expect("the log");
    assert_eq!(log.len(), 0, "bytes");
}

#[tokio::test]
async fn the_log_is_written_back_beside_the_writes() {
    let rig = rig().await;
    let size = || std::fs::metadata(&rig.path).expect("the file").len();
    rig.sqlite.checkpoint().await.expect("a checkpoint");
    let before = size();
    for number in 0..200 {
        let id = format!("{number}-{}", "x".repeat(2_000));
        let write = rig
            .sqlite
            .write(move |connection| async move { insert(connection, &id).await }.boxed());
        write.await.expect("written");
    }
    // Far from what a commit would write back by itself.
    while size() == before {
        tokio::task::yield_now().await;
    }
    rig.sqlite.close().await;
    assert_eq!(
        ids(&Sqlite::open(&rig.path, options()).await.expect("opened"))
            .await
            .len(),
        200
    );
}

#[tokio::test]
async fn the_hook_runs_on_the_writer_and_on_every_reader() {
    fn hook(connection: &mut SqliteConnection) -> BoxFuture<'_, Result<(), sqlx::Error>> {
        async move {
            sqlx::query("CREATE TEMP TABLE hooked (id INTEGER)")
                .execute(connection)
                .await?;
            Ok(())
        }
        .boxed()
    }
    let folder = tempfile::tempdir().expect("a temporary folder");
    let options = SqliteOptions {
        on_connect: Some(hook),
        ..options()
    };
    let sqlite = Sqlite::open(folder.path().join("x.db"), options).await.expect("opens");
    let count = "SELECT count(*) FROM temp.sqlite_schema WHERE name = 'hooked'";
    let on_writer: i64 = sqlite
        .write(move |connection| {
            async move { Ok::<_, StoreError>(sqlx::query_scalar(count).fetch_one(connection).await?) }.boxed()
        })
        .await
        .expect("a count");
    assert_eq!(on_writer, 1);
    let (mut first, mut second) = (
        sqlite.read().await.expect("a reader"),
        sqlite.read().await.expect("a reader"),
    );
    for reader in [&mut first, &mut second] {
        let on_reader: i64 = sqlx::query_scalar(count)
            .fetch_one(&mut **reader)
            .await
            .expect("a count");
        assert_eq!(on_reader, 1);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn writers_and_readers_do_not_meet_a_busy_database() {
    let rig = rig().await;
    let writers = (0..8).map(|writer| {
        let sqlite = rig.sqlite.clone();
        async move {
            for turn in 0..10 {
                let id = format!("{writer}-{turn}");
                sqlite
                    .write(move |connection| async move { insert(connection, &id).await }.boxed())
                    .await?;
                let mut reader = sqlite.read().await?;
                let _: i64 = sqlx::query_scalar("SELECT count(*) FROM entry")
                    .fetch_one(&mut *reader)
                    .await?;
            }
            Ok::<_, StoreError>(())
        }
    });
    let outcome = tokio::time::timeout(Duration::from_mins(1), futures::future::try_join_all(writers)).await;
    outcome.expect("it ends").expect("nobody is refused");
    assert_eq!(ids(&rig.sqlite).await.len(), 80);
}
