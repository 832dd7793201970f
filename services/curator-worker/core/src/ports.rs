//! What the run of a review needs from outside: the other services on behalf of the job, and the journal under its fence.

use std::collections::BTreeMap;
use std::sync::Arc;

use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use steward_agent::kernel::StepRef;
use steward_agent::review::ReviewMessage;
use steward_base::Span;
use steward_model::{Continuation, ModelRequest, NativeBlocks, Reply};

use crate::error::Error;
use crate::review::{Evidence, Write};

/// The session that is looked at, as it was at the review's upper message.
#[derive(Debug, Clone)]
pub struct SessionView {
    /// Its model.
    pub model: String,
    /// Its stored system prompt.
    pub system: Arc<str>,
    /// Bytes of the prompt after which a provider may cache; absent when not known.
    pub stable_len: Option<usize>,
    /// Its stored tool list.
    pub tools_json: Arc<str>,
    /// Its messages up to the upper one, whatever was compacted or rewound since. Ids are the message numbers.
    pub messages: Vec<ReviewMessage>,
    /// What the provider wants back of its own messages, by position.
    pub natives: BTreeMap<usize, NativeBlocks>,
    /// Whether the upper message was undone by the person: the review has nothing to look at any more.
    pub undone: bool,
    /// Whether the session uses memory at all.
    pub memory_on: bool,
}

/// A memory entry that is there.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PresentEntry {
    /// `notes` or `profile`.
    pub target: String,
    /// The entry.
    pub text: String,
}

/// A correction that the person made in the session and that waits.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StagedCorrection {
    /// Resource name of the proposal.
    pub proposal: String,
    /// `notes` or `profile`.
    pub target: String,
    /// The person's words.
    pub text: String,
    /// Stored id of the span in which they stand.
    pub span: String,
}

/// What there is for a review to look at beside the session.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Present {
    /// Memory entries, if memory is reviewed.
    pub memory: Vec<PresentEntry>,
    /// Corrections of the session that wait, if memory is reviewed; oldest first.
    pub corrections: Vec<StagedCorrection>,
    /// Skills.
    pub skills: Vec<PresentSkill>,
}

/// A skill that is there.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PresentSkill {
    /// Its name as the tools take it.
    pub name: String,
    /// Its description.
    pub description: String,
    /// What is special about it, for example `pinned`.
    pub marks: Vec<String>,
}

/// Which model reviews.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Route {
    /// Model for reviews.
    pub review_model: String,
    /// Window in tokens; 0 when unknown.
    pub context_window: u64,
}

/// A call that the policy let through.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolUse {
    /// Name of the tool.
    pub name: String,
    /// Arguments as the model wrote them.
    pub arguments: String,
    /// `job/step/call`: the same whenever this call is made again.
    pub key: String,
    /// What a write rests on.
    pub evidence: Option<Evidence>,
}

/// The answer to a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolOutcome {
    /// For the model.
    pub content: String,
    /// Whether it is an error.
    pub is_error: bool,
    /// Where its words come from.
    pub spans: Vec<Span>,
    /// What was written or refused.
    pub write: Option<Write>,
}

/// The other services, called with the job's token.
#[async_trait]
pub trait Peers: Send + Sync {
    /// The session up to the review's upper message.
    async fn session(&self) -> Result<SessionView, Error>;

    /// Memory entries and corrections, if memory is reviewed, and skills, as they stand now.
    async fn present(&self) -> Result<Present, Error>;

    /// Which model reviews.
    async fn route(&self) -> Result<Route, Error>;

    /// One model call. `beside` is what goes with the messages and is no part of them.
    async fn generate(&self, request: ModelRequest, beside: Continuation) -> Result<KeptReply, Error>;

    /// One call of a built-in tool. A refusal by a rule is an outcome; an error means that it is not known what became of
    /// the call, which may be made again with the same key.
    async fn call(&self, call: ToolUse) -> Result<ToolOutcome, Error>;
}

/// What the request of a review was built from, beside the session. Kept, so that a later try asks the very same.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Opening {
    /// Memory entries as they stood.
    pub memory: Vec<PresentEntry>,
    /// Corrections that waited.
    #[serde(default)]
    pub corrections: Vec<StagedCorrection>,
    /// Skills as they stood.
    pub skills: Vec<PresentSkill>,
    /// Model that gets a digest; absent when the session's own model gets the history.
    pub digest_for: Option<String>,
    /// Window of the model in tokens; 0 when unknown.
    pub context_window: u64,
}

/// A reply of the model, as journalled.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeptReply {
    /// What was said and called.
    #[serde(flatten)]
    pub reply: Reply,
    /// The provider's own form of it, where that says more; it goes back with the next question of the same review.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub native: Option<NativeBlocks>,
    /// What the call cost, in millionths of a millionth of a dollar; absent when its price is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost: Option<u64>,
}

/// A call with its answer, as journalled.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CallRecord {
    /// For the model.
    pub content: String,
    /// Whether it is an error.
    pub is_error: bool,
    /// Where its words come from.
    pub spans: Vec<Span>,
    /// Whether the policy let it through to the services.
    pub admitted: bool,
    /// What was written or refused.
    pub write: Option<Write>,
}

/// All that the tries of one job have journalled so far.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Journalled {
    /// What the request was built from.
    pub opening: Option<Opening>,
    /// The model's replies.
    pub replies: BTreeMap<StepRef, KeptReply>,
    /// The answers to calls, by step and position.
    pub answers: BTreeMap<(u32, usize), CallRecord>,
}

/// The journal of one job, written under the fence of one claim (`R-9`). What is there already stays as it is.
#[async_trait]
pub trait Journal: Send + Sync {
    /// Everything so far.
    async fn load(&self) -> Result<Journalled, Error>;

    /// Keeps what the request is built from.
    async fn record_opening(&self, opening: &Opening) -> Result<(), Error>;

    /// Keeps a reply of the model. None of its calls is dispatched before this returns.
    async fn record_reply(&self, at: StepRef, reply: &KeptReply) -> Result<(), Error>;

    /// Keeps the answer to a call.
    async fn record_answer(&self, step: u32, call: usize, answer: &CallRecord) -> Result<(), Error>;
}
