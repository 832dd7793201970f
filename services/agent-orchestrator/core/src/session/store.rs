//! The port to the store of sessions: what recall-service does for the orchestrator. Every write is one transaction and
//! durable when answered; an append with the request id of an earlier one gets that one's answer and changes nothing.

use std::time::Duration;

use async_trait::async_trait;
use steward_base::names::{TeamId, UserId};

use super::{Counters, Exposure, Message, NewMessage, OpenCall, Prefix, Session, SessionKey, Turn, TurnState, Usage};
use crate::error::Error;

/// A session to be created.
#[derive(Debug, Clone, PartialEq)]
pub struct NewSession {
    /// Team and id.
    pub key: SessionKey,
    /// Whose it is.
    pub user: UserId,
    /// Title; may be empty.
    pub title: String,
    /// Project; may be empty.
    pub project: String,
    /// Model that every request names.
    pub model: String,
    /// Exact system prompt.
    pub system_prompt: String,
    /// Exact tool list.
    pub tools_json: String,
    /// The tools in it that run at the client.
    pub client_tools: Vec<super::ClientTool>,
    /// Whether its turns never make a review due.
    pub skip_review: bool,
    /// What its prompt shows.
    pub exposures: Vec<Exposure>,
}

/// A change of a turn, as part of an append.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TurnUpdate {
    /// Turn id.
    pub id: String,
    /// New state.
    pub state: TurnState,
    /// Model calls so far.
    pub iterations: u32,
    /// Segments so far.
    pub segments: u32,
    /// `ErrorInfo.reason` of a failed turn.
    pub error_reason: String,
    /// Sentence of a failed turn.
    pub error_message: String,
}

/// A review that the turn makes due (`T-5`).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DueReview {
    /// Memory is to be reviewed.
    pub memory: bool,
    /// Skills are to be reviewed.
    pub skills: bool,
    /// Turn that made it due.
    pub turn: String,
    /// W3C trace context of the turn; may be empty.
    pub traceparent: String,
}

/// Everything that changes together.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Append {
    /// Fence of the turn lease.
    pub fence: u64,
    /// Number of the session's last message as the caller knows it.
    pub expected_seq: u64,
    /// Makes a retry safe.
    pub request_id: String,
    /// What is appended, in order.
    pub messages: Vec<NewMessage>,
    /// New state of the turn.
    pub turn: Option<TurnUpdate>,
    /// New counters.
    pub counters: Option<Counters>,
    /// New prefix state.
    pub prefix: Option<Prefix>,
    /// Tokens to add to the session's sums.
    pub usage: Option<Usage>,
    /// The session's open calls from now on; `None` leaves them.
    pub open_calls: Option<Vec<OpenCall>>,
    /// A review that became due.
    pub due_review: Option<DueReview>,
    /// New title; empty leaves it.
    pub title: String,
}

/// A page of a user's sessions, without prompts and tool lists.
#[derive(Debug, Clone, PartialEq)]
pub struct SessionPage {
    /// Most recently active first.
    pub sessions: Vec<Session>,
    /// Token of the next page; empty at the end.
    pub next_page_token: String,
}

/// A page of a session's messages.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MessagePage {
    /// In order.
    pub messages: Vec<Message>,
    /// Token of the next page; empty at the end.
    pub next_page_token: String,
}

/// Keeps sessions, messages, turns and turn leases.
///
/// Errors beside those named: [`Error::Unavailable`], [`Error::StorageFull`], [`Error::Internal`].
#[async_trait]
pub trait SessionStore: std::fmt::Debug + Send + Sync {
    /// Creates a session; one with this id that exists already, made by this request or by another, is returned as it is.
    async fn create_session(&self, new: NewSession, request_id: &str) -> Result<Session, Error>;

    /// A session.
    async fn session(&self, key: &SessionKey) -> Result<Option<Session>, Error>;

    /// A user's sessions. [`Error::Invalid`] for a token of another list.
    async fn sessions(
        &self,
        team: &TeamId,
        user: &UserId,
        page_size: i32,
        page_token: &str,
    ) -> Result<SessionPage, Error>;

    /// Takes the session's lease for a turn, or renews the holder's own for the same turn; the fence. A lease that ended is
    /// free. [`Error::TurnRunning`] when another turn or holder has it.
    async fn acquire_lease(&self, key: &SessionKey, turn: &str, holder: &str, ttl: Duration) -> Result<u64, Error>;

    /// Extends the lease. [`Error::StaleFence`].
    async fn renew_lease(&self, key: &SessionKey, fence: u64, ttl: Duration) -> Result<(), Error>;

    /// Gives the lease up; one that is not held any more changes nothing.
    async fn release_lease(&self, key: &SessionKey, fence: u64) -> Result<(), Error>;

    /// Appends; the number of the session's last message. [`Error::StaleFence`]; [`Error::Internal`] when the session has
    /// other messages than expected, which the lease rules out.
    async fn append(&self, key: &SessionKey, append: Append) -> Result<u64, Error>;

    /// All messages that are in the context, in order.
    async fn history(&self, key: &SessionKey) -> Result<Vec<Message>, Error>;

    /// A page of what people see. [`Error::Invalid`] for a token of another list.
    async fn messages(&self, key: &SessionKey, page_size: i32, page_token: &str) -> Result<MessagePage, Error>;

    /// A turn.
    async fn turn(&self, key: &SessionKey, turn: &str) -> Result<Option<Turn>, Error>;
}
