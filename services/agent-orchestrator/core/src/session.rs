//! Conversations as the orchestrator sees them, and the port to whoever keeps them. The store itself is
//! recall-service's; nothing of a session is kept here.

mod kept;
mod memory_store;
mod setup;
mod store;

use std::sync::Arc;

use steward_base::names::{SessionId, TeamId, UserId, session_name};
use steward_base::{Integrity, Span, Timestamp};

pub use kept::{KeptFile, KeptSetup, MAX_KEPT_SETUP};
pub use memory_store::InMemorySessionStore;
pub use setup::{
    ClientToolSpec, ContextFile, Environment, MAX_TITLE, Screened, Setup, check_client_tools, check_tool_names,
    derived_session_id, screen_context_files,
};
pub use store::{
    Anew, Append, Appended, DueReview, ExpiredTurn, Fork, MessagePage, NewSession, Opened, Rewind, SessionPage,
    SessionStore, SessionUpdate, TurnLease, TurnUpdate,
};

/// A session's team and id.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SessionKey {
    /// The tenant.
    pub team: TeamId,
    /// Id in the team.
    pub id: SessionId,
}

impl SessionKey {
    /// Full resource name.
    pub fn name(&self) -> String {
        session_name(&self.team, &self.id)
    }
}

/// A tool that runs at the client, as the session keeps it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClientTool {
    /// Name.
    pub name: String,
    /// Integrity of its output where the client does not say less.
    pub integrity: Integrity,
}

/// Counters of the nudges (`T-3`).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counters {
    /// User turns since the memory tool was used or a memory review became due.
    pub turns_since_memory: u32,
    /// Model calls since `skill_manage` was used or a skill review became due.
    pub iterations_since_skill: u32,
    /// User turns of the session.
    pub user_turns: u32,
}

/// The segments of the session's last request, and how often one did not extend the one before (`P-4`).
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Prefix {
    /// SHA-256 of the tools segment, hexadecimal; empty before the first request.
    pub tools_sha256: String,
    /// SHA-256 of the system segment.
    pub system_sha256: String,
    /// Length of the messages segment in bytes, without its closing bracket.
    pub messages_bytes: u64,
    /// SHA-256 of the messages segment.
    pub messages_sha256: String,
    /// Breaks with a recorded reason.
    pub planned_breaks: u32,
    /// Breaks without one: each is a fault.
    pub unplanned_breaks: u32,
    /// Requests so far.
    pub requests: u32,
    /// Reason of the last planned break; empty without one.
    pub last_break_reason: String,
}

/// Tokens as the provider reported them; absent is not zero.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Usage {
    /// All input tokens, cached ones included.
    pub input: Option<u64>,
    /// Input tokens read from the provider's cache.
    pub cached_input: Option<u64>,
    /// Input tokens written to the provider's cache.
    pub cache_write: Option<u64>,
    /// Output tokens, reasoning included.
    pub output: Option<u64>,
}

impl Usage {
    /// The sums; a part stays absent only as long as nobody reported it.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        let sum = |one: Option<u64>, two: Option<u64>| match (one, two) {
            (Some(one), Some(two)) => Some(one.saturating_add(two)),
            (one, two) => one.or(two),
        };
        Self {
            input: sum(self.input, other.input),
            cached_input: sum(self.cached_input, other.cached_input),
            cache_write: sum(self.cache_write, other.cache_write),
            output: sum(self.output, other.output),
        }
    }
}

/// A learned artefact that a session's prompt shows.
#[derive(Debug, Clone, PartialEq)]
pub struct Exposure {
    /// Resource name.
    pub artifact: String,
    /// Revision.
    pub revision: String,
    /// `indexed`, `snapshot` or `loaded`.
    pub stage: String,
    /// Unit by which it was assigned; empty outside of experiments.
    pub assignment_unit: String,
    /// Arm; empty outside of experiments.
    pub arm: String,
    /// Probability with which the arm was drawn.
    pub propensity: Option<f64>,
}

