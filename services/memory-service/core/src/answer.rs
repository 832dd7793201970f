//! What a call of the memory tool came to, and how the model is told (`M-6`): short, terminal, without the entries.

use std::fmt::Write as _;

use serde::{Deserialize, Serialize};

use crate::book::{Book, Limits};
use crate::edit::Step;
use crate::owner::Target;
use crate::proposal::Proposal;
use crate::refusal::Refused;
use crate::text::{grouped, preview};

/// What came of the operations as a whole.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "outcome")]
pub enum Outcome {
    /// They took effect; a step that found its text stored already changed nothing.
    Applied {
        /// One per operation.
        steps: Vec<Step>,
    },
    /// They wait for a person.
    Proposed(Box<Proposal>),
    /// Nothing changed.
    Refused(Refused),
}

/// The answer to one call of the tool; stored under the request id and given again.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Applied {
    /// What came of it.
    pub outcome: Outcome,
    /// Characters in use afterwards, separators included.
    pub used: usize,
    /// The budget.
    pub limit: usize,
    /// The store's etag afterwards.
    pub etag: String,
    /// The answer for the model.
    pub tool_text: String,
}

impl Applied {
    /// Builds the answer with its text. `book` is the store afterwards; `operations` is how many were asked for.
    pub fn new(outcome: Outcome, target: Target, book: &Book, limits: &Limits, operations: usize) -> Self {
        let (used, limit) = (book.used(), limits.of(target));
        let tool_text = match &outcome {
            Outcome::Applied { steps } => applied_text(steps, target, used, limit),
            Outcome::Proposed(proposal) => format!(
                "Stored as a proposal, not yet in memory: {}. A person decides on it. Do not send it again; go on.",
                proposal.waiting.explanation()
            ),
            Outcome::Refused(refused) => refused_text(refused, operations),
        };
        Self {
            outcome,
            used,
            limit,
            etag: book.etag(),
            tool_text,
        }
    }
}

fn refused_text(refused: &Refused, operations: usize) -> String {
    match refused.operation {
        Some(at) if operations > 1 => format!("Operation {} of {operations}: {}", at + 1, refused.refusal),
        _ => refused.refusal.to_string(),
    }
}

fn applied_text(steps: &[Step], target: Target, used: usize, limit: usize) -> String {
    let what = match steps {
        [Step::Added { .. }] => format!("Saved to {target}"),
        [Step::AlreadyStored { .. }] => format!("Already stored in {target}, nothing changed"),
        [Step::Replaced { .. }] => format!("Replaced in {target}"),
        [Step::Removed { former, .. }] => format!("Removed from {target}: {}", preview(former)),
        _ => format!("Done in {target}: {}", tally(steps)),
    };
    let mut text = format!("{what} ({}/{} characters).", grouped(used), grouped(limit));
    for step in steps {
        match step {
            Step::Replaced {
                former, whole: false, ..
            } => {
                let _ = write!(text, "\nThe whole entry was replaced. It read:\n{former}");
            }
            Step::Added {
                similar: Some(similar), ..
            } => {
                let _ = write!(
                    text,
                    "\nNearly the same is there already, merge the two: {}",
                    preview(similar)
                );
            }
            _ => {}
        }
    }
    text
}

fn tally(steps: &[Step]) -> String {
    let count = |wanted: fn(&Step) -> bool| steps.iter().filter(|step| wanted(step)).count();
    let counts = [
        (count(|step| matches!(step, Step::Added { .. })), "added"),
        (count(|step| matches!(step, Step::Replaced { .. })), "replaced"),
        (count(|step| matches!(step, Step::Removed { .. })), "removed"),
        (
            count(|step| matches!(step, Step::AlreadyStored { .. })),
            "already stored",
        ),
    ];
    let parts: Vec<String> = counts
        .iter()
        .filter(|(number, _)| *number > 0)
        .map(|(number, what)| format!("{number} {what}"))
        .collect();
    parts.join(", ")
}
