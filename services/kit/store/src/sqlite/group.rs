//! One transaction for all operations that wait: a flush to disk costs more than most operations.
//!
//! The first runs in the transaction itself, each further one in a savepoint, so that one which fails undoes what it did and
//! no more. Nobody is told anything before the commit: an operation that failed may have failed because of what one before
//! it did, and if that is lost the failure was about nothing. When the first one fails there is nothing to share, and the
//! transaction ends with it.

use std::time::Duration;

use sqlx::Connection;
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
    /// Something failed that may have left one open, or the driver's count of them wrong: SQLite rolls back by itself
    /// where it must, on a full disk for one. Only a new connection is certain.
    Unsure,
}

/// Runs and commits what waits, at least one operation unless the line is empty.
pub(super) async fn run(connection: &mut SqliteConnection, writer: &Writer) -> After {
    let Some(first) = writer.next() else {
        return After::Sound;
    };
    let begun = Instant::now();
    let mut transaction = match connection.begin_with("BEGIN IMMEDIATE").await {
        Ok(transaction) => transaction,
        Err(error) => {
            first.refuse(error.into());
            return After::Unsure;
        }
    };
    let outcome = first.run(&mut transaction).await;
    if !outcome.is_success() {
        let ended = transaction.rollback().await;
        outcome.tell(None);
        return if ended.is_ok() { After::Sound } else { After::Unsure };
    }
    let mut outcomes = vec![outcome];
    while outcomes.len() < MOST && begun.elapsed() < LONGEST {
        let Some(next) = writer.next() else { break };
        let mut savepoint = match transaction.begin().await {
            Ok(savepoint) => savepoint,
            Err(error) => {
                let error = StoreError::from(error);
                lose(outcomes, &error);
                next.refuse(error);
                return After::Unsure;
            }
        };
        let outcome = next.run(&mut savepoint).await;
        let ended = if outcome.is_success() {
            savepoint.commit().await
        } else {
            savepoint.rollback().await
        };
        if let Err(error) = ended {
            let error = StoreError::from(error);
            lose(outcomes, &error);
            let succeeded = outcome.is_success();
            outcome.tell(succeeded.then_some(error));
            return After::Unsure;
        }
        outcomes.push(outcome);
    }
    match transaction.commit().await {
        Ok(()) => {
            for outcome in outcomes {
                outcome.tell(None);
            }
            After::Sound
        }
        Err(error) => {
            lose(outcomes, &StoreError::from(error));
            After::Unsure
        }
    }
}

/// Tells all that nothing was kept.
fn lose(outcomes: Vec<Box<dyn Outcome>>, error: &StoreError) {
    for outcome in outcomes {
        outcome.tell(Some(error.for_another()));
    }
}
