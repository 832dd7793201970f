//! One transaction for all operations that wait: a flush to disk costs more than most operations.
//!
//! The first runs in the transaction itself, each further one in a savepoint, so that one which fails undoes what it did and
//! no more. Nobody is told anything before the commit: an operation that failed may have failed because of what one before
//! it did, and if that is lost the failure was about nothing. When the first one fails there is nothing to share, and the
//! transaction ends with it.
//!
//! What begins an operation is sent with what it asks first, and what ends it with what it keeps last: a piece that is sent
//! costs two changes of thread, which together are dearer than the statements in it.

use std::time::{Duration, Instant};

use sqlx::sqlite::SqliteConnection;

use super::operation::{Operation, Outcome};
use super::write::Writer;
use crate::{Batch, StoreError};

/// Most operations of one transaction.
pub(super) const MOST: usize = 64;
/// No operation is added to a transaction that is older: the first caller waits for the last one's work.
#[cfg(not(test))]
pub(super) const LONGEST: Duration = Duration::from_millis(5);
/// A test says itself what comes together.
#[cfg(test)]
pub(super) const LONGEST: Duration = Duration::from_hours(1);

/// Undone, a savepoint is still there.
const UNDO_MEMBER: [&str; 2] = ["ROLLBACK TO member", "RELEASE member"];

/// What is known about the connection after a group.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum After {
    /// No transaction is open.
    Sound,
    /// Something failed that may have left one open: SQLite rolls back by itself where it must, on a full disk for one.
    /// Only a new connection is certain.
    Unsure,
}

/// Runs and commits what waits, at least one operation unless the line is empty.
pub(super) async fn run(connection: &mut SqliteConnection, writer: &Writer) -> After {
    let Some(mut first) = writer.next_operation() else {
        return After::Sound;
    };
    let begun = Instant::now();
    let asked = first.ask().after("BEGIN IMMEDIATE").rows(connection).await;
    let rows = match asked {
        Ok(rows) => rows,
        Err(error) => {
            first.refuse(error);
            return After::Unsure;
        }
    };
    let mut outcome = first.run(connection, rows).await;
    if !outcome.is_success() {
        return alone(connection, outcome).await;
    }
    let mut last = is_last(writer, 1, begun);
    let mut kept = outcome.keep();
    if last {
        kept.statement("COMMIT");
    }
    if let Err(error) = kept.run(connection).await {
        outcome.fail(error);
        return alone(connection, outcome).await;
    }
    let mut outcomes = vec![outcome];
    while !last {
        let Some(next) = writer.next_operation() else {
            // Whoever waited has left.
            let committed = statement(connection, "COMMIT").await;
            return end(outcomes, committed);
        };
        last = match member(connection, writer, next, &mut outcomes, begun).await {
            Ok(last) => last,
            Err(error) => return end(outcomes, Err(error)),
        };
    }
    end(outcomes, Ok(()))
}

/// One that failed without another before it: the transaction ends with it.
async fn alone(connection: &mut SqliteConnection, outcome: Box<dyn Outcome>) -> After {
    let ended = statement(connection, "ROLLBACK").await;
    outcome.tell(None);
    if ended.is_ok() { After::Sound } else { After::Unsure }
}

/// Runs one more in a savepoint of its own. Gives whether the transaction was committed with it; an error loses all before it.
async fn member(
    connection: &mut SqliteConnection,
    writer: &Writer,
    mut operation: Box<dyn Operation>,
    outcomes: &mut Vec<Box<dyn Outcome>>,
    begun: Instant,
) -> Result<bool, StoreError> {
    let asked = operation.ask().after("SAVEPOINT member").rows(connection).await;
    let rows = match asked {
        Ok(rows) => rows,
        Err(error) => {
            operation.refuse(error.for_another());
            return Err(error.for_another());
        }
    };
    let mut outcome = operation.run(connection, rows).await;
    let last = is_last(writer, outcomes.len() + 1, begun);
    if outcome.is_success() {
        let mut kept = outcome.keep();
        kept.statement(if last { "COMMIT" } else { "RELEASE member" });
        match kept.run(connection).await {
            Ok(()) => {
                outcomes.push(outcome);
                return Ok(last);
            }
            Err(error) => outcome.fail(error),
        }
    }
    let mut undone = Batch::default();
    for sql in UNDO_MEMBER {
        undone.statement(sql);
    }
    if let Err(error) = undone.run(connection).await {
        // What ended the transaction is what this one failed with; to all others it is somebody else's failure.
        outcome.tell(None);
        return Err(error.for_another());
    }
    outcomes.push(outcome);
    if last {
        statement(connection, "COMMIT").await?;
    }
    Ok(last)
}

/// Whether nothing is to be added to the transaction.
fn is_last(writer: &Writer, ran: usize, begun: Instant) -> bool {
    ran >= MOST || begun.elapsed() >= LONGEST || !writer.has_operation_next()
}

/// Not the driver's own transactions: their statements are parsed each time, and each waits for one more change of threads.
async fn statement(connection: &mut SqliteConnection, sql: &'static str) -> Result<(), StoreError> {
    let mut batch = Batch::default();
    batch.statement(sql);
    batch.run(connection).await
}

/// Tells all what came of them, or that nothing was kept, the first one with the error itself.
pub(super) fn end(outcomes: Vec<Box<dyn Outcome>>, committed: Result<(), StoreError>) -> After {
    let Err(error) = committed else {
        for outcome in outcomes {
            outcome.tell(None);
        }
        return After::Sound;
    };
    let further = error.for_another();
    let mut whole = Some(error);
    for outcome in outcomes {
        outcome.tell(Some(whole.take().unwrap_or_else(|| further.for_another())));
    }
    After::Unsure
}
