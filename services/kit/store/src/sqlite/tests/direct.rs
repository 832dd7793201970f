//! Work on direct connections: what it sees, what is kept of it, what stops it.

use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::task::JoinHandle;

use super::group::{caller, waiting};
use super::*;

fn put(db: Db<'_>, id: &str) -> Result<(), StoreError> {
    db.execute("INSERT INTO entry (id, text) VALUES (?, ?)", (id, id))?;
    Ok(())
}

async fn update(sqlite: &Sqlite, id: &'static str) -> Result<(), StoreError> {
    sqlite.update(move |db| put(db, id)).await
}

async fn seen(sqlite: &Sqlite) -> Vec<String> {
    let all = |db: Db<'_>| {
        db.all("SELECT id FROM entry ORDER BY id", (), |row| {
            Ok::<_, StoreError>(row.get(0)?)
        })
    };
    sqlite.view(all).await.expect("a view")
}

/// An update that holds the line until it is let go, and the updates that wait behind it.
struct Held {
    go_on: std::sync::mpsc::Sender<()>,
    first: JoinHandle<Result<(), StoreError>>,
}

async fn held(sqlite: &Sqlite, inside: fn(Db<'_>) -> Result<(), StoreError>) -> Held {
    let (started, has_started) = oneshot::channel();
    let (go_on, may_go_on) = std::sync::mpsc::channel::<()>();
    let sqlite = sqlite.clone();
    let first = caller(async move {
        sqlite
            .update(move |db| {
                put(db, "first")?;
                inside(db)?;
                started.send(()).ok();
                may_go_on.recv().ok();
                Ok(())
            })
            .await
    });
    has_started.await.expect("the first update began");
    Held { go_on, first }
}

fn behind(sqlite: &Sqlite, id: &'static str) -> JoinHandle<Result<(), StoreError>> {
    let sqlite = sqlite.clone();
    caller(async move { update(&sqlite, id).await })
}

#[tokio::test]
async fn an_update_is_seen_by_everyone_after_it_and_a_failed_one_leaves_nothing() {
    let rig = rig().await;
    update(&rig.sqlite, "a").await.expect("it is kept");
    let error = rig.sqlite.update(|db| put(db, "b").and_then(|()| put(db, "a"))).await;
    assert!(error.expect_err("the text is taken").violates("entry_text"));
    let panicked = rig.sqlite.update(|db| put(db, "c").map(|()| panic!("a bug"))).await;
    let panicked: Result<(), StoreError> = panicked;
    assert!(matches!(panicked, Err(StoreError::Panicked)));
    assert_eq!(seen(&rig.sqlite).await, ["a"]);
    assert_eq!(ids(&rig.sqlite).await, ["a"], "the driven connections see the same");
}

#[tokio::test]
async fn constraints_are_named_as_on_driven_connections() {
    let rig = rig().await;
    let refused = [
        (
            "INSERT INTO entry (id, text, size) VALUES ('a', 'a', 0)",
            "size_is_positive",
        ),
        ("INSERT INTO entry (id, text) VALUES ('a', NULL)", "entry.text"),
        (
            "INSERT INTO entry (id, text, parent) VALUES ('a', 'a', 'nobody')",
            "foreign key",
        ),
    ];
    for (sql, name) in refused {
        let error = rig.sqlite.update(move |db| db.execute(sql, ())).await.expect_err(sql);
        assert!(error.violates(name), "{error} is not {name}");
    }
    let error = rig
        .sqlite
        .view(|db| db.value::<i64>("SELECT nothing FROM nowhere", ()))
        .await;
    assert_eq!(error.expect_err("no such table").kind(), ErrorKind::Internal);
}

static COMMITS: AtomicUsize = AtomicUsize::new(0);

fn count_commits(db: Db<'_>) -> Result<(), StoreError> {
    db.connection().commit_hook(Some(|| {
        COMMITS.fetch_add(1, Ordering::SeqCst);
        false
    }))?;
    Ok(())
}

#[tokio::test]
async fn updates_that_wait_share_a_commit_and_one_that_fails_undoes_only_itself() {
    let rig = rig().await;
    let held = held(&rig.sqlite, count_commits).await;
    let good = behind(&rig.sqlite, "a");
    waiting(&rig.sqlite, 1).await;
    let sqlite = rig.sqlite.clone();
    // Sees what the group did before, which nobody else can yet.
    let failing = caller(async move { sqlite.update(|db| put(db, "half").and_then(|()| put(db, "a"))).await });
    waiting(&rig.sqlite, 2).await;
    let last = behind(&rig.sqlite, "last");
    waiting(&rig.sqlite, 3).await;
    assert_eq!(
        seen(&rig.sqlite).await,
        Vec::<String>::new(),
        "nothing is committed yet"
    );
    held.go_on.send(()).expect("it waits");
    for kept in [held.first, good, last] {
        kept.await.expect("it ran").expect("it is kept");
    }
    let error = failing.await.expect("it ran").expect_err("the text is taken");
    assert!(error.violates("entry_text"), "{error}");
    assert_eq!(seen(&rig.sqlite).await, ["a", "first", "last"]);
    assert_eq!(COMMITS.load(Ordering::SeqCst), 1, "one for all");
}

fn refuse_commits(db: Db<'_>) -> Result<(), StoreError> {
    db.connection().commit_hook(Some(|| true))?;
    Ok(())
}

#[tokio::test]
async fn when_the_commit_fails_nothing_of_the_group_is_kept_and_the_line_goes_on() {
    let rig = rig().await;
    update(&rig.sqlite, "earlier").await.expect("it is kept");
    let held = held(&rig.sqlite, refuse_commits).await;
    let second = behind(&rig.sqlite, "second");
    waiting(&rig.sqlite, 1).await;
    held.go_on.send(()).expect("it waits");
    assert!(held.first.await.expect("it ran").is_err());
    let error = second.await.expect("it ran").expect_err("it is lost");
    assert_eq!(error.kind(), ErrorKind::Unavailable, "{error}");
    assert_eq!(seen(&rig.sqlite).await, ["earlier"]);
    update(&rig.sqlite, "later").await.expect("the line goes on");
}

#[tokio::test]
async fn updates_and_operations_stand_in_one_line() {
    let rig = rig().await;
    let held = held(&rig.sqlite, |_| Ok(())).await;
    let sqlite = rig.sqlite.clone();
    let driven = caller(async move { add(&sqlite, "driven").await });
    waiting(&rig.sqlite, 1).await;
    let direct = behind(&rig.sqlite, "direct");
    waiting(&rig.sqlite, 2).await;
    held.go_on.send(()).expect("it waits");
    for kept in [held.first, driven, direct] {
        kept.await.expect("it ran").expect("it is kept");
    }
    let in_order = |db: Db<'_>| {
        db.all("SELECT id FROM entry ORDER BY rowid", (), |row| {
            Ok::<_, StoreError>(row.get(0)?)
        })
    };
    let in_order: Vec<String> = rig.sqlite.view(in_order).await.expect("a view");
    assert_eq!(in_order, ["first", "driven", "direct"]);
}

