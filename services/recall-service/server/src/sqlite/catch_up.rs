//! How the index follows the messages: a bounded piece at a time, each a transaction of its own.
//!
//! An append writes rows and leaves the index alone. Rows behind `index_state.covered` wait for a piece: of the background,
//! which takes them a moment later, or of a search, which first brings in what was acknowledged before it (`Q-11`). Nothing
//! here decides who does that when; see `follow`.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use sqlx::Row as _;
use steward_recall_core::Error;
use steward_store::{Batch, Sqlite};

use super::failure::Failure;

/// Most rows of a piece: some three milliseconds of work.
const ROWS: i64 = 64;
/// Most text of a piece in bytes, if it is more than one message.
const BYTES: i64 = 128 * 1024;
/// Pages of the index that are merged at a time: about a millisecond.
const PAGES: i64 = 32;

/// What waits, and how many rows of it are taken next.
const WAITING: &str = "SELECT covered, coalesce((SELECT max(doc) FROM message), 0) AS last,
         (SELECT max(doc) FROM (
             SELECT doc, sum(bytes) OVER (ORDER BY doc) AS total, row_number() OVER (ORDER BY doc) AS place
             FROM (SELECT doc, octet_length(said) + octet_length(tool_text) AS bytes FROM message
                   WHERE doc > (SELECT covered FROM index_state) ORDER BY doc LIMIT ?))
          WHERE place = 1 OR total <= ?) AS until
     FROM index_state";
const COVER: &str = "UPDATE index_state SET covered = ?";
/// The view ends where the index does, which is the new place by now.
const ADD: &str = "INSERT INTO message_index (rowid, said, tool, day)
     SELECT doc, said, tool, day FROM message_text WHERE doc > ?";
const MERGE: &str = "INSERT INTO message_index (message_index, rank) VALUES ('merge', ?)";

/// How far the index of an open file is, without asking the file. Clones share it.
#[derive(Debug, Clone, Default)]
pub(super) struct Progress(Arc<Inner>);

#[derive(Debug, Default)]
struct Inner {
    /// Counts writes that added messages, from within their transactions.
    written: AtomicU64,
    /// The count up to which the index has all of them.
    covered: AtomicU64,
    /// Whether the background has it on its list.
    queued: AtomicBool,
}

impl Progress {
    /// Called inside a transaction that adds messages.
    pub(super) fn wrote(&self) {
        self.0.written.fetch_add(1, Ordering::AcqRel);
    }

    /// Whether messages may wait.
    pub(super) fn is_behind(&self) -> bool {
        self.0.written.load(Ordering::Acquire) > self.0.covered.load(Ordering::Acquire)
    }

    /// Puts it on the list; whether it was not on it before.
    pub(super) fn queue(&self) -> bool {
        !self.0.queued.swap(true, Ordering::AcqRel)
    }

    /// It was taken from the list.
    pub(super) fn unqueue(&self) {
        self.0.queued.store(false, Ordering::Release);
    }

    fn written(&self) -> u64 {
        self.0.written.load(Ordering::Acquire)
    }

    /// The index has everything that was written up to this count.
    fn cover(&self, written: u64) {
        self.0.covered.fetch_max(written, Ordering::AcqRel);
    }
}

/// What a piece left.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Piece {
    /// The last row that is in the index now.
    pub(super) covered: i64,
    /// The last row there is.
    pub(super) last: i64,
    written: u64,
}

impl Piece {
    pub(super) fn is_last(&self) -> bool {
        self.covered >= self.last
    }
}

/// Whether a piece also merges a little of the index: not where somebody waits for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Upkeep {
    Merge,
    Leave,
}

/// Brings everything into the index that waits at this moment. What is added meanwhile is left to the next.
pub(super) async fn bring(sqlite: &Sqlite, progress: &Progress) -> Result<(), Failure> {
    let first = piece(sqlite, progress, Upkeep::Leave).await?;
    let mut covered = first.covered;
    while covered < first.last {
        covered = piece(sqlite, progress, Upkeep::Leave).await?.covered;
    }
    Ok(())
}

/// Brings the next rows into the index.
pub(super) async fn piece(sqlite: &Sqlite, progress: &Progress, upkeep: Upkeep) -> Result<Piece, Failure> {
    let mut ask = Batch::default();
    ask.statement(WAITING).with(ROWS).with(BYTES);
    let seen = progress.clone();
    let done = sqlite.write_in_two(ask, move |_connection, found| {
        Box::pin(async move {
            // In a transaction that has the writer: whoever counted before is before it.
            let written = seen.written();
            let row = found.first();
            let row = row.ok_or_else(|| Error::damaged("the file does not say how far its index is"))?;
            let (covered, last): (i64, i64) = (row.try_get("covered")?, row.try_get("last")?);
            let until: Option<i64> = row.try_get("until")?;
            let mut batch = Batch::default();
            if let Some(until) = until {
                batch.statement(COVER).with(until);
                batch.statement(ADD).with(covered);
                if upkeep == Upkeep::Merge {
                    batch.statement(MERGE).with(PAGES);
                }
            }
            let piece = Piece {
                covered: until.unwrap_or(covered.max(last)),
                last,
                written,
            };
            Ok::<_, Failure>((piece, batch))
        })
    });
    let piece = done.await?;
    if piece.is_last() {
        progress.cover(piece.written);
    }
    Ok(piece)
}

/// Merges a little of the index; whether there was anything to merge.
pub(super) async fn merge(sqlite: &Sqlite) -> Result<bool, Failure> {
    sqlite
        .write(|connection| {
            Box::pin(async move {
                const CHANGES: &str = "SELECT total_changes()";
                let before: i64 = sqlx::query_scalar(CHANGES).fetch_one(&mut *connection).await?;
                sqlx::query(MERGE).bind(PAGES).execute(&mut *connection).await?;
                let after: i64 = sqlx::query_scalar(CHANGES).fetch_one(connection).await?;
                // The command counts as one change itself.
                Ok(after - before >= 2)
            })
        })
        .await
}
