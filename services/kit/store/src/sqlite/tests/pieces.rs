//! Writes that say what they ask first and what they keep last.

use sqlx::Row as _;
use sqlx::sqlite::SqliteRow;

use super::*;
use crate::Batch;

fn count_of(text: &str) -> Batch {
    let mut ask = Batch::default();
    ask.statement("SELECT count(*) FROM entry WHERE text = ?1 OR id = ?1")
        .with(text);
    ask
}

fn adding(id: &str) -> Batch {
    let mut keep = Batch::default();
    keep.statement("INSERT INTO entry (id, text) VALUES (?, ?)")
        .with(id)
        .with(id);
    keep
}

/// Adds both, and gives how many rows said `first` before.
async fn add_two(sqlite: &Sqlite, first: &'static str, second: &'static str) -> Result<i64, StoreError> {
    let both = sqlite.write_in_two(count_of(first), move |_, rows: Vec<SqliteRow>| {
        async move {
            let seen: i64 = rows.first().ok_or(sqlx::Error::RowNotFound)?.try_get(0)?;
            let mut keep = adding(first);
            keep.statement("INSERT INTO entry (id, text) VALUES (?, ?)")
                .with(second)
                .with(second);
            Ok((seen, keep))
        }
        .boxed()
    });
    both.await
}

#[tokio::test]
async fn an_operation_gets_what_it_asks_first_and_is_committed_with_what_it_keeps_last() {
    let rig = rig().await;
    assert_eq!(add_two(&rig.sqlite, "a", "b").await.expect("a write"), 0);
    let error = add_two(&rig.sqlite, "c", "a").await.expect_err("a is there");
    assert!(matches!(error, StoreError::Constraint { .. }), "{error}");
    assert_eq!(ids(&rig.sqlite).await, ["a", "b"], "nothing of it is kept");
    assert_eq!(add_two(&rig.sqlite, "d", "e").await.expect("the writer goes on"), 0);
    assert_eq!(ids(&rig.sqlite).await, ["a", "b", "d", "e"]);
}

/// The middle one and the last one fail in the piece that ends them.
#[tokio::test]
async fn what_is_kept_last_and_fails_undoes_its_own_operation_and_no_other() {
    let rig = rig().await;
    let busy = group::busy(&rig.sqlite, group::nothing).await;
    let pairs = [("a", "b"), ("c", "a"), ("d", "e"), ("f", "first")];
    let mut writes = Vec::new();
    for (number, (first, second)) in (1..).zip(pairs) {
        let sqlite = rig.sqlite.clone();
        writes.push(group::caller(async move { add_two(&sqlite, first, second).await }));
        group::waiting(&rig.sqlite, number).await;
    }
    busy.go_on.notify_one();
    busy.first.await.expect("it ran").expect("the first is kept");
    let mut kept = Vec::new();
    for write in writes {
        kept.push(write.await.expect("it ran").is_ok());
    }
    assert_eq!(kept, [true, false, true, false]);
    assert_eq!(ids(&rig.sqlite).await, ["a", "b", "d", "e", "first"]);
}

#[tokio::test]
async fn a_first_question_that_cannot_be_asked_fails_its_operation_and_the_writer_goes_on() {
    let rig = rig().await;
    let mut ask = Batch::default();
    ask.statement("SELECT nothing FROM nowhere");
    let asked = rig.sqlite.write_in_two(ask, |_, _| {
        async { Ok::<_, StoreError>(((), Batch::default())) }.boxed()
    });
    assert!(asked.await.is_err());
    add(&rig.sqlite, "later").await.expect("a write");
    assert_eq!(ids(&rig.sqlite).await, ["later"]);
}

/// Who serves the line does so in its own task; what it was in the midst of goes on without it.
#[tokio::test]
async fn a_caller_that_serves_the_line_and_goes_away_leaves_its_work_to_a_task() {
    let rig = rig().await;
    let busy = group::busy(&rig.sqlite, group::nothing).await;
    let second = group::in_background(&rig.sqlite, "second");
    group::waiting(&rig.sqlite, 1).await;
    busy.first.abort();
    assert!(busy.first.await.expect_err("it left").is_cancelled());
    busy.go_on.notify_one();
    second.await.expect("it ran").expect("it is kept");
    assert_eq!(ids(&rig.sqlite).await, ["first", "second"]);
}

fn look(text: &str) -> Batch {
    let mut look = Batch::default();
    look.statement("SELECT count(*) AS answer FROM entry")
        .statement("SELECT id AS answer FROM entry WHERE text = ?1")
        .with(text.to_owned())
        .statement("SELECT text AS answer FROM entry WHERE text = ?1 OR id = ?1 ORDER BY id");
    look
}

#[tokio::test]
async fn a_look_gives_the_rows_of_all_its_statements_and_shares_its_values() {
    let rig = rig().await;
    for id in ["a", "b"] {
        add(&rig.sqlite, id).await.expect("written");
    }
    let reader = rig.sqlite.read().await.expect("a reader");
    let rows = reader.at_once(look("b")).await.expect("rows");
    assert_eq!(rows[0].get::<i64, _>("answer"), 2);
    let rest: Vec<&str> = rows[1..].iter().map(|row| row.get("answer")).collect();
    assert_eq!(rest, ["b", "b"]);
}

#[tokio::test]
async fn a_look_that_fails_or_is_left_leaves_no_reader_in_a_transaction() {
    let rig = rig().await;
    add(&rig.sqlite, "a").await.expect("written");
    for _ in 0..4 {
        let mut wrong = look("a");
        wrong.statement("SELECT nothing FROM nowhere");
        let reader = rig.sqlite.read().await.expect("a reader");
        assert!(reader.at_once(wrong).await.is_err());
        let reader = rig.sqlite.read().await.expect("a reader");
        let mut left = Box::pin(reader.at_once(look("a")));
        // Sent, and left before there is an answer.
        let _ = futures::poll!(&mut left);
        drop(left);
    }
    add(&rig.sqlite, "b").await.expect("written");
    // Each sees what was written since, which one in an old transaction would not.
    let (one, other) = (
        rig.sqlite.read().await.expect("a reader"),
        rig.sqlite.read().await.expect("another"),
    );
    for reader in [one, other] {
        let rows = reader.at_once(look("b")).await.expect("rows");
        assert_eq!(rows[0].get::<i64, _>("answer"), 2);
    }
}

/// A statement with a limit that is given as a value was planned anew at every execution.
#[tokio::test]
async fn a_statement_keeps_its_plan_whatever_its_values_are() {
    let rig = rig().await;
    let mut reader = rig.sqlite.read().await.expect("a reader");
    let kept: i64 = sqlx::query_scalar("SELECT sqlite_compileoption_used('ENABLE_QPSG')")
        .fetch_one(&mut *reader)
        .await
        .expect("an answer");
    assert_eq!(kept, 1, "SQLite was built without the flags of .cargo/config.toml");
}
