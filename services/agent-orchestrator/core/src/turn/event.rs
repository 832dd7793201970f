//! What happens in a turn, as people watch it.

use steward_base::Timestamp;

use crate::session::{OpenCall, Prefix, Usage};

/// A call that waits for the client.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PendingCall {
    /// Id of the call.
    pub call_id: String,
    /// Name of the client's tool.
    pub tool: String,
    /// Arguments as the model wrote them.
    pub arguments: String,
    /// When it is closed as expired.
    pub expires: Timestamp,
}

impl From<&OpenCall> for PendingCall {
    fn from(open: &OpenCall) -> Self {
        Self {
            call_id: open.call.id.clone(),
            tool: open.call.name.clone(),
            arguments: open.call.arguments.clone(),
            expires: open.expires,
        }
    }
}

/// How the session's requests extended each other (`P-4`).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct PrefixReport {
    /// Requests of the session so far.
    pub requests: u32,
    /// Breaks with a recorded reason.
    pub planned_breaks: u32,
    /// Breaks without one.
    pub unplanned_breaks: u32,
}

impl From<&Prefix> for PrefixReport {
    fn from(prefix: &Prefix) -> Self {
        Self {
            requests: prefix.requests,
            planned_breaks: prefix.planned_breaks,
            unplanned_breaks: prefix.unplanned_breaks,
        }
    }
}

/// The final answer, durable.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Completed {
    /// The whole text of the last message.
    pub text: String,
    /// Its number in the session.
    pub seq: u64,
    /// Model calls of the turn.
    pub iterations: u32,
    /// Tokens of the turn.
    pub usage: Usage,
    /// Whether reviews of memory and of skills became due.
    pub review_due: (bool, bool),
    /// The session's prefix report.
    pub prefix: PrefixReport,
    /// What its model calls cost, in millionths of a millionth of a dollar; `None` when one of them has no known price.
    pub cost: Option<u64>,
}

/// What to ask a person for, if the client can; the turn goes on meanwhile.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SecretRequest {
    /// Full resource name of the skill.
    pub skill: String,
    /// What it needs.
    pub variables: Vec<SecretVariable>,
    /// Whether the team's secrets are for this skill.
    pub team_store: bool,
}

/// A variable without its value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SecretVariable {
    /// Its name.
    pub name: String,
    /// What to ask; may be empty.
    pub prompt: String,
    /// Where to get it; may be empty. The skill's words.
    pub help: String,
}

/// Something that happened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event {
    /// A segment began: what it begins with is durable.
    Started {
        /// Its number in the turn, from 1.
        segment: u32,
    },
    /// Text of the model, as it comes.
    Text(String),
    /// A tool of the service runs.
    ToolStarted {
        /// Id of the call.
        call_id: String,
        /// Name of the tool.
        tool: String,
    },
    /// A tool of the service is done.
    ToolFinished {
        /// Id of the call.
        call_id: String,
        /// Name of the tool.
        tool: String,
        /// Whether its result is an error.
        is_error: bool,
        /// One line for people; may be empty.
        summary: String,
    },
    /// A model call failed and is tried again.
    ModelRetry {
        /// Attempt that failed, from 1.
        attempt: u32,
        /// Our reason for it.
        reason: &'static str,
        /// Milliseconds until the next attempt.
        delay_ms: u32,
    },
    /// A steering text was added.
    Steered(String),
    /// A skill needs values that are not set where the client's tools run (`S-8`).
    SecretRequest(SecretRequest),
    /// The client is to run these calls; the segment ends.
    RequiresAction(Vec<PendingCall>),
    /// The turn ends with its answer.
    Completed(Box<Completed>),
    /// The turn ends because it was stopped.
    Interrupted {
        /// What had been said in the unfinished message.
        partial_text: String,
    },
    /// The turn ends with an error.
    Failed {
        /// `ErrorInfo.reason`.
        reason: String,
        /// Sentence for people.
        message: String,
        /// Whether the same message may succeed later.
        retryable: bool,
    },
}

impl Event {
    /// Whether the turn is over with it.
    pub const fn ends_turn(&self) -> bool {
        matches!(
            self,
            Self::Completed(_) | Self::Interrupted { .. } | Self::Failed { .. }
        )
    }

    /// Whether its segment is over with it.
    pub const fn ends_segment(&self) -> bool {
        self.ends_turn() || matches!(self, Self::RequiresAction(_))
    }
}
