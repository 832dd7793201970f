//! Reading books and histories.

use sqlx::sqlite::{SqliteConnection, SqliteRow};
use sqlx::{FromRow as _, Row as _};
use steward_base::Timestamp;
use steward_base::names::{EntryId, TeamId, UserId};
use steward_memory_core::{Book, Owner, Revision, StoreName};

use super::rows::{EntryRow, RevisionRow};
use super::{Failure, damaged};

/// An entry whose revision is missing is a row all the same.
const ENTRIES: &str = "\
SELECT e.entry AS id, e.created_at, r.entry, r.revision, r.action, r.content, r.written_at, r.author, r.origin, r.session, r.turn, r.job,
       r.evidence_session, r.evidence_spans, r.basis, r.integrity, r.reason, r.approved_by, r.holds_until, r.checks,
       d.failed_check
FROM entries AS e
LEFT JOIN revisions AS r USING (team, owner, target, entry, revision)
LEFT JOIN doubts AS d USING (team, owner, target, entry, revision)
WHERE e.team = ? AND e.owner = ? AND e.target = ?
ORDER BY e.created_at, e.entry";

const HISTORY: &str = "\
SELECT entry, revision, action, content, written_at, author, origin, session, turn, job,
       evidence_session, evidence_spans, basis, integrity, reason, approved_by, holds_until, checks
FROM revisions
WHERE team = ? AND owner = ? AND target = ? AND entry = ?
ORDER BY revision";

/// What is shared has an owner other than a person.
const STALE: &str = "\
SELECT count(*) FROM entries AS e
JOIN revisions AS r USING (team, owner, target, entry, revision)
LEFT JOIN doubts AS d USING (team, owner, target, entry, revision)
WHERE e.team = ?1 AND (e.owner = ?2 OR e.owner NOT LIKE 'users/%')
  AND (r.holds_until <= ?3 OR d.failed_check IS NOT NULL)";

/// The book of a store; one that was never written to is empty. An entry that cannot be read is set apart and hides no
/// other; refusals that cannot be read are counted anew. The caller sees to one view for both statements.
pub(super) async fn book(connection: &mut SqliteConnection, store: &StoreName) -> Result<Book, Failure> {
    let owner = store.owner.key();
    let head: Option<(i64, String)> =
        sqlx::query_as("SELECT revision, refusals FROM books WHERE team = ? AND owner = ? AND target = ?")
            .bind(store.team.as_str())
            .bind(&owner)
            .bind(store.target.as_str())
            .fetch_optional(&mut *connection)
            .await?;
    let Some((revision, refusals)) = head else {
        return Ok(Book::default());
    };
    let entries = entries(connection, store).await?;
    Ok(Book {
        revision: u64::try_from(revision).map_err(|_| damaged("book revision", &revision.to_string()))?,
        refusals: serde_json::from_str(&refusals).unwrap_or_default(),
        ..entries
    })
}

/// The entries of a store in their order, as a book without a head.
pub(super) async fn entries(connection: &mut SqliteConnection, store: &StoreName) -> Result<Book, Failure> {
    let rows: Vec<SqliteRow> = sqlx::query(ENTRIES)
        .bind(store.team.as_str())
        .bind(store.owner.key())
        .bind(store.target.as_str())
        .fetch_all(connection)
        .await?;
    let mut book = Book::default();
    for row in &rows {
        match EntryRow::from_row(row)
            .map_err(Failure::from)
            .and_then(EntryRow::into_entry)
        {
            Ok(entry) => book.entries.push(entry),
            Err(_) => book.damaged.push(row.try_get("id").unwrap_or_default()),
        }
    }
    Ok(book)
}

/// How many entries no longer hold of what a team shares and of a person's own.
pub(super) async fn stale(
    connection: &mut SqliteConnection,
    team: &TeamId,
    user: Option<&UserId>,
    at: Timestamp,
) -> Result<usize, Failure> {
    let count: i64 = sqlx::query_scalar(STALE)
        .bind(team.as_str())
        .bind(user.map(|user| Owner::Person(user.clone()).key()))
        .bind(at.as_micros())
        .fetch_one(connection)
        .await?;
    Ok(usize::try_from(count).unwrap_or(usize::MAX))
}

/// The history of an entry, oldest first.
pub(super) async fn history(
    connection: &mut SqliteConnection,
    store: &StoreName,
    entry: &EntryId,
) -> Result<Vec<Revision>, Failure> {
    let rows: Vec<RevisionRow> = sqlx::query_as(HISTORY)
        .bind(store.team.as_str())
        .bind(store.owner.key())
        .bind(store.target.as_str())
        .bind(entry.as_str())
        .fetch_all(connection)
        .await?;
    rows.into_iter().map(RevisionRow::into_revision).collect()
}