#[tokio::test]
async fn a_caller_that_leaves_does_not_stop_its_update() {
    let rig = rig().await;
    let held = held(&rig.sqlite, |_| Ok(())).await;
    held.first.abort();
    held.go_on.send(()).expect("it waits");
    update(&rig.sqlite, "next").await.expect("it is kept");
    assert_eq!(seen(&rig.sqlite).await, ["first", "next"]);
}

#[tokio::test]
async fn a_view_sees_one_moment_and_cannot_write() {
    let rig = rig().await;
    update(&rig.sqlite, "a").await.expect("it is kept");
    let (viewing, is_viewing) = oneshot::channel();
    let (written, is_written) = std::sync::mpsc::channel::<()>();
    let sqlite = rig.sqlite.clone();
    let counted = caller(async move {
        sqlite
            .view_beside(move |db| {
                let before: i64 = db.value("SELECT count(*) FROM entry", ())?;
                viewing.send(()).ok();
                is_written.recv().ok();
                Ok::<_, StoreError>((before, db.value::<i64>("SELECT count(*) FROM entry", ())?))
            })
            .await
    });
    is_viewing.await.expect("it looks");
    update(&rig.sqlite, "b").await.expect("it is kept");
    written.send(()).expect("it waits");
    assert_eq!(counted.await.expect("it ran").expect("a view"), (1, 1));
    let error = rig
        .sqlite
        .view(|db| put(db, "c"))
        .await
        .expect_err("a reader does not write");
    assert_eq!(error.reason(), "STORE_FAILED");
    assert_eq!(seen(&rig.sqlite).await, ["a", "b"]);
}

#[tokio::test]
async fn a_view_whose_caller_left_is_interrupted_and_its_connection_serves_the_next() {
    let rig = rig().await;
    let (started, has_started) = oneshot::channel();
    let (ended, has_ended) = oneshot::channel();
    let sqlite = rig.sqlite.clone();
    let looking = caller(async move {
        sqlite
            .view_beside(move |db| {
                started.send(()).ok();
                let forever = "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT count(*) FROM n";
                let counted: Result<i64, StoreError> = db.value(forever, ());
                ended.send(counted.as_ref().err().map(Fault::kind)).ok();
                counted
            })
            .await
    });
    has_started.await.expect("it began");
    looking.abort();
    assert_eq!(has_ended.await.expect("it ended"), Some(ErrorKind::Unavailable));
    assert_eq!(seen(&rig.sqlite).await, Vec::<String>::new());
}

#[tokio::test]
async fn whoever_comes_after_closing_is_told_so() {
    let rig = rig().await;
    update(&rig.sqlite, "a").await.expect("it is kept");
    assert_eq!(seen(&rig.sqlite).await, ["a"]);
    rig.sqlite.close().await;
    assert!(matches!(update(&rig.sqlite, "b").await, Err(StoreError::Closed)));
    let view: Result<i64, StoreError> = rig.sqlite.view(|db| db.value("SELECT 1", ())).await;
    assert!(matches!(view, Err(StoreError::Closed)));
    let log = rig.path.with_extension("db-wal");
    assert!(!log.exists(), "the log is written back and gone");
}

/// As on a driven connection: erased content leaves the pages, and nothing is acknowledged before it is flushed.
#[tokio::test]
async fn a_direct_connection_has_the_settings_of_a_driven_one() {
    let rig = rig().await;
    let settings = rig.sqlite.update(|db| {
        Ok::<_, StoreError>([
            db.value::<i64>("PRAGMA synchronous", ())?,
            db.value("PRAGMA foreign_keys", ())?,
            db.value("PRAGMA secure_delete", ())?,
            db.value("PRAGMA wal_autocheckpoint", ())?,
            db.value("PRAGMA journal_size_limit", ())?,
        ])
    });
    assert_eq!(settings.await.expect("they are asked"), [2, 1, 1, 16_384, 67_108_864]);
}
