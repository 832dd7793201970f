//! A review as the ledger keeps it, and the changes that it may go through (`R-1`, `R-2`).
//!
//! Pure: who makes a change durable, and together with which step of the queue, is the store's business.

mod state;

use std::fmt;

use serde::{Deserialize, Serialize};
use steward_agent::review::UsedSkill;
use steward_base::names::{ReviewId, SessionId, TeamId, UserId, team_name};
use steward_base::{Integrity, Timestamp};
use steward_model::Usage;

pub use state::{Back, Ending};

/// What is reviewed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Kinds {
    /// Memory.
    pub memory: bool,
    /// Skills.
    pub skills: bool,
}

impl Kinds {
    /// Both together.
    #[must_use]
    pub const fn united(self, other: Self) -> Self {
        Self {
            memory: self.memory || other.memory,
            skills: self.skills || other.skills,
        }
    }
}

/// What became of a review.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ReviewState {
    /// Waits.
    Queued,
    /// Runs.
    Running,
    /// Ended with at least one accepted or proposed write.
    Succeeded,
    /// Ended; nothing was worth keeping.
    NothingToSave,
    /// Ended with an error that a retry would not mend.
    Failed,
    /// Ended by a person, or because its turn or its user is gone.
    Cancelled,
    /// All tries were used up.
    Dead,
    /// A newer review of the session took it over.
    Absorbed,
}

impl ReviewState {
    const ALL: [Self; 8] = [
        Self::Queued,
        Self::Running,
        Self::Succeeded,
        Self::NothingToSave,
        Self::Failed,
        Self::Cancelled,
        Self::Dead,
        Self::Absorbed,
    ];

    /// The stable name.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Queued => "queued",
            Self::Running => "running",
            Self::Succeeded => "succeeded",
            Self::NothingToSave => "nothing_to_save",
            Self::Failed => "failed",
            Self::Cancelled => "cancelled",
            Self::Dead => "dead",
            Self::Absorbed => "absorbed",
        }
    }

    /// The state with this name.
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|state| state.as_str() == name)
    }

    /// Whether it will not change any more by itself.
    pub const fn is_final(self) -> bool {
        !matches!(self, Self::Queued | Self::Running)
    }
}

impl fmt::Display for ReviewState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// How the history is given to the reviewer (`R-3`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Mode {
    /// As it was, byte for byte.
    Replay,
    /// With text from outside, and what was said under its influence, hidden.
    Redacted,
    /// The end as it was and the rest folded, for another model or a history that does not fit.
    Digest,
}

impl Mode {
    /// The stable name.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Replay => "replay",
            Self::Redacted => "redacted",
            Self::Digest => "digest",
        }
    }

    /// The mode with this name.
    pub fn parse(name: &str) -> Option<Self> {
        [Self::Replay, Self::Redacted, Self::Digest]
            .into_iter()
            .find(|mode| mode.as_str() == name)
    }
}

/// What became of a write.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WriteResult {
    /// Written.
    Accepted,
    /// Kept as a proposal for a person.
    Proposed,
    /// It was there already.
    Unchanged,
    /// Refused by a gate.
    Refused,
}

/// Grade of evidence.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Basis {
    /// A person with standing said it.
    Stated,
    /// A tool result shows it.
    Checked,
    /// It happened once.
    SeenOnce,
}

/// What a write rests on, after its spans were found in the history.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Evidence {
    /// Ids of the spans.
    pub spans: Vec<String>,
    /// Grade.
    pub basis: Basis,
    /// Lowest integrity among the spans.
    pub integrity: Integrity,
}

