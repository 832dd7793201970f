//! A book: the entries of one owner and target, with a budget (`M-1`) and a count of refusals (`M-5`).

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::entry::Entry;
use crate::owner::Target;
use crate::text::{SEPARATOR_CHARS, chars};

/// How many refusals a book remembers, by turn. Older turns are over.
const REMEMBERED_TURNS: usize = 16;

/// Budgets in Unicode scalar values, separators included, and when the answer to an overflow becomes final.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Budget of notes.
    pub notes: usize,
    /// Budget of a profile.
    pub profile: usize,
    /// Refusals for lack of room in one turn, after which the answer is final until something is removed.
    pub refusals: u32,
    /// Operations in one batch.
    pub batch: usize,
    /// Proposals that may wait for a decision, per owner.
    pub pending: usize,
    /// How long a proposal waits.
    pub proposal_life: Duration,
    /// How long a rejected candidate is not proposed again.
    pub rejection_memory: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            notes: 2_200,
            profile: 1_375,
            refusals: 3,
            batch: 50,
            pending: 100,
            proposal_life: Duration::from_hours(30 * 24),
            rejection_memory: Duration::from_hours(90 * 24),
        }
    }
}

impl Limits {
    /// The budget of `target`.
    pub const fn of(&self, target: Target) -> usize {
        match target {
            Target::Notes => self.notes,
            Target::Profile => self.profile,
        }
    }
}

/// Refusals for lack of room since something was last removed.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Refusals {
    /// Whether the answer has become final.
    pub is_final: bool,
    /// How many each of the last turns got, newest last.
    pub turns: Vec<(String, u32)>,
}

impl Refusals {
    /// Counts one in `turn` and says whether the answer is final: it is once `allowed` refusals were given in one turn,
    /// and stays so in later turns.
    pub fn count(&mut self, turn: &str, allowed: u32) -> bool {
        if self.is_final {
            return true;
        }
        let known = self.turns.iter().position(|(known, _)| known == turn);
        let (_, before) = known.map_or_else(|| (turn.to_owned(), 0), |at| self.turns.remove(at));
        let given = before.saturating_add(1);
        self.turns.push((turn.to_owned(), given));
        if self.turns.len() > REMEMBERED_TURNS {
            self.turns.remove(0);
        }
        self.is_final = given > allowed;
        self.is_final
    }
}

/// What stands in the place of an entry that cannot be read, as its category.
pub const DAMAGED: &str = "damaged";

/// The entries of one owner and target. One that was never written to is empty at revision 0.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Book {
    /// Grows by one with each change; what a caller gives back as etag (`M-11`).
    pub revision: u64,
    /// By creation, then id.
    pub entries: Vec<Entry>,
    /// Ids of entries that the store could not make sense of, as far as they are known. They stand beside the good ones,
    /// hide none of them, take part in nothing and are left as they are (D-11).
    pub damaged: Vec<String>,
    /// Refusals since the last removal.
    pub refusals: Refusals,
}

impl Book {
    /// Characters in use, separators included.
    pub fn used(&self) -> usize {
        let texts: usize = self.entries.iter().map(|entry| chars(&entry.content)).sum();
        texts + self.entries.len().saturating_sub(1) * SEPARATOR_CHARS
    }

    /// What names this state of the book.
    pub fn etag(&self) -> String {
        self.revision.to_string()
    }

    /// Puts an entry where its creation time places it.
    pub fn insert(&mut self, entry: Entry) {
        let after = |other: &Entry| (other.created, &other.id) > (entry.created, &entry.id);
        let at = self.entries.iter().position(after).unwrap_or(self.entries.len());
        self.entries.insert(at, entry);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_answer_is_final_after_the_allowed_refusals_of_one_turn_and_in_later_turns() {
        let mut refusals = Refusals::default();
        assert!(!refusals.count("t1", 3));
        assert!(!refusals.count("t2", 3), "turns are counted apart");
        assert!(!refusals.count("t1", 3));
        assert!(!refusals.count("t1", 3));
        assert!(refusals.count("t1", 3));
        assert!(refusals.count("t3", 3));
    }

    #[test]
    fn only_the_last_turns_are_remembered() {
        let mut refusals = Refusals::default();
        for turn in 0..40 {
            refusals.count(&turn.to_string(), 3);
        }
        assert_eq!(refusals.turns.len(), REMEMBERED_TURNS);
    }
}
