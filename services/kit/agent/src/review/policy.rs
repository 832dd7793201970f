//! Which calls of a review are let through (`R-4`). The tool list on the wire is the parent's; this is where it is
//! narrowed.

use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::kernel::CallRequest;

use super::evidence::{Basis, Evidence, check, refusal};
use super::rubric::Kinds;
use super::spans::SpanTable;

/// Writes that one review may make. Each operation of a batch is one.
pub const MAX_WRITES: u32 = 3;

/// What a call is let through as.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Admission {
    /// It reads.
    Read,
    /// It writes, on this evidence; it has taken its share of the review's writes. [`ReviewPolicy::refund`] gives it back
    /// when the store refuses it.
    Write(Evidence),
    /// It decides on a correction that waits, by this id. Whether one waits under it is for whoever listed them to say.
    Decide(String),
}

/// Why a call is not let through. Either way nothing ran.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Refusal {
    /// The tool is not for reviews; final.
    NotPermitted(String),
    /// The tool is, but not with these arguments, or not any more.
    NotAccepted(String),
}

impl Refusal {
    /// The text to give to the model.
    pub fn text(&self) -> &str {
        match self {
            Self::NotPermitted(text) | Self::NotAccepted(text) => text,
        }
    }
}

/// The dispatch table of one review, with its count of writes.
#[derive(Debug)]
pub struct ReviewPolicy {
    kinds: Kinds,
    memory_on: bool,
    spans: SpanTable,
    writes: Mutex<Writes>,
}

#[derive(Debug, Default)]
struct Writes {
    taken: u32,
    /// How many of them the last admitted call took.
    last: u32,
}

impl ReviewPolicy {
    /// The table for a review of these kinds; `memory_on` says whether the session uses memory at all.
    pub fn new(kinds: Kinds, memory_on: bool, spans: SpanTable) -> Self {
        Self {
            kinds,
            memory_on,
            spans,
            writes: Mutex::default(),
        }
    }

    /// Judges a call.
    ///
    /// # Errors
    /// Why not; the text says not to try again where trying again cannot help.
    pub fn admit(&self, call: &CallRequest) -> Result<Admission, Refusal> {
        match call.call.name.as_str() {
            "skills_list" | "skill_view" | "session_search" => Ok(Admission::Read),
            "skill_manage" => self.admit_write(call),
            "memory" if self.kinds.memory() && self.memory_on => match decided(call) {
                Some(correction) => Ok(Admission::Decide(correction)),
                None => self.admit_write(call),
            },
            name => Err(Refusal::NotPermitted(format!(
                "{name} is not available in a review. This is final: do not call it again and do not look for another \
                 way to the same effect. You may call {}.",
                self.permitted()
            ))),
        }
    }

    /// Gives back what the last admitted write has taken, once. Writes of a review are run one after the other, so it is
    /// the one that the store refused.
    pub fn refund(&self) {
        let mut writes = self.writes();
        writes.taken -= writes.last;
        writes.last = 0;
    }

    fn writes(&self) -> MutexGuard<'_, Writes> {
        self.writes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn permitted(&self) -> &'static str {
        if self.kinds.memory() && self.memory_on {
            "memory, skills_list, skill_view, skill_manage, session_search"
        } else {
            "skills_list, skill_view, skill_manage, session_search"
        }
    }

    fn admit_write(&self, call: &CallRequest) -> Result<Admission, Refusal> {
        let evidence = check(&call.arguments, &self.spans).map_err(Refusal::NotAccepted)?;
        if evidence.basis == Basis::SeenOnce && !is_observation(call) {
            let why =
                "what was seen once may only be kept as a dated observation in a file under references/ of a skill";
            return Err(Refusal::NotAccepted(refusal(why)));
        }
        let mut writes = self.writes();
        let (wanted, left) = (size(call), MAX_WRITES.saturating_sub(writes.taken));
        if left == 0 {
            let why = "this review has made its three writes; finish with the JSON object";
            return Err(Refusal::NotAccepted(refusal(why)));
        }
        if wanted > left {
            let why = format!("each operation of a batch is a write, and {left} of this review's three are left");
            return Err(Refusal::NotAccepted(refusal(&why)));
        }
        writes.taken += wanted;
        writes.last = wanted;
        Ok(Admission::Write(evidence))
    }
}

/// The correction that the call decides on, if that is what it does. The person's own words are its evidence, and each is
/// decided once, so that it takes nothing of the review's writes.
fn decided(call: &CallRequest) -> Option<String> {
    let text = |field: &str| call.arguments.get(field).and_then(serde_json::Value::as_str);
    let action = text("action").map(str::trim)?;
    matches!(action, "confirm" | "drop").then(|| text("correction").unwrap_or_default().trim().to_owned())
}

/// How many writes a call is.
fn size(call: &CallRequest) -> u32 {
    let operations = call.arguments.get("operations").and_then(serde_json::Value::as_array);
    let count = operations.map_or(1, |operations| operations.len().max(1));
    u32::try_from(count).unwrap_or(u32::MAX)
}

/// A support file under `references/`.
fn is_observation(call: &CallRequest) -> bool {
    let text = |field: &str| {
        call.arguments
            .get(field)
            .and_then(serde_json::Value::as_str)
            .unwrap_or_default()
    };
    let path = if text("path").is_empty() {
        text("file_path")
    } else {
        text("path")
    };
    call.call.name == "skill_manage"
        && path.starts_with("references/")
        && matches!(text("action"), "write_file" | "patch")
}