/// A write of a review, as acknowledged or refused.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Write {
    /// `memory` or `skill_manage`.
    pub tool: String,
    /// The tool's action.
    pub action: String,
    /// Resource that was written, or that the write was for.
    pub target: String,
    /// What became of it.
    pub result: WriteResult,
    /// `ErrorInfo.reason` of a refusal; else empty.
    pub reason: String,
    /// The gate that refused, if one did; else empty.
    #[serde(default)]
    pub gate: String,
    /// Revision that it made; empty when it made none.
    pub revision: String,
    /// What it rests on.
    pub evidence: Option<Evidence>,
    /// Why, in the reviewer's words.
    pub why: String,
    /// What happened, as a line for people: `Profile updated`.
    pub line: String,
    /// Opening words of what was written, on one line.
    #[serde(default)]
    pub preview: String,
}

/// A lesson that the reviewer turned down.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rejected {
    /// The lesson.
    pub candidate: String,
    /// Why not.
    pub reason: String,
}

/// Why a review failed or was cancelled.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Problem {
    /// `ErrorInfo.reason`, or a word of ours.
    pub reason: String,
    /// A sentence for people.
    pub message: String,
}

impl Problem {
    /// From its parts.
    pub fn new(reason: impl Into<String>, message: impl Into<String>) -> Self {
        Self {
            reason: reason.into(),
            message: message.into(),
        }
    }
}

/// What a run found out and did, whole or broken off (`R-10`).
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Report {
    /// How the history was given; absent before the request was built.
    pub mode: Option<Mode>,
    /// Version of the rubric; empty before the request was built.
    pub rubric: String,
    /// Lowest integrity in the history.
    pub integrity: Option<Integrity>,
    /// Model calls, over all tries.
    pub iterations: u32,
    /// Tokens, over all tries.
    pub usage: Usage,
    /// What the model calls cost whose price is known, in millionths of a millionth of a dollar.
    pub cost: u64,
    /// Model calls whose price is not known.
    pub unpriced: u32,
    /// Writes, over all tries, each once.
    pub writes: Vec<Write>,
    /// What the reviewer turned down.
    pub rejected: Vec<Rejected>,
    /// What it says of the skills that were open.
    pub used_skills: Vec<UsedSkill>,
}

/// A due review, as recall hands it out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Due {
    /// The team.
    pub team: TeamId,
    /// Its id, which becomes the review's.
    pub id: ReviewId,
    /// Resource name by which recall knows it.
    pub name: String,
    /// On whose behalf.
    pub user: UserId,
    /// Session to look back at.
    pub session: SessionId,
    /// Turn that made it due.
    pub turn: String,
    /// Last message that it may see.
    pub to_seq: u64,
    /// What is to be reviewed.
    pub kinds: Kinds,
    /// When it became due.
    pub created_at: Timestamp,
    /// W3C trace context of the turn; may be empty.
    pub traceparent: String,
}

/// A row of the ledger.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Review {
    /// The team.
    pub team: TeamId,
    /// Its id, that of its job and of the due review.
    pub id: ReviewId,
    /// On whose behalf.
    pub user: UserId,
    /// Session that it looks back at.
    pub session: SessionId,
    /// Turn that made it due.
    pub turn: String,
    /// Last message that it may see.
    pub to_seq: u64,
    /// What is reviewed; grows when it takes over an older review.
    pub kinds: Kinds,
    /// Where it stands.
    pub state: ReviewState,
    /// One line for people; empty until it ended and when there is nothing to tell.
    pub summary: String,
    /// Why it failed or was cancelled.
    pub problem: Option<Problem>,
    /// Tries begun so far.
    pub attempts: u32,
    /// What it found out and did so far.
    pub report: Report,
    /// The review that took it over.
    pub absorbed_by: Option<ReviewId>,
    /// When it became due.
    pub created_at: Timestamp,
    /// When it ended.
    pub ended_at: Option<Timestamp>,
    /// W3C trace context of the turn; may be empty.
    pub traceparent: String,
}

impl Review {
    /// `teams/{team}/reviews/{review}`.
    pub fn name(&self) -> String {
        review_name(&self.team, &self.id)
    }
}

/// `teams/{team}/reviews/{review}`.
pub fn review_name(team: &TeamId, id: &ReviewId) -> String {
    format!("{}/reviews/{id}", team_name(team))
}
