//! The one external memory that a team may have beside the built-in store (`M-15`): the port that an adapter fills, and the
//! rules around it. One provider a team, no tool with a name of ours, a breaker that keeps a dead one from being asked.
//!
//! Not here: queues, deadlines, connections. What a provider answers is untrusted text.

mod breaker;
mod tools;

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use steward_base::names::{SessionId, TeamId, UserId};
use steward_guard::{Scope as Strictness, check, fence, invocation, marks};

pub use breaker::Breaker;
pub use tools::{BUILT_IN, ToolError, ToolSchema, accept};

/// Whose session it is.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Scope {
    /// The team.
    pub team: TeamId,
    /// The person.
    pub user: UserId,
    /// The session.
    pub session: SessionId,
}

/// What a provider offers in a session.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Hello {
    /// For the system prompt; may be empty.
    pub block: String,
    /// Schemas of its tools, as it wrote them.
    pub tools: Vec<String>,
}

/// A finished turn.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Turn {
    /// Its id.
    pub id: String,
    /// What the person said.
    pub user: String,
    /// What the assistant answered.
    pub assistant: String,
}

/// A call of one of the provider's tools.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolCall {
    /// The tool.
    pub tool: String,
    /// A JSON object, as the model wrote it.
    pub arguments_json: String,
    /// The call's id.
    pub id: String,
}

/// A tool's answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolReply {
    /// For the model.
    pub content: String,
    /// Whether it says that the call failed.
    pub is_error: bool,
}

/// Something that happened in a session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event {
    /// A turn begins with these words.
    TurnStart(String),
    /// This is about to be compressed away.
    PreCompress(String),
    /// This was written into the built-in memory.
    MemoryWrite(String),
    /// A delegated task ended with this summary.
    Delegation(String),
    /// The session ended.
    SessionEnd,
}

/// What a provider made of the wish to erase a person.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Erasing {
    /// Everything of the person is gone.
    Erased,
    /// It has no way to do that.
    Unsupported,
}

/// Why a provider gave no answer; for the log.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct ProviderError(pub String);

/// An external memory. Calls are made with a deadline from outside; an implementation may take its time.
#[async_trait]
pub trait Provider: fmt::Debug + Send + Sync + 'static {
    /// Begins a session.
    async fn initialize(&self, scope: &Scope) -> Result<Hello, ProviderError>;
    /// Recalls what has to do with a text, best first, at most `limit`.
    async fn prefetch(&self, scope: &Scope, query: &str, limit: usize) -> Result<Vec<String>, ProviderError>;
    /// Takes in a turn.
    async fn sync_turn(&self, scope: &Scope, turn: &Turn) -> Result<(), ProviderError>;
    /// Calls a tool.
    async fn call_tool(&self, scope: &Scope, call: &ToolCall) -> Result<ToolReply, ProviderError>;
    /// Hears of an event; the answer counts before a compression only. The same `id` is the same event, if it is not empty.
    async fn observe(&self, scope: &Scope, event: &Event, id: &str) -> Result<String, ProviderError>;
    /// Erases all that it learned of a person in whatever session (`M-14`); again, it goes on with what is left.
    async fn erase_person(&self, team: &TeamId, user: &UserId) -> Result<Erasing, ProviderError>;
    /// Is told that we stop.
    async fn shutdown(&self) -> Result<(), ProviderError>;
}

/// Longest text of a provider in a prompt, in characters.
const MOST_BLOCK: usize = 4_000;

/// What the person said with a message: a command is reduced to their own words, a bare one says nothing (`M-18`).
pub fn words(message: &str) -> Option<&str> {
    invocation::said(message).words()
}

/// An answer without what was recalled for it: that must not be remembered again (`M-17`).
pub fn own_answer(answer: &str) -> String {
    fence::scrub(answer)
}

/// The block for what was recalled, at most `limit` items; empty when nothing was (`M-16`).
pub fn fenced(items: &[String], limit: usize) -> String {
    fence::block(items.iter().take(limit).map(String::as_str)).unwrap_or_default()
}

/// A text of a provider for a prompt: cut, and held back where the scan refuses it.
pub fn shown(text: &str) -> String {
    let text: String = text.trim().chars().take(MOST_BLOCK).collect();
    match check(&text, Strictness::Context).first() {
        Some(finding) => steward_guard::blocked_marker(finding.category),
        None => marks::defuse(&text),
    }
}

/// The team has a provider already.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("team {team} has an external memory already")]
pub struct SecondProvider {
    /// The team.
    pub team: TeamId,
}

/// The providers of all teams.
#[derive(Debug, Default)]
pub struct Providers {
    by_team: BTreeMap<TeamId, Arc<dyn Provider>>,
}

impl Providers {
    /// Adds the provider of a team; a second one is refused.
    pub fn register(&mut self, team: TeamId, provider: Arc<dyn Provider>) -> Result<(), SecondProvider> {
        if self.by_team.contains_key(&team) {
            return Err(SecondProvider { team });
        }
        self.by_team.insert(team, provider);
        Ok(())
    }

    /// All of them, by team.
    pub fn all(self) -> impl Iterator<Item = (TeamId, Arc<dyn Provider>)> {
        self.by_team.into_iter()
    }
}
