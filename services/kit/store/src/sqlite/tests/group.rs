//! Updates that come together, and what becomes of all of them when one fails, or the commit, or the process.

use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc;

use tokio::task::JoinHandle;

use super::*;

/// Tells the test that plays the process which dies which database to open.
const PATH: &str = "STEWARD_TEST_DYING_PROCESS";
const DYING: &str = "sqlite::tests::group::a_process_that_dies";

#[expect(clippy::disallowed_methods, reason = "a caller that the test waits for, or drops")]
pub(super) fn caller<T: Send + 'static>(work: impl Future<Output = T> + Send + 'static) -> JoinHandle<T> {
    tokio::spawn(work)
}

/// Waits until `count` updates stand in the line.
async fn waiting(sqlite: &Sqlite, count: usize) {
    while sqlite.inner.writer.waiting() < count {
        tokio::task::yield_now().await;
    }
}

/// An update that holds the line until it is let go, and the updates that wait behind it.
struct Held {
    go_on: mpsc::Sender<()>,
    first: JoinHandle<Result<(), StoreError>>,
}

async fn held(sqlite: &Sqlite, inside: fn(Db<'_>) -> Result<(), StoreError>) -> Held {
    let (started, has_started) = oneshot::channel();
    let (go_on, may_go_on) = mpsc::channel::<()>();
    let sqlite = sqlite.clone();
    let first = caller(async move {
        sqlite
            .update(move |db| {
                insert(db, "first")?;
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
    caller(async move { add(&sqlite, id).await })
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
    let failing = caller(async move {
        sqlite
            .update(|db| insert(db, "half").and_then(|()| insert(db, "a")))
            .await
    });
    waiting(&rig.sqlite, 2).await;
    let last = behind(&rig.sqlite, "last");
    waiting(&rig.sqlite, 3).await;
    assert_eq!(ids(&rig.sqlite).await, Vec::<String>::new(), "nothing is committed yet");
    held.go_on.send(()).expect("it waits");
    for kept in [held.first, good, last] {
        kept.await.expect("it ran").expect("it is kept");
    }
    let error = failing.await.expect("it ran").expect_err("the text is taken");
    assert!(error.violates("entry_text"), "{error}");
    assert_eq!(ids(&rig.sqlite).await, ["a", "first", "last"]);
    assert_eq!(COMMITS.load(Ordering::SeqCst), 1, "one for all");
}

fn refuse_commits(db: Db<'_>) -> Result<(), StoreError> {
    db.connection().commit_hook(Some(|| true))?;
    Ok(())
}

#[tokio::test]
async fn when_the_commit_fails_nothing_of_the_group_is_kept_and_the_line_goes_on() {
    let rig = rig().await;
    add(&rig.sqlite, "earlier").await.expect("it is kept");
    let held = held(&rig.sqlite, refuse_commits).await;
    let second = behind(&rig.sqlite, "second");
    waiting(&rig.sqlite, 1).await;
    held.go_on.send(()).expect("it waits");
    assert!(held.first.await.expect("it ran").is_err());
    let error = second.await.expect("it ran").expect_err("it is lost");
    assert_eq!(error.kind(), ErrorKind::Unavailable, "{error}");
    assert_eq!(ids(&rig.sqlite).await, ["earlier"]);
    add(&rig.sqlite, "later").await.expect("the line goes on");
}

/// As SQLite does by itself where it must, on a full disk for one.
#[tokio::test]
async fn when_the_transaction_ends_under_a_group_nobody_is_told_that_it_is_kept() {
    let rig = rig().await;
    let held = held(&rig.sqlite, |_| Ok(())).await;
    let sqlite = rig.sqlite.clone();
    let second: JoinHandle<Result<(), StoreError>> = caller(async move {
        let end = sqlite.update(|db| {
            insert(db, "second")?;
            db.execute("ROLLBACK", ())?;
            Err(StoreError::Full)
        });
        end.await
    });
    waiting(&rig.sqlite, 1).await;
    let third = behind(&rig.sqlite, "third");
    waiting(&rig.sqlite, 2).await;
    held.go_on.send(()).expect("it waits");
    let lost = held.first.await.expect("it ran").expect_err("it is lost");
    assert_eq!(lost.kind(), ErrorKind::Unavailable, "{lost}");
    assert!(
        matches!(second.await.expect("it ran"), Err(StoreError::Full)),
        "its own error"
    );
    third.await.expect("it ran").expect("the next transaction has it");
    assert_eq!(ids(&rig.sqlite).await, ["third"]);
}

#[tokio::test]
async fn a_caller_that_leaves_does_not_stop_its_update() {
    let rig = rig().await;
    let held = held(&rig.sqlite, |_| Ok(())).await;
    held.first.abort();
    held.go_on.send(()).expect("it waits");
    add(&rig.sqlite, "next").await.expect("it is kept");
    assert_eq!(ids(&rig.sqlite).await, ["first", "next"]);
}

#[tokio::test]
async fn what_stands_in_the_line_is_done_before_the_database_closes_even_if_its_caller_left() {
    let rig = rig().await;
    let held = held(&rig.sqlite, |_| Ok(())).await;
    let stays = behind(&rig.sqlite, "stays");
    waiting(&rig.sqlite, 1).await;
    let leaves = behind(&rig.sqlite, "leaves");
    waiting(&rig.sqlite, 2).await;
    leaves.abort();
    assert!(leaves.await.expect_err("it left").is_cancelled());
    let closing = caller({
        let sqlite = rig.sqlite.clone();
        async move { sqlite.close().await }
    });
    while !rig.sqlite.is_closed() {
        tokio::task::yield_now().await;
    }
    assert!(matches!(add(&rig.sqlite, "late").await, Err(StoreError::Closed)));
    held.go_on.send(()).expect("it waits");
    stays.await.expect("it ran").expect("it is kept");
    closing.await.expect("it closed");
    let again = Sqlite::open(&rig.path, options()).await.expect("it is free");
    assert_eq!(ids(&again).await, ["first", "leaves", "stays"]);
}

/// By itself it does nothing; with a path it dies in the third update of a group.
#[tokio::test]
async fn a_process_that_dies() {
    let Some(path) = std::env::var_os(PATH) else { return };
    let sqlite = Sqlite::open(PathBuf::from(path), options()).await.expect("it opens");
    add(&sqlite, "acknowledged").await.expect("a write");
    let held = held(&sqlite, |_| Ok(())).await;
    let _second = behind(&sqlite, "second");
    waiting(&sqlite, 1).await;
    let dying = sqlite.clone();
    let third: JoinHandle<Result<(), StoreError>> = caller(async move {
        dying
            .update(|db| insert(db, "third").map(|()| std::process::abort()))
            .await
    });
    waiting(&sqlite, 2).await;
    held.go_on.send(()).expect("it waits");
    let _ = third.await;
}

#[tokio::test]
async fn a_crash_in_the_midst_of_a_group_keeps_what_was_acknowledged_and_nothing_of_the_group() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("test.db");
    let program = std::env::current_exe().expect("a test program");
    let mut command = Command::new(program);
    command.args(["--exact", DYING, "--nocapture"]).env(PATH, &path);
    let died = command.output().expect("it runs");
    assert!(!died.status.success());
    let sqlite = Sqlite::open(&path, options()).await.expect("it opens");
    assert_eq!(ids(&sqlite).await, ["acknowledged"]);
    assert_eq!(sqlite.integrity_check().await.expect("a check"), Vec::<String>::new());
}