/// A conversation.
#[derive(Debug, Clone, PartialEq)]
pub struct Session {
    /// Team and id.
    pub key: SessionKey,
    /// Whose it is.
    pub user: UserId,
    /// Whether a person talks in it; not a schedule's, a delegate's, a review's (`T-5`).
    pub foreground: bool,
    /// Title; may be empty.
    pub title: String,
    /// Project; may be empty.
    pub project: String,
    /// Model that every request names.
    pub model: String,
    /// Exact system prompt; left out in lists.
    pub system_prompt: Arc<str>,
    /// Length in bytes of its stable tier (`P-1`, `P-5`); 0 where it is not known.
    pub stable_prompt_bytes: u32,
    /// Exact tool list; left out in lists.
    pub tools_json: Arc<str>,
    /// The tools in it that run at the client.
    pub client_tools: Vec<ClientTool>,
    /// Whether its turns never make a review due.
    pub skip_review: bool,
    /// Counters of the nudges.
    pub counters: Counters,
    /// State of the request prefix.
    pub prefix: Prefix,
    /// Tokens so far.
    pub usage: Usage,
    /// Number of the last message; 0 for none.
    pub last_seq: u64,
    /// Calls that wait for the client.
    pub open_calls: Vec<OpenCall>,
    /// What its prompt shows.
    pub exposures: Vec<Exposure>,
    /// When it was created.
    pub created: Timestamp,
    /// When a message was last appended.
    pub last_active: Timestamp,
    /// Turn that runs or waits.
    pub open_turn: Option<String>,
    /// What the prompt was assembled from, as [`KeptSetup`] writes it; empty where nobody kept it, and in lists.
    pub setup: Vec<u8>,
    /// Whether the setup says that its turns have an external memory beside them.
    pub external_memory: bool,
    /// Changes whenever the session does.
    pub etag: String,
}

impl Session {
    /// The client tool of this name.
    pub fn client_tool(&self, name: &str) -> Option<&ClientTool> {
        self.client_tools.iter().find(|tool| tool.name == name)
    }
}

/// A call of a tool by the model.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolCall {
    /// Id by which the result refers to it.
    pub id: String,
    /// Name of the tool.
    pub name: String,
    /// Arguments as the text that was received (`P-4`).
    pub arguments: String,
}

/// A call that waits for the client.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OpenCall {
    /// The call.
    pub call: ToolCall,
    /// Turn that waits.
    pub turn: String,
    /// When it is closed as expired (`T-8`).
    pub expires: Timestamp,
}

/// Who speaks, with what only that role has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Said {
    /// The person.
    User,
    /// The model.
    Assistant {
        /// Its calls, in its order.
        calls: Vec<ToolCall>,
    },
    /// The result of one call.
    Tool {
        /// Id of the call.
        call_id: String,
        /// Name of the tool.
        tool: String,
        /// Whether it is an error.
        is_error: bool,
    },
}

/// An assistant message in the form in which its provider wants it back (reasoning, signatures). Of use to that provider
/// only; never shown, never searched, never learned from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Native {
    /// Vendor that can read the blocks.
    pub provider: String,
    /// Model that wrote them, as it was asked for.
    pub model: String,
    /// JSON array of blocks, kept as this very text.
    pub blocks: String,
}

/// A message before it has a number.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewMessage {
    /// Who speaks.
    pub said: Said,
    /// What was said: shown, indexed, learned from.
    pub text: String,
    /// What is sent to the model in its place, where that differs.
    pub sent_text: Option<String>,
    /// Where the words come from; empty: the role's own.
    pub spans: Vec<Span>,
    /// Tokens of the model call that made it.
    pub usage: Option<Usage>,
    /// Turn that it belongs to.
    pub turn: String,
    /// An assistant message's provider's own form of it.
    pub native: Option<Native>,
}

impl NewMessage {
    /// What the model is sent.
    pub fn sent(&self) -> &str {
        self.sent_text.as_deref().unwrap_or(&self.text)
    }

    /// The calls that it makes; none unless it is the model's.
    pub fn calls(&self) -> &[ToolCall] {
        match &self.said {
            Said::Assistant { calls } => calls,
            Said::User | Said::Tool { .. } => &[],
        }
    }
}

/// A stored message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Message {
    /// Number in the session, from 1.
    pub seq: u64,
    /// What it holds.
    pub body: NewMessage,
    /// When it was appended.
    pub created: Timestamp,
}

/// What became of a turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TurnState {
    /// A segment runs, or ran in a process that is gone.
    Running,
    /// Waits for the client's tool results.
    RequiresAction,
    /// Delivered a final answer.
    Completed,
    /// Ended with an error.
    Failed,
    /// Stopped by the person.
    Interrupted,
    /// Waited too long for the client.
    Expired,
}

impl TurnState {
    /// Whether it can still change.
    pub const fn is_open(self) -> bool {
        matches!(self, Self::Running | Self::RequiresAction)
    }
}

/// One user message until the final answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Turn {
    /// The request id of its first segment.
    pub id: String,
    /// What became of it.
    pub state: TurnState,
    /// Number of its first message.
    pub first_seq: u64,
    /// Number of its last message so far.
    pub last_seq: u64,
    /// Model calls so far.
    pub iterations: u32,
    /// Segments so far.
    pub segments: u32,
    /// `ErrorInfo.reason` of a failed turn; else empty.
    pub error_reason: String,
    /// Sentence of a failed turn; else empty.
    pub error_message: String,
}
