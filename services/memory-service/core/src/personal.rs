//! What is held on a person (`M-14`): to give them all of it, and to erase it with a report that says what became of what
//! rests on their words.

use steward_base::names::UserId;

use crate::entry::{Provenance, Revision};
use crate::owner::{Owner, StoreName};
use crate::proposal::Proposal;
use crate::transfer::Held;

/// One thing that is held.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Holding {
    /// A revision of an entry, present or past.
    Revision {
        /// The store.
        store: StoreName,
        /// The revision.
        revision: Box<Revision>,
        /// Whether it is the present state of its entry.
        present: bool,
    },
    /// A proposal on the person's memory, or by the person.
    Proposal(Box<Proposal>),
    /// Bytes that could not be read.
    Held {
        /// The store.
        store: StoreName,
        /// The bytes.
        held: Held,
    },
}

/// How far an entry of a shared store rests on one person.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Support {
    /// On this person's words alone.
    Sole,
    /// On this person's words and another's approval or earlier text.
    Mixed,
    /// The person typed it for others to read.
    Independent,
}

impl Support {
    /// How the entry with this history rests on `user`; `None` if it does not.
    pub fn of(history: &[Revision], user: &UserId) -> Option<Self> {
        let last = history.last()?;
        last.content.as_ref()?;
        let is_theirs = |from: &Provenance| from.author.as_ref() == Some(user);
        let by_hand = |from: &Provenance| from.evidence.is_none() && from.turn.is_none() && from.job.is_none();
        if !history.iter().any(|revision| is_theirs(&revision.provenance)) {
            return None;
        }
        let others = history.iter().any(|revision| {
            let from = &revision.provenance;
            !is_theirs(from) || from.approved_by.as_ref().is_some_and(|approver| approver != user)
        });
        Some(if others {
            Self::Mixed
        } else if by_hand(&last.provenance) {
            Self::Independent
        } else {
            Self::Sole
        })
    }

    /// The name on the wire and in reports.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Sole => "sole",
            Self::Mixed => "mixed",
            Self::Independent => "independent",
        }
    }
}

/// What became of an entry of a shared store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Derived {
    /// The entry's resource name.
    pub entry: String,
    /// Its present revision; the one that was removed, if it was.
    pub revision: u32,
    /// How it rests on the person.
    pub support: Support,
    /// Whether it was removed with its history.
    pub erased: bool,
}

/// What an erasure did.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Receipt {
    /// Entries that were present.
    pub entries: u64,
    /// Revisions, present and past.
    pub revisions: u64,
    /// Proposals.
    pub proposals: u64,
    /// First answers by request id, kept bytes and remembered rejections.
    pub others: u64,
    /// What is still found of the person's own; anything but 0 is a fault.
    pub found_after: u64,
    /// What others share that rests on the person.
    pub derived: Vec<Derived>,
}

/// Whether a holding belongs to `user` and not to others as well.
pub fn is_own(owner: &Owner, user: &UserId) -> bool {
    matches!(owner, Owner::Person(person) if person == user)
}

#[cfg(test)]
mod tests {
    use steward_base::Timestamp;
    use steward_base::names::EntryId;

    use super::*;
    use crate::entry::Action;
    use crate::test_support::provenance;

    fn revision(number: u32, content: Option<&str>, provenance: Provenance) -> Revision {
        Revision {
            entry: EntryId::parse("e1").unwrap(),
            number,
            action: if content.is_some() {
                Action::Added
            } else {
                Action::Removed
            },
            content: content.map(str::to_owned),
            at: Timestamp::default(),
            provenance,
        }
    }

    /// `M-14`.
    #[test]
    fn what_others_share_rests_on_a_person_alone_with_others_or_by_their_own_hand() {
        let user = |id: &str| UserId::parse(id).unwrap();
        let by = |author: &str, job: Option<&str>, approver: Option<&str>| Provenance {
            author: Some(user(author)),
            job: job.map(str::to_owned),
            approved_by: approver.map(user),
            ..provenance()
        };
        let ann = user("ann");
        for (history, support) in [
            (vec![by("ann", Some("j1"), None)], Some(Support::Sole)),
            (vec![by("ann", Some("j1"), Some("max"))], Some(Support::Mixed)),
            (vec![by("bob", None, None), by("ann", None, None)], Some(Support::Mixed)),
            (vec![by("ann", None, None)], Some(Support::Independent)),
            (vec![by("bob", None, None)], None),
        ] {
            let history: Vec<Revision> = (1..)
                .zip(history)
                .map(|(number, from)| revision(number, Some("x"), from))
                .collect();
            assert_eq!(Support::of(&history, &ann), support);
        }
        let gone = [
            revision(1, Some("x"), by("ann", None, None)),
            revision(2, None, by("ann", None, None)),
        ];
        assert_eq!(Support::of(&gone, &ann), None);
    }
}
