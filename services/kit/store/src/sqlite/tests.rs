//! The promises of the crate, each tried on a real file.

mod group;
mod hostile;
mod view;

use std::path::PathBuf;
use std::time::Duration;

use rusqlite::Connection;
use sqlx::migrate::{Migration, MigrationType, Migrator};
use sqlx::{AssertSqlSafe, SqlSafeStr};
use steward_base::{ErrorKind, Fault};
use tempfile::TempDir;
use tokio::sync::oneshot;
use tokio::task::JoinSet;

use super::*;
use crate::StoreError;

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
        on_open: None,
        on_migrate: None,
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

fn insert(db: Db<'_>, id: &str) -> Result<(), StoreError> {
    db.execute("INSERT INTO entry (id, text) VALUES (?, ?)", (id, id))?;
    Ok(())
}

async fn add(sqlite: &Sqlite, id: &'static str) -> Result<(), StoreError> {
    sqlite.update(move |db| insert(db, id)).await
}

async fn ids(sqlite: &Sqlite) -> Vec<String> {
    let all = |db: Db<'_>| {
        db.all("SELECT id FROM entry ORDER BY id", (), |row| {
            Ok::<_, StoreError>(row.get(0)?)
        })
    };
    sqlite.view(all).await.expect("a view")
}

/// What counts for durability, consistency and erasure, and how long a lock is waited for, in milliseconds.
fn settings(db: Db<'_>) -> Result<(String, [i64; 5]), StoreError> {
    let values = [
        db.value("PRAGMA synchronous", ())?,
        db.value("PRAGMA foreign_keys", ())?,
        db.value("PRAGMA busy_timeout", ())?,
        db.value("PRAGMA journal_size_limit", ())?,
        db.value("PRAGMA secure_delete", ())?,
    ];
    Ok((db.value("PRAGMA journal_mode", ())?, values))
}

#[tokio::test]
async fn every_connection_is_durable_and_checks_foreign_keys() {
    let rig = rig().await;
    let wal = "wal".to_owned();
    let on_writer = rig.sqlite.update(settings).await.expect("settings");
    assert_eq!(on_writer, (wal.clone(), [2, 1, 5_000, 67_108_864, 1]), "2 is FULL");
    let (mode, [synchronous, foreign_keys, busy_timeout, ..]) = rig.sqlite.view(settings).await.expect("settings");
    assert_eq!((mode, synchronous, foreign_keys, busy_timeout), (wal, 2, 1, 5_000));
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
    let outcome = rig.sqlite.update(|db| {
        insert(db, "a")?;
        db.execute("INSERT INTO entry (id, text) VALUES ('a', 'other')", ())
    });
    assert!(outcome.await.expect_err("the id is taken").violates("entry.id"));
    assert_eq!(ids(&rig.sqlite).await, Vec::<String>::new());
    add(&rig.sqlite, "b").await.expect("the writer goes on");
}

#[tokio::test]
async fn a_panic_rolls_back_and_is_an_error() {
    let rig = rig().await;
    let outcome: Result<(), StoreError> = rig
        .sqlite
        .update(|db| insert(db, "half").map(|()| panic!("a bug")))
        .await;
    assert!(matches!(outcome, Err(StoreError::Panicked)));
    let in_the_midst = |db: Db<'_>| -> Result<(), StoreError> {
        insert(db, "half")?;
        db.all("SELECT id FROM entry", (), |_row| panic!("with a statement open"))
            .map(|_: Vec<()>| ())
    };
    let outcome = rig.sqlite.update(in_the_midst).await;
    assert!(matches!(outcome, Err(StoreError::Panicked)));
    add(&rig.sqlite, "next").await.expect("the writer is not poisoned");
    assert_eq!(ids(&rig.sqlite).await, ["next"]);
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
    let limited = |db: Db<'_>, pages: i64| db.value::<i64>(Sql::built(format!("PRAGMA max_page_count = {pages}")), ());
    let error = rig.sqlite.update(move |db| {
        let pages: i64 = db.value("PRAGMA page_count", ())?;
        limited(db, pages + 1)?;
        insert(db, "lost")?;
        db.execute("INSERT INTO entry (id, text) VALUES ('big', hex(zeroblob(200000)))", ())
    });
    let error = error.await.expect_err("no room");
    assert!(matches!(error, StoreError::Full), "{error:?}");
    assert_eq!((error.kind(), error.reason()), (ErrorKind::Exhausted, "STORE_FULL"));
    assert_eq!(ids(&rig.sqlite).await, ["kept"]);

    let after = rig.sqlite.update(move |db| {
        limited(db, 4_294_967_294)?;
        insert(db, "after")
    });
    after.await.expect("room again");
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
        let outcome = rig.sqlite.update(move |db| db.execute(sql, ())).await;
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
    for number in 0..400 {
        let id = format!("{number}-{}", "x".repeat(2_000));
        rig.sqlite.update(move |db| insert(db, &id)).await.expect("written");
    }
    // Far from what is written back within the line.
    while size() == before {
        tokio::task::yield_now().await;
    }
    let log = || {
        std::fs::metadata(format!("{}-wal", rig.path.display()))
            .expect("the log")
            .len()
    };
    assert!(log() < 400 * 4_096, "it is begun anew: {} bytes", log());
    rig.sqlite.close().await;
    assert_eq!(
        ids(&Sqlite::open(&rig.path, options()).await.expect("opened"))
            .await
            .len(),
        400
    );
}

#[tokio::test]
async fn the_hook_runs_on_the_writer_and_on_every_reader() {
    fn hook(connection: &Connection) -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
        Ok(connection.execute_batch("CREATE TEMP TABLE hooked (id INTEGER)")?)
    }
    let folder = tempfile::tempdir().expect("a temporary folder");
    let options = SqliteOptions {
        on_open: Some(hook),
        ..options()
    };
    let sqlite = Sqlite::open(folder.path().join("x.db"), options).await.expect("opens");
    let hooked = |db: Db<'_>| db.exists("SELECT 1 FROM temp.sqlite_schema WHERE name = 'hooked'", ());
    assert!(sqlite.update(hooked).await.expect("an answer"));
    let (first, second) = tokio::join!(sqlite.view_beside(hooked), sqlite.view_beside(hooked));
    assert!(first.expect("an answer") && second.expect("an answer"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn writers_and_readers_do_not_meet_a_busy_database() {
    let rig = rig().await;
    let writers = (0..8).map(|writer| {
        let sqlite = rig.sqlite.clone();
        async move {
            for turn in 0..10 {
                let id = format!("{writer}-{turn}");
                sqlite.update(move |db| insert(db, &id)).await?;
                let _: i64 = sqlite.view(|db| db.value("SELECT count(*) FROM entry", ())).await?;
            }
            Ok::<_, StoreError>(())
        }
    });
    let outcome = tokio::time::timeout(Duration::from_mins(1), futures::future::try_join_all(writers)).await;
    outcome.expect("it ends").expect("nobody is refused");
    assert_eq!(ids(&rig.sqlite).await.len(), 80);
}
