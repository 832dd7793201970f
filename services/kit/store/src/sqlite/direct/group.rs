//! One transaction for all writes that wait: a flush to disk costs more than most of them.
//!
//! The first runs in the transaction itself, each further one in a savepoint, so that one which fails undoes what it did and
//! no more. Nobody is told anything before the commit: a write that failed may have failed because of what one before it
//! did, and if that is lost the failure was about nothing. When the first one fails there is nothing to share, and the
//! transaction ends with it.

use std::time::Instant;

use rusqlite::Connection;

use super::Db;
use crate::StoreError;
use crate::sqlite::group::{After, LONGEST, MOST, end};
use crate::sqlite::operation::Outcome;
use crate::sqlite::write::Writer;

/// Runs and commits what waits, at least one write unless none is next.
pub(in crate::sqlite) fn run(connection: &Connection, writer: &Writer) -> After {
    let Some(first) = writer.next_update() else {
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
        && let Some(next) = writer.next_update()
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
