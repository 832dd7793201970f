//! Reading books and histories.

use steward_base::Timestamp;
use steward_base::names::{EntryId, TeamId, UserId};
use steward_memory_core::{Book, Owner, Revision, StoreName};
use steward_store::Db;

use super::rows::{EntryRow, RevisionRow, revision_columns};
use super::{Failure, damaged};

const HEAD: &str = "SELECT revision, refusals FROM books WHERE team = ? AND owner = ? AND target = ?";

/// An entry whose revision is missing is a row all the same.
const ENTRIES: &str = concat!(
    "SELECT e.entry, e.created_at, d.failed_check, ",
    revision_columns!(),
    " FROM entries AS e \
      LEFT JOIN revisions AS r USING (team, owner, target, entry, revision) \
      LEFT JOIN doubts AS d USING (team, owner, target, entry, revision) \
      WHERE e.team = ? AND e.owner = ? AND e.target = ? \
      ORDER BY e.created_at, e.entry"
);

const HISTORY: &str = concat!(
    "SELECT ",
    revision_columns!(),
    " FROM revisions AS r \
      WHERE r.team = ? AND r.owner = ? AND r.target = ? AND r.entry = ? \
      ORDER BY r.revision"
);

/// What is shared has an owner other than a person.
const STALE: &str = "\
SELECT count(*) FROM entries AS e
JOIN revisions AS r USING (team, owner, target, entry, revision)
LEFT JOIN doubts AS d USING (team, owner, target, entry, revision)
WHERE e.team = ?1 AND (e.owner = ?2 OR e.owner NOT LIKE 'users/%')
  AND (r.holds_until <= ?3 OR d.failed_check IS NOT NULL)";

/// What stands at the head of a book: its revision, and its refusals as JSON.
pub(super) type Head = (u64, String);

/// The head of a book that was ever written to.
pub(super) fn head(db: Db<'_>, store: &StoreName) -> Result<Option<Head>, Failure> {
    let key = (store.team.as_str(), store.owner.key(), store.target.as_str());
    db.first(HEAD, key, |row| {
        let revision: i64 = row.get(0)?;
        let number = u64::try_from(revision).map_err(|_| damaged("book revision", &revision.to_string()))?;
        Ok((number, row.get(1)?))
    })
}

/// The book of a store; one that was never written to is empty. An entry that cannot be read is set apart and hides no
/// other; refusals that cannot be read are counted anew.
pub(super) fn book(db: Db<'_>, store: &StoreName) -> Result<Book, Failure> {
    match head(db, store)? {
        None => Ok(Book::default()),
        Some(head) => Ok(headed(entries(db, store)?, head)),
    }
}

/// The entries of a book under its head.
pub(super) fn headed(entries: Book, (revision, refusals): Head) -> Book {
    Book {
        revision,
        refusals: serde_json::from_str(&refusals).unwrap_or_default(),
        ..entries
    }
}

/// The entries of a store in their order, as a book without a head.
pub(super) fn entries(db: Db<'_>, store: &StoreName) -> Result<Book, Failure> {
    let mut book = Book::default();
    let key = (store.team.as_str(), store.owner.key(), store.target.as_str());
    db.all(ENTRIES, key, |row| {
        let entry = EntryRow::read(row, 1).map_err(Failure::from);
        match entry.and_then(EntryRow::into_entry) {
            Ok(entry) => book.entries.push(entry),
            Err(_) => book.damaged.push(row.get(0).unwrap_or_default()),
        }
        Ok::<_, Failure>(())
    })?;
    Ok(book)
}

/// How many entries no longer hold of what a team shares and of a person's own.
pub(super) fn stale(db: Db<'_>, team: &TeamId, user: Option<&UserId>, at: Timestamp) -> Result<usize, Failure> {
    let own = user.map(|user| Owner::Person(user.clone()).key());
    let count: i64 = db.value(STALE, (team.as_str(), own, at.as_micros()))?;
    Ok(usize::try_from(count).unwrap_or(usize::MAX))
}

/// The history of an entry, oldest first.
pub(super) fn history(db: Db<'_>, store: &StoreName, entry: &EntryId) -> Result<Vec<Revision>, Failure> {
    let key = (
        store.team.as_str(),
        store.owner.key(),
        store.target.as_str(),
        entry.as_str(),
    );
    db.all(HISTORY, key, |row| RevisionRow::read(row, 0)?.into_revision())
}
