//! Reading: what a view sees, what it may not do, what stops it.

use std::sync::mpsc;

use super::group::caller;
use super::*;

#[tokio::test]
async fn a_view_sees_one_moment_and_cannot_write() {
    let rig = rig().await;
    add(&rig.sqlite, "a").await.expect("it is kept");
    let (viewing, is_viewing) = oneshot::channel();
    let (written, is_written) = mpsc::channel::<()>();
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
    add(&rig.sqlite, "b").await.expect("it is kept");
    written.send(()).expect("it waits");
    assert_eq!(counted.await.expect("it ran").expect("a view"), (1, 1));
    let error = rig
        .sqlite
        .view(|db| insert(db, "c"))
        .await
        .expect_err("a reader does not write");
    assert_eq!(error.reason(), "STORE_FAILED");
    assert_eq!(ids(&rig.sqlite).await, ["a", "b"]);
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
    assert_eq!(ids(&rig.sqlite).await, Vec::<String>::new());
}

#[tokio::test]
async fn views_wait_while_all_readers_are_busy() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let only_one = SqliteOptions {
        readers: 1,
        ..options()
    };
    let sqlite = Sqlite::open(folder.path().join("x.db"), only_one).await.expect("opens");
    add(&sqlite, "a").await.expect("it is kept");
    let (viewing, is_viewing) = oneshot::channel();
    let (enough, is_enough) = mpsc::channel::<()>();
    let busy = sqlite.clone();
    let busy = caller(async move {
        let held = busy.view_beside(move |_db| {
            viewing.send(()).ok();
            is_enough.recv().ok();
            Ok::<_, StoreError>(())
        });
        held.await
    });
    is_viewing.await.expect("it looks");
    let mut next = Box::pin(ids(&sqlite));
    assert!(futures::poll!(&mut next).is_pending(), "the only one is on loan");
    enough.send(()).expect("it waits");
    assert_eq!(next.await, ["a"]);
    busy.await.expect("it ran").expect("a view");
}

/// What runs on in a connection is not the next one's: its transaction ends with a panic, too.
#[tokio::test]
async fn a_view_that_panics_leaves_its_reader_whole() {
    let rig = rig().await;
    let panicked: Result<(), StoreError> = rig.sqlite.view_beside(|_db| panic!("a bug")).await;
    assert!(matches!(panicked, Err(StoreError::Panicked)));
    add(&rig.sqlite, "a").await.expect("it is kept");
    assert_eq!(ids(&rig.sqlite).await, ["a"]);
}
