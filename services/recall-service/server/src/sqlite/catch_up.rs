//! How the index follows the messages: a bounded piece at a time, each a transaction of its own.
//!
//! An append writes rows and leaves the index alone. Rows behind `index_state.covered` wait for a piece: of the background,
//! which takes them a moment later, or of a search, which first brings in what was acknowledged before it (`Q-11`). Nothing
//! here decides who does that when; see `follow`.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use steward_recall_core::Error;
use steward_store::{Db, Sqlite};

use super::failure::Failure;

/// Most rows of a piece: some three milliseconds of work.
const ROWS: i64 = 64;
/// Most text of a piece in bytes, if it is more than one message.
const BYTES: i64 = 128 * 1024;
/// Pages of the index that are merged at a time: about a millisecond.
const PAGES: i64 = 32;

/// What waits, in order: its numbers and bytes of text.
const WAITING: &str = "SELECT doc, octet_length(said) + octet_length(tool_text) FROM message WHERE doc > ?
     ORDER BY doc LIMIT ?";
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
    let seen = progress.clone();
    let done = sqlite.update(move |db| {
        // In a transaction that has the writer: whoever counted before is before it.
        let written = seen.written();
        let covered: Option<i64> = db.optional("SELECT covered FROM index_state", ())?;
        let covered = covered.ok_or_else(|| Error::damaged("the file does not say how far its index is"))?;
        let last: Option<i64> = db.value("SELECT max(doc) FROM message", ())?;
        let until = next(db, covered)?;
        if let Some(until) = until {
            db.execute("UPDATE index_state SET covered = ?", [until])?;
            db.execute(ADD, [covered])?;
            if upkeep == Upkeep::Merge {
                db.execute(MERGE, [PAGES])?;
            }
        }
        let last = last.unwrap_or(0);
        Ok::<_, Failure>(Piece {
            covered: until.unwrap_or(covered.max(last)),
            last,
            written,
        })
    });
    let piece = done.await?;
    if piece.is_last() {
        progress.cover(piece.written);
    }
    Ok(piece)
}

/// The last row of the next piece behind `covered`; `None` if nothing waits.
fn next(db: Db<'_>, covered: i64) -> Result<Option<i64>, Failure> {
    let (mut until, mut bytes) = (None, 0);
    let mut waiting = db.prepare(WAITING)?;
    let mut rows = waiting.query([covered, ROWS])?;
    while let Some(row) = rows.next()? {
        bytes += row.get::<_, i64>(1)?;
        if until.is_some() && bytes > BYTES {
            break;
        }
        until = Some(row.get(0)?);
    }
    Ok(until)
}

/// Merges a little of the index; whether there was anything to merge.
pub(super) async fn merge(sqlite: &Sqlite) -> Result<bool, Failure> {
    let done = sqlite.update(|db| {
        const CHANGES: &str = "SELECT total_changes()";
        let before: i64 = db.value(CHANGES, ())?;
        db.execute(MERGE, [PAGES])?;
        let after: i64 = db.value(CHANGES, ())?;
        // The command counts as one change itself.
        Ok::<_, Failure>(after - before >= 2)
    });
    done.await
}
