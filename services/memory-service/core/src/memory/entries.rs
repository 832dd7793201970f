//! Reading a store: its entries, one entry, and an entry's history (`M-12`).

use steward_base::names::EntryId;
use steward_base::{Caller, Timestamp};

use super::Memory;
use crate::access::{self, Act};
use crate::diff::{Line, lines};
use crate::entry::{Entry, Revision};
use crate::error::Error;
use crate::owner::StoreName;

/// A page of a store's entries.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EntryPage {
    /// In their order.
    pub entries: Vec<Entry>,
    /// Characters in use in the whole store, separators included.
    pub used: usize,
    /// Its budget.
    pub limit: usize,
    /// Its etag.
    pub etag: String,
    /// Ids of entries that cannot be read; all of them on the last page.
    pub damaged: Vec<String>,
    /// Whether entries follow after this page.
    pub more: bool,
    /// When it was read: by this an entry holds or does not.
    pub at: Timestamp,
}

/// Two revisions of an entry beside each other.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RevisionDiff {
    /// The earlier one's number.
    pub from: u32,
    /// The later one's number.
    pub to: u32,
    /// The lines of both.
    pub lines: Vec<Line>,
}

impl Memory {
    /// At most `size` entries of a store, those after the one that was created at and called as `after` says.
    pub async fn list_entries(
        &self,
        caller: &Caller,
        store: &StoreName,
        after: Option<&(Timestamp, EntryId)>,
        size: usize,
    ) -> Result<EntryPage, Error> {
        access::check(caller, store, Act::Read)?;
        let book = self.store.book(store).await?;
        let (used, etag) = (book.used(), book.etag());
        let damaged = book.damaged;
        let follows = |entry: &Entry| after.is_none_or(|(at, id)| (entry.created, &entry.id) > (*at, id));
        let mut entries: Vec<Entry> = book.entries.into_iter().filter(follows).collect();
        let more = entries.len() > size;
        entries.truncate(size);
        Ok(EntryPage {
            entries,
            used,
            limit: self.limits_of(store).of(store.target),
            etag,
            damaged: if more { Vec::new() } else { damaged },
            more,
            at: self.clock.now(),
        })
    }

    /// A present entry.
    pub async fn get_entry(&self, caller: &Caller, store: &StoreName, entry: &EntryId) -> Result<Entry, Error> {
        let missing = || Error::EntryNotFound {
            entry: store.entry(entry),
        };
        entry_access(caller, store, entry, Act::Read)?;
        let book = self.store.book(store).await?;
        if book.damaged.iter().any(|damaged| damaged == entry.as_str()) {
            return Err(Error::DataDamaged {
                what: store.entry(entry),
            });
        }
        book.entries
            .into_iter()
            .find(|present| present.id == *entry)
            .ok_or_else(missing)
    }

    /// What changed between two revisions of an entry; 0 stands for the one before the first, which has no text, as `from`
    /// and for the latest as `to`.
    pub async fn diff_revisions(
        &self,
        caller: &Caller,
        store: &StoreName,
        entry: &EntryId,
        from: u32,
        to: u32,
    ) -> Result<RevisionDiff, Error> {
        entry_access(caller, store, entry, Act::Read)?;
        let history = self.store.history(store, entry).await?;
        let Some(latest) = history.last().map(|last| last.number) else {
            return Err(Error::EntryNotFound {
                entry: store.entry(entry),
            });
        };
        let to = if to == 0 { latest } else { to };
        let text = |number: u32| match history.iter().find(|revision| revision.number == number) {
            Some(revision) => Ok(revision.content.as_deref().unwrap_or_default()),
            None if number == 0 => Ok(""),
            None => Err(Error::RevisionNotFound {
                entry: store.entry(entry),
                revision: number,
            }),
        };
        Ok(RevisionDiff {
            from,
            to,
            lines: lines(text(from)?, text(to)?),
        })
    }

    /// The history of an entry, present or removed, newest first; only revisions below `before`, at most `size`.
    pub async fn list_entry_revisions(
        &self,
        caller: &Caller,
        store: &StoreName,
        entry: &EntryId,
        before: Option<u32>,
        size: usize,
    ) -> Result<Vec<Revision>, Error> {
        entry_access(caller, store, entry, Act::Read)?;
        let history = self.store.history(store, entry).await?;
        if history.is_empty() {
            return Err(Error::EntryNotFound {
                entry: store.entry(entry),
            });
        }
        let earlier = |revision: &Revision| before.is_none_or(|before| revision.number < before);
        Ok(history.into_iter().rev().filter(earlier).take(size).collect())
    }
}

/// Whether the caller may do `act` to an entry; a store that the caller may not know of has no entries.
pub(super) fn entry_access(caller: &Caller, store: &StoreName, entry: &EntryId, act: Act) -> Result<(), Error> {
    if !access::knows(caller, &store.team, &store.owner) {
        return Err(Error::EntryNotFound {
            entry: store.entry(entry),
        });
    }
    access::permit(caller, &store.owner, act)
}
