//! Writes that come together, and what becomes of all of them when one fails, or the commit, or the process.

use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::task::JoinHandle;

use super::*;

/// Tells the test that plays the process which dies which database to open.
const PATH: &str = "STEWARD_TEST_DYING_PROCESS";
const DYING: &str = "sqlite::tests::group::a_process_that_dies";

/// The writer of a rig, busy with an operation until it is let go.
pub(super) struct Busy {
    pub(super) go_on: Arc<Notify>,
    pub(super) first: JoinHandle<Result<(), StoreError>>,
}

/// What runs in the first operation.
pub(super) type Inside = for<'c> fn(&'c mut SqliteConnection) -> BoxFuture<'c, Result<(), StoreError>>;

/// Inserts `first` and waits, with a transaction open.
pub(super) async fn busy(sqlite: &Sqlite, inside: Inside) -> Busy {
    let (started, has_started) = oneshot::channel();
    let go_on = Arc::new(Notify::new());
    let gate = Arc::clone(&go_on);
    let sqlite = sqlite.clone();
    let first = caller(async move {
        sqlite
            .write(move |connection| {
                async move {
                    insert(&mut *connection, "first").await?;
                    inside(connection).await?;
                    started.send(()).ok();
                    gate.notified().await;
                    Ok(())
                }
                .boxed()
            })
            .await
    });
    has_started.await.expect("the first write began");
    Busy { go_on, first }
}

pub(super) fn nothing(_: &mut SqliteConnection) -> BoxFuture<'_, Result<(), StoreError>> {
    async { Ok(()) }.boxed()
}

#[expect(clippy::disallowed_methods, reason = "a caller that the test waits for, or drops")]
pub(super) fn caller<T: Send + 'static>(work: impl Future<Output = T> + Send + 'static) -> JoinHandle<T> {
    tokio::spawn(work)
}

/// Waits until `count` operations stand in the line.
pub(super) async fn waiting(sqlite: &Sqlite, count: usize) {
    while sqlite.inner.writer.waiting() < count {
        tokio::task::yield_now().await;
    }
}

pub(super) fn in_background(sqlite: &Sqlite, id: &'static str) -> JoinHandle<Result<(), StoreError>> {
    let sqlite = sqlite.clone();
    caller(async move { add(&sqlite, id).await })
}

static COMMITS: AtomicUsize = AtomicUsize::new(0);

fn count_commits(connection: &mut SqliteConnection) -> BoxFuture<'_, Result<(), StoreError>> {
    async move {
        connection.lock_handle().await?.set_commit_hook(|| {
            COMMITS.fetch_add(1, Ordering::SeqCst);
            true
        });
        Ok(())
    }
    .boxed()
}

#[tokio::test]
async fn writes_that_wait_share_a_commit_and_one_that_fails_undoes_only_itself() {
    let rig = rig().await;
    let busy = busy(&rig.sqlite, count_commits).await;
    let good = ["a", "b"].map(|id| in_background(&rig.sqlite, id));
    waiting(&rig.sqlite, 2).await;
    let failing = rig.sqlite.clone();
    let failing: JoinHandle<Result<(), StoreError>> = caller(async move {
        failing
            .write(|connection| {
                async move {
                    insert(connection, "half").await?;
                    // Sees what the group did before, which nobody else can yet.
                    insert(connection, "a").await
                }
                .boxed()
            })
            .await
    });
    waiting(&rig.sqlite, 3).await;
    let panicking = rig.sqlite.clone();
    let panicking: JoinHandle<Result<(), StoreError>> = caller(async move {
        panicking
            .write(|connection| {
                async move {
                    insert(connection, "before the panic").await?;
                    panic!("a bug")
                }
                .boxed()
            })
            .await
    });
    waiting(&rig.sqlite, 4).await;
    let last = in_background(&rig.sqlite, "last");
    waiting(&rig.sqlite, 5).await;
    assert_eq!(ids(&rig.sqlite).await, Vec::<String>::new(), "nothing is committed yet");
    busy.go_on.notify_one();

    busy.first.await.expect("it ran").expect("the first is kept");
    for write in good {
        write.await.expect("it ran").expect("it is kept");
    }
    let error = failing.await.expect("it ran").expect_err("the text is taken");
    assert!(error.violates("entry_text"), "{error}");
    assert!(matches!(panicking.await.expect("it ran"), Err(StoreError::Panicked)));
    last.await.expect("it ran").expect("it is kept");
    assert_eq!(ids(&rig.sqlite).await, ["a", "b", "first", "last"]);
    assert_eq!(COMMITS.load(Ordering::SeqCst), 1, "one for all");
}

fn refuse_commits(connection: &mut SqliteConnection) -> BoxFuture<'_, Result<(), StoreError>> {
    async move {
        connection.lock_handle().await?.set_commit_hook(|| false);
        Ok(())
    }
    .boxed()
}

