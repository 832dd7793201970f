//! One transaction for all operations that wait: a flush to disk costs more than most operations.
//!
//! The first runs in the transaction itself, each further one in a savepoint, so that one which fails undoes what it did and
//! no more. Nobody is told anything before the commit: an operation that failed may have failed because of what one before
//! it did, and if that is lost the failure was about nothing. When the first one fails there is nothing to share, and the
//! transaction ends with it.

use std::time::Duration;

use sqlx::sqlite::SqliteConnection;
use tokio::time::Instant;

use super::write::{Outcome, Writer};
use crate::StoreError;

/// Most operations of one transaction.
const MOST: usize = 64;
/// No operation is added to a transaction that is older: the first caller waits for the last one's work.
#[cfg(not(test))]
const LONGEST: Duration = Duration::from_millis(5);
/// A test says itself what comes together.
#[cfg(test)]
const LONGEST: Duration = Duration::from_hours(1);

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
    let Some(first) = writer.next() else {
        return After::Sound;
    };
    let begun = Instant::now();
    if let Err(error) = statement(connection, "BEGIN IMMEDIATE").await {
        first.refuse(error);
        return After::Unsure;
    }
    let outcome = first.run(connection).await;
    if !outcome.is_success() {
        let ended = statement(connection, "ROLLBACK").await;
        outcome.tell(None);
        return if ended.is_ok() { After::Sound } else { After::Unsure };
    }
    let mut outcomes = vec![outcome];
    while outcomes.len() < MOST && begun.elapsed() < LONGEST {
        let Some(next) = writer.next() else { break };
        if let Err(error) = statement(connection, "SAVEPOINT member").await {
            next.refuse(error.for_another());
            lose(outcomes, error.for_another());
            return After::Unsure;
        }
        let outcome = next.run(connection).await;
        let ended = if outcome.is_success() {
            statement(connection, "RELEASE member").await
        } else {
            // Undone, it is still there.
            match statement(connection, "ROLLBACK TO member").await {
                Ok(()) => statement(connection, "RELEASE member").await,
                failed => failed,
            }
        };
        if let Err(error) = ended {
            // What ended the transaction is what this one failed with; to all others it is somebody else's failure.
            let succeeded = outcome.is_success();
            outcome.tell(succeeded.then(|| error.for_another()));
            lose(outcomes, error.for_another());
            return After::Unsure;
        }
        outcomes.push(outcome);
    }
    match statement(connection, "COMMIT").await {
        Ok(()) => {
            for outcome in outcomes {
                outcome.tell(None);
            }
            After::Sound
        }
        Err(error) => {
            lose(outcomes, error);
            After::Unsure
        }
    }
}

/// Not the driver's own transactions: their statements are parsed each time, and each waits for one more change of threads.
async fn statement(connection: &mut SqliteConnection, sql: &'static str) -> Result<(), StoreError> {
    sqlx::query(sql).execute(connection).await?;
    Ok(())
}

/// Tells all that nothing was kept, the first one with the error itself.
fn lose(outcomes: Vec<Box<dyn Outcome>>, error: StoreError) {
    let further = error.for_another();
    let mut whole = Some(error);
    for outcome in outcomes {
        outcome.tell(Some(whole.take().unwrap_or_else(|| further.for_another())));
    }
}
