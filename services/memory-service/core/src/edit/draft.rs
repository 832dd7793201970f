//! A book in the making: what operations have done to it so far, and the check of its end state (`M-5`, `M-7`).

use steward_base::Timestamp;
use steward_base::names::EntryId;

use super::Step;
use crate::book::{Book, Limits, Refusals};
use crate::entry::{Action, Entry, Provenance, Revision};
use crate::owner::Target;
use crate::refusal::{Refusal, Refused};

/// What new revisions are stamped with.
#[derive(Debug, Clone, Copy)]
pub struct Stamp<'a> {
    /// The time of the write.
    pub at: Timestamp,
    /// Where it comes from.
    pub provenance: &'a Provenance,
}

/// A book in the making.
#[derive(Debug, Clone)]
pub struct Draft {
    /// Which book.
    pub(super) target: Target,
    /// The end state. A changed book has a new revision and, if room was made, no refusals.
    pub book: Book,
    /// New revisions, in order.
    pub revisions: Vec<Revision>,
    /// What became of each operation.
    pub steps: Vec<Step>,
}

impl Draft {
    /// The book as it is, before any change.
    pub fn new(target: Target, book: Book) -> Self {
        Self {
            target,
            book,
            revisions: Vec::new(),
            steps: Vec::new(),
        }
    }

    /// Whether anything changed.
    pub fn is_change(&self) -> bool {
        !self.revisions.is_empty()
    }

    /// The entries of the end state that this draft made or changed.
    pub fn changed(&self) -> Vec<Entry> {
        let touched = |entry: &&Entry| self.revisions.iter().any(|revision| revision.entry == entry.id);
        self.book.entries.iter().filter(touched).cloned().collect()
    }

    /// The entries that this draft took out.
    pub fn gone(&self) -> Vec<EntryId> {
        let present = |id: &EntryId| self.book.entries.iter().any(|entry| entry.id == *id);
        self.revisions
            .iter()
            .map(|revision| revision.entry.clone())
            .filter(|id| !present(id))
            .collect()
    }

    /// Adds a revision to the history and makes it the present state of its entry.
    pub(super) fn record(&mut self, entry: Entry, action: Action) {
        let content = (action != Action::Removed).then(|| entry.content.clone());
        self.revisions.push(Revision {
            entry: entry.id.clone(),
            number: entry.revision,
            action,
            content,
            at: entry.changed,
            provenance: entry.provenance.clone(),
        });
        self.book.entries.retain(|present| present.id != entry.id);
        if action != Action::Removed {
            self.book.insert(entry);
        }
    }

    /// The refusal of an end state that does not fit and is no smaller than what was there before.
    pub(super) fn overflow(&self, before: &Book, limits: &Limits) -> Option<Refusal> {
        let (used, needed, limit) = (before.used(), self.book.used(), limits.of(self.target));
        (needed > limit && needed > used).then(|| Refusal::OverBudget {
            target: self.target,
            used,
            limit,
            needed,
            entries: contents(before),
            is_final: false,
        })
    }

    /// Checks the end state against the budget; what was over it before may stay so as long as it shrinks. Then counts
    /// the change in the book's revision, and forgets its refusals where room was made.
    pub(super) fn finish(mut self, before: &Book, limits: &Limits) -> Result<Self, Refused> {
        if let Some(refusal) = self.overflow(before, limits) {
            return Err(Refused::whole(refusal));
        }
        let (used, needed) = (before.used(), self.book.used());
        if self.is_change() {
            self.book.revision += 1;
            let removed = self.revisions.iter().any(|revision| revision.action == Action::Removed);
            if removed || needed < used {
                self.book.refusals = Refusals::default();
            }
        }
        Ok(self)
    }
}

/// The texts of all entries.
pub(super) fn contents(book: &Book) -> Vec<String> {
    book.entries.iter().map(|entry| entry.content.clone()).collect()
}