#[tokio::test]
async fn when_the_commit_fails_all_of_the_group_fail_and_nothing_is_kept() {
    let rig = rig().await;
    add(&rig.sqlite, "earlier").await.expect("a write");
    let busy = busy(&rig.sqlite, refuse_commits).await;
    let second = in_background(&rig.sqlite, "second");
    waiting(&rig.sqlite, 1).await;
    // Its own failure came from the group, and is therefore none.
    let third = in_background(&rig.sqlite, "second");
    waiting(&rig.sqlite, 2).await;
    busy.go_on.notify_one();
    assert!(busy.first.await.expect("it ran").is_err());
    for write in [second, third] {
        let error = write.await.expect("it ran").expect_err("it is lost");
        assert_eq!(error.kind(), ErrorKind::Unavailable, "{error}");
    }
    assert_eq!(ids(&rig.sqlite).await, ["earlier"]);
    add(&rig.sqlite, "later").await.expect("the writer goes on");
    assert_eq!(ids(&rig.sqlite).await, ["earlier", "later"]);
}

/// As SQLite does by itself where it must, on a full disk for one.
#[tokio::test]
async fn when_the_transaction_ends_under_a_group_nobody_is_told_that_it_is_kept() {
    let rig = rig().await;
    let busy = busy(&rig.sqlite, nothing).await;
    let second = rig.sqlite.clone();
    let second: JoinHandle<Result<(), StoreError>> = caller(async move {
        second
            .write(|connection| {
                async move {
                    insert(&mut *connection, "second").await?;
                    sqlx::query("ROLLBACK").execute(connection).await?;
                    Err(StoreError::Full)
                }
                .boxed()
            })
            .await
    });
    waiting(&rig.sqlite, 1).await;
    let third = in_background(&rig.sqlite, "third");
    waiting(&rig.sqlite, 2).await;
    busy.go_on.notify_one();
    let lost = busy.first.await.expect("it ran").expect_err("it is lost");
    assert_eq!(lost.kind(), ErrorKind::Unavailable, "{lost}");
    assert!(
        matches!(second.await.expect("it ran"), Err(StoreError::Full)),
        "its own error"
    );
    third.await.expect("it ran").expect("the next transaction has it");
    assert_eq!(ids(&rig.sqlite).await, ["third"]);
}

#[tokio::test]
async fn what_stands_in_the_line_is_done_before_the_database_closes_even_if_its_caller_left() {
    let rig = rig().await;
    let busy = busy(&rig.sqlite, nothing).await;
    let stays = in_background(&rig.sqlite, "stays");
    waiting(&rig.sqlite, 1).await;
    let leaves = in_background(&rig.sqlite, "leaves");
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
    busy.go_on.notify_one();
    stays.await.expect("it ran").expect("it is kept");
    closing.await.expect("it closed");
    let again = Sqlite::open(&rig.path, options()).await.expect("it is free");
    assert_eq!(ids(&again).await, ["first", "leaves", "stays"]);
}

/// By itself it does nothing; with a path it dies in the third operation of a group.
#[tokio::test]
async fn a_process_that_dies() {
    let Some(path) = std::env::var_os(PATH) else { return };
    let sqlite = Sqlite::open(PathBuf::from(path), options()).await.expect("it opens");
    add(&sqlite, "acknowledged").await.expect("a write");
    let busy = busy(&sqlite, nothing).await;
    let _second = in_background(&sqlite, "second");
    waiting(&sqlite, 1).await;
    let third = sqlite.clone();
    let third: JoinHandle<Result<(), StoreError>> = caller(async move {
        let die: fn(&mut SqliteConnection) -> BoxFuture<'_, Result<(), StoreError>> = |connection| {
            async move {
                insert(connection, "third").await?;
                std::process::abort()
            }
            .boxed()
        };
        third.write(die).await
    });
    waiting(&sqlite, 2).await;
    busy.go_on.notify_one();
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

#[tokio::test]
async fn a_reader_that_comes_back_in_a_transaction_serves_the_next_with_the_newest_rows() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let only_one = SqliteOptions {
        readers: 1,
        ..options()
    };
    let sqlite = Sqlite::open(folder.path().join("x.db"), only_one).await.expect("opens");
    add(&sqlite, "a").await.expect("a write");
    let mut reader = sqlite.read().await.expect("a reader");
    let mut view = reader.begin().await.expect("a transaction");
    let seen: i64 = sqlx::query_scalar("SELECT count(*) FROM entry")
        .fetch_one(&mut *view)
        .await
        .expect("a count");
    assert_eq!(seen, 1);
    add(&sqlite, "b").await.expect("a write");
    drop(view);
    drop(reader);
    assert_eq!(ids(&sqlite).await, ["a", "b"]);

    let held = sqlite.read().await.expect("a reader");
    let mut next = Box::pin(sqlite.read());
    assert!(futures::poll!(&mut next).is_pending(), "the only one is on loan");
    drop(held);
    next.await.expect("it came back");
}
