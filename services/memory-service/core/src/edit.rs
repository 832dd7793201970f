//! What a list of operations makes of a store: a pure function, all or nothing, judged by its end state
//! (`M-3` to `M-7`). Who may do it is decided before, what it is worth is recorded after.

mod draft;
#[cfg(test)]
mod tests;

use serde::{Deserialize, Serialize};
use steward_base::names::EntryId;

use crate::book::{Book, Limits};
use crate::entry::{Action, Entry, Revision};
use crate::find::{Match, find};
use crate::near;
use crate::owner::Target;
use crate::refusal::{Refusal, Refused};
use crate::screen;
use crate::text::canonical;

use self::draft::contents;
pub use self::draft::{Draft, Stamp};

/// One change to one entry.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "action")]
pub enum Operation {
    /// Puts a new entry in.
    Add {
        /// Its text.
        content: String,
    },
    /// Puts another text in the place of a whole entry.
    Replace {
        /// A piece of text that only this entry contains.
        old_text: String,
        /// The new text.
        content: String,
    },
    /// Takes an entry out; its history stays.
    Remove {
        /// A piece of text that only this entry contains.
        old_text: String,
    },
}

/// What became of one operation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "step")]
pub enum Step {
    /// A new entry.
    Added {
        /// The entry.
        entry: EntryId,
        /// Its revision.
        revision: u32,
        /// The text of another entry that says nearly the same.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        similar: Option<String>,
    },
    /// The text was there already (`M-4`).
    AlreadyStored {
        /// The entry that holds it.
        entry: EntryId,
        /// Its revision.
        revision: u32,
    },
    /// An entry has a new text.
    Replaced {
        /// The entry.
        entry: EntryId,
        /// Its new revision.
        revision: u32,
        /// Its former text, in full.
        former: String,
        /// Whether the caller had named the former text in full; if not, it must be told of it.
        whole: bool,
    },
    /// An entry was taken out.
    Removed {
        /// The entry.
        entry: EntryId,
        /// The revision that took it out.
        revision: u32,
        /// Its former text.
        former: String,
    },
}

impl Step {
    /// The entry in question and its revision.
    pub const fn entry(&self) -> (&EntryId, u32) {
        match self {
            Self::Added { entry, revision, .. }
            | Self::AlreadyStored { entry, revision }
            | Self::Replaced { entry, revision, .. }
            | Self::Removed { entry, revision, .. } => (entry, *revision),
        }
    }
}

/// Carries out `operations` on `book`, in order; each sees what those before it did, and the budget is checked on the
/// result only. `ids` holds one id per operation, for the entry that it may make.
pub fn run(
    target: Target,
    book: &Book,
    operations: &[Operation],
    ids: &[EntryId],
    limits: &Limits,
    stamp: Stamp<'_>,
) -> Result<Draft, Refused> {
    debug_assert_eq!(operations.len(), ids.len(), "one id per operation");
    let mut draft = Draft::new(target, book.clone());
    for (at, (operation, id)) in operations.iter().zip(ids).enumerate() {
        let step = perform(&mut draft, operation, id, stamp).map_err(|refusal| Refused::at(at, refusal))?;
        draft.steps.push(step);
    }
    draft.finish(book, limits)
}

/// Puts `content`, the text of an earlier revision, back as a new one, also of an entry that was removed. Another entry
/// that has got the same text meanwhile is taken out, so that no reversion makes a duplicate (`M-4`). `history` is the
/// entry's, oldest first; an empty one changes nothing.
pub fn revert(
    target: Target,
    book: &Book,
    history: &[Revision],
    content: &str,
    limits: &Limits,
    stamp: Stamp<'_>,
) -> Result<Draft, Refused> {
    let mut draft = Draft::new(target, book.clone());
    let (Some(first), Some(last)) = (history.first(), history.last()) else {
        return Ok(draft);
    };
    if last.content.as_deref() == Some(content) {
        draft.steps.push(Step::AlreadyStored {
            entry: last.entry.clone(),
            revision: last.number,
        });
        return Ok(draft);
    }
    screen::check(content).map_err(Refused::whole)?;
    let is_twin = |other: &&Entry| other.content == content && other.id != last.entry;
    for twin in book.entries.iter().filter(is_twin) {
        draft.record(next(twin.clone(), stamp), Action::Removed);
    }
    let entry = Entry {
        id: last.entry.clone(),
        content: content.to_owned(),
        revision: last.number + 1,
        created: first.at,
        changed: stamp.at,
        provenance: stamp.provenance.clone(),
        failed_check: None,
    };
    let former = last.content.clone().unwrap_or_default();
    draft.steps.push(Step::Replaced {
        entry: entry.id.clone(),
        revision: entry.revision,
        former,
        whole: true,
    });
    draft.record(entry, Action::Reverted);
    draft.finish(book, limits)
}

/// Says anew how long a present entry holds: the same text as a new revision. `None` if there is no such entry.
pub fn confirm(
    target: Target,
    book: &Book,
    entry: &EntryId,
    limits: &Limits,
    stamp: Stamp<'_>,
) -> Option<Result<Draft, Refused>> {
    let present = book.entries.iter().find(|present| present.id == *entry)?.clone();
    let mut draft = Draft::new(target, book.clone());
    let confirmed = next(present, stamp);
    draft.steps.push(Step::Replaced {
        entry: confirmed.id.clone(),
        revision: confirmed.revision,
        former: confirmed.content.clone(),
        whole: true,
    });
    draft.record(confirmed, Action::Replaced);
    Some(draft.finish(book, limits))
}

