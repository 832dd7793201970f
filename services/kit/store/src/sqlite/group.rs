//! One transaction for all updates that wait: a flush to disk costs more than most of them.
//!
//! The first runs in the transaction itself, each further one in a savepoint, so that one which fails undoes what it did and
//! no more. Nobody is told anything before the commit: an update that failed may have failed because of what one before it
//! did, and if that is lost the failure was about nothing. When the first one fails there is nothing to share, and the
//! transaction ends with it.

use std::time::{Duration, Instant};

use rusqlite::Connection;

use super::Db;
use super::operation::Outcome;
use super::update::Writer;
use crate::StoreError;

/// Most updates of one transaction.
const MOST: usize = 64;
/// No update is added to a transaction that is older: the first caller waits for the last one's work.
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

/// Runs and commits what waits, at least one update unless the line is empty.
pub(super) fn run(connection: &Connection, writer: &Writer) -> After {
    let Some(first) = writer.next() else {
        return After::Sound;
    };
    let begun = Instant::now();
    if let Err(error) = statement(connection, "BEGIN IMMEDIATE") {
        first.refuse(error);
        return After::Unsure;
    }
    let outcome = first.run(Db::new(connection));
    if !outcome.is_success() {
        return alone(connection, outcome);
    }
    let mut outcomes = vec![outcome];
    while outcomes.len() < MOST
        && begun.elapsed() < LONGEST
        && let Some(next) = writer.next()
    {
        if let Err(error) = statement(connection, "SAVEPOINT member") {
            next.refuse(error.for_another());
            return end(outcomes, Err(error.for_another()));
        }
        let mut outcome = next.run(Db::new(connection));
        if let Err(error) = leave(connection, outcome.is_success()) {
            // What ended the transaction is what this one failed with; to all others it is somebody else's failure.
            let lost = error.for_another();
            if outcome.is_success() {
                outcome.fail(error);
            }
            outcome.tell(None);
            return end(outcomes, Err(lost));
        }
        outcomes.push(outcome);
    }
    end(outcomes, statement(connection, "COMMIT"))
}

/// One that failed without another before it: the transaction ends with it.
fn alone(connection: &Connection, outcome: Box<dyn Outcome>) -> After {
    // SQLite has rolled back by itself where it must, on a full disk for one.
    let ended = connection.is_autocommit() || statement(connection, "ROLLBACK").is_ok();
    outcome.tell(None);
    if ended { After::Sound } else { After::Unsure }
}

/// Ends a savepoint. Undone, it is still there.
fn leave(connection: &Connection, keep: bool) -> Result<(), StoreError> {
    if !keep {
        statement(connection, "ROLLBACK TO member")?;
    }
    statement(connection, "RELEASE member")
}

fn statement(connection: &Connection, sql: &str) -> Result<(), StoreError> {
    connection.prepare_cached(sql)?.execute(())?;
    Ok(())
}

/// Tells all what came of them, or that nothing was kept, the first one with the error itself.
fn end(outcomes: Vec<Box<dyn Outcome>>, committed: Result<(), StoreError>) -> After {
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
