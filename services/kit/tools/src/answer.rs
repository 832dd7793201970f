//! What a call of a built-in tool comes to: text for the model, a line for people, where the words come from, and what
//! was changed.

use serde::{Deserialize, Serialize};
use steward_base::{ErrorKind, Integrity, Span, SpanOrigin};

/// Most problems of a call that are named.
const PROBLEMS: usize = 20;

/// The answer to one call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolAnswer {
    /// For the model.
    pub content: String,
    /// Whether the model is to see it as an error.
    pub is_error: bool,
    /// One line for people, for example `Skill 'rollout' patched`.
    pub summary: String,
    /// Where the words of `content` come from; covers all of it, ascending.
    pub spans: Vec<Span>,
    /// What was written, or refused. Absent for reads, and when it is not known what became of a write.
    pub effect: Option<Effect>,
    /// What a skill that was opened needs and does not find where its commands run: for a person, never for the model (`S-8`).
    pub needed: Option<Needed>,
    /// Why the service behind the tool did not do it; absent for successes and for arguments that never reached it.
    pub failure: Option<Failure>,
}

/// What became of a write.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EffectResult {
    /// It took effect.
    Accepted,
    /// It waits for a person.
    Proposed,
    /// It was there already.
    Unchanged,
    /// A rule refused it; nothing changed.
    Refused,
}

/// A write, as acknowledged or refused by the service that owns the store.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Effect {
    /// `memory` or `skill_manage`.
    pub tool: String,
    /// The tool's action, for example `add` or `patch`.
    pub action: String,
    /// Resource that was written or that the write was for.
    pub target: String,
    /// What became of it.
    pub result: EffectResult,
    /// `ErrorInfo.reason` of a refusal; else empty.
    pub reason: String,
    /// Which gate refused, if one did; else empty.
    #[serde(default)]
    pub gate: String,
    /// Revision that the write made; empty when it made none.
    pub revision: String,
}

/// Values that a person may be asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Needed {
    /// Full resource name of the skill.
    pub skill: String,
    /// What it needs.
    pub variables: Vec<NeededVariable>,
    /// Whether the team's secrets are for this skill.
    pub team_store: bool,
}

/// A variable without its value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NeededVariable {
    /// Its name.
    pub name: String,
    /// What to ask; may be empty.
    pub prompt: String,
    /// Where to get it; may be empty. The skill's words.
    pub help: String,
}

/// Why a service did not do what it was asked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    /// Kind.
    pub kind: ErrorKind,
    /// `ErrorInfo.reason`.
    pub reason: &'static str,
}

impl Failure {
    /// Whether the holder of the credential was replaced by a newer claim and has to stop.
    pub fn is_stale_fence(&self) -> bool {
        self.reason == "STALE_FENCE"
    }

    /// Whether the service could not be asked, so that the call may be made again with the same key.
    pub fn is_retryable(&self) -> bool {
        self.kind.is_retryable()
    }
}

impl ToolAnswer {
    /// A success in the tool's own words.
    pub(crate) fn success(tool: &str, content: String, summary: String) -> Self {
        let spans = own(tool, &content, Integrity::Workspace);
        Self {
            content,
            is_error: false,
            summary,
            spans,
            effect: None,
            needed: None,
            failure: None,
        }
    }

    /// A call that was not made because of its arguments.
    pub(crate) fn misused(tool: &str, problems: &[String]) -> Self {
        let named: Vec<&str> = problems.iter().take(PROBLEMS).map(String::as_str).collect();
        let rest = match problems.len().saturating_sub(PROBLEMS) {
            0 => String::new(),
            more => format!("; and {more} more"),
        };
        let content = format!(
            "Nothing was done. {}: {}{rest}.",
            count(problems.len(), "problem"),
            named.join("; ")
        );
        Self {
            spans: own(tool, &content, Integrity::Workspace),
            content,
            is_error: true,
            summary: format!("{tool}: the arguments were wrong"),
            effect: None,
            needed: None,
            failure: None,
        }
    }

    /// With what was written.
    pub(crate) fn with_effect(mut self, effect: Effect) -> Self {
        self.effect = Some(effect);
        self
    }
}

/// One span over all of `content`, from the tool itself.
pub(crate) fn own(tool: &str, content: &str, integrity: Integrity) -> Vec<Span> {
    if content.is_empty() {
        return Vec::new();
    }
    vec![Span {
        start: 0,
        end: offset(content),
        origin: SpanOrigin::Tool(tool.to_owned()),
        integrity,
    }]
}

/// Length as an offset of a span. Answers are bounded far below what an offset can hold.
pub(crate) fn offset(text: &str) -> u32 {
    u32::try_from(text.len()).unwrap_or(u32::MAX)
}

/// `1 problem`, `2 problems`.
pub(crate) fn count(number: usize, what: &str) -> String {
    if number == 1 {
        format!("1 {what}")
    } else {
        format!("{number} {what}s")
    }
}