/// Adds each of `contents` for itself: one that is refused stands in the way of no other. For each what came of it.
pub fn import(
    target: Target,
    book: &Book,
    contents: &[(EntryId, String)],
    limits: &Limits,
    stamp: Stamp<'_>,
) -> (Draft, Vec<Result<Step, Refusal>>) {
    let mut draft = Draft::new(target, book.clone());
    let mut results = Vec::with_capacity(contents.len());
    for (id, content) in contents {
        let result = new_text(&draft, content).and_then(|content| {
            let mut attempt = draft.clone();
            let step = add(&mut attempt, id, content, stamp);
            if let Some(refusal) = attempt.overflow(&draft.book, limits) {
                return Err(refusal);
            }
            draft = attempt;
            Ok(step)
        });
        results.push(result);
    }
    if draft.is_change() {
        draft.book.revision += 1;
    }
    (draft, results)
}

fn perform(draft: &mut Draft, operation: &Operation, id: &EntryId, stamp: Stamp<'_>) -> Result<Step, Refusal> {
    match operation {
        Operation::Add { content } => {
            let content = new_text(draft, content)?;
            Ok(add(draft, id, content, stamp))
        }
        Operation::Replace { old_text, content } => {
            let positions = locate(draft, old_text)?;
            let content = new_text(draft, content)?;
            Ok(replace(draft, &positions, old_text, content, stamp))
        }
        Operation::Remove { old_text } => {
            let positions = locate(draft, old_text)?;
            Ok(remove(draft, &positions, stamp))
        }
    }
}

fn missing(draft: &Draft, field: &str) -> Refusal {
    Refusal::Missing {
        field: field.to_owned(),
        target: draft.target,
        entries: contents(&draft.book),
    }
}

fn new_text(draft: &Draft, content: &str) -> Result<String, Refusal> {
    let content = canonical(content);
    if content.is_empty() {
        return Err(missing(draft, "content"));
    }
    screen::check(&content)?;
    Ok(content)
}

fn locate(draft: &Draft, old_text: &str) -> Result<Vec<usize>, Refusal> {
    if canonical(old_text).is_empty() {
        return Err(missing(draft, "old_text"));
    }
    match find(&draft.book, old_text) {
        Match::Found(positions) => Ok(positions),
        Match::Nothing(closest) => Err(Refusal::NoMatch {
            target: draft.target,
            closest,
        }),
        Match::Several(matches) => Err(Refusal::Ambiguous {
            target: draft.target,
            matches,
        }),
    }
}

fn add(draft: &mut Draft, id: &EntryId, content: String, stamp: Stamp<'_>) -> Step {
    if let Some(present) = draft.book.entries.iter().find(|entry| entry.content == content) {
        return Step::AlreadyStored {
            entry: present.id.clone(),
            revision: present.revision,
        };
    }
    let similar = near::twin(&draft.book, &content).map(|entry| entry.content.clone());
    let entry = Entry {
        id: id.clone(),
        content,
        revision: 1,
        created: stamp.at,
        changed: stamp.at,
        provenance: stamp.provenance.clone(),
        failed_check: None,
    };
    draft.record(entry, Action::Added);
    Step::Added {
        entry: id.clone(),
        revision: 1,
        similar,
    }
}

/// Replaces the first of identical duplicates and takes the others out. If another entry has the new text already, the
/// replaced one is taken out as well, so that no replacement makes a duplicate.
fn replace(draft: &mut Draft, positions: &[usize], old_text: &str, content: String, stamp: Stamp<'_>) -> Step {
    let mut matched = at(draft, positions);
    let first = matched.remove(0);
    if first.content == content {
        return Step::AlreadyStored {
            entry: first.id,
            revision: first.revision,
        };
    }
    for duplicate in matched {
        draft.record(next(duplicate, stamp), Action::Removed);
    }
    let former = first.content.clone();
    if draft.book.entries.iter().any(|entry| entry.content == content) {
        let gone = next(first, stamp);
        let step = Step::Removed {
            entry: gone.id.clone(),
            revision: gone.revision,
            former,
        };
        draft.record(gone, Action::Removed);
        return step;
    }
    let entry = Entry {
        content,
        ..next(first, stamp)
    };
    let whole = former == canonical(old_text);
    let step = Step::Replaced {
        entry: entry.id.clone(),
        revision: entry.revision,
        former,
        whole,
    };
    draft.record(entry, Action::Replaced);
    step
}

fn remove(draft: &mut Draft, positions: &[usize], stamp: Stamp<'_>) -> Step {
    let mut matched = at(draft, positions);
    let first = next(matched.remove(0), stamp);
    let step = Step::Removed {
        entry: first.id.clone(),
        revision: first.revision,
        former: first.content.clone(),
    };
    draft.record(first, Action::Removed);
    for duplicate in matched {
        draft.record(next(duplicate, stamp), Action::Removed);
    }
    step
}

fn at(draft: &Draft, positions: &[usize]) -> Vec<Entry> {
    positions
        .iter()
        .map(|position| draft.book.entries[*position].clone())
        .collect()
}

fn next(entry: Entry, stamp: Stamp<'_>) -> Entry {
    Entry {
        revision: entry.revision + 1,
        changed: stamp.at,
        provenance: stamp.provenance.clone(),
        failed_check: None,
        ..entry
    }
}
