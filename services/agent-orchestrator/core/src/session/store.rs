//! The port to the store of sessions: what recall-service does for the orchestrator. Every write is one transaction and
//! durable when answered; an append with the request id of an earlier one gets that one's answer and changes nothing.

use std::time::Duration;

use async_trait::async_trait;
use steward_base::names::{SessionId, TeamId, UserId};

use super::{
    ClientTool, Counters, Exposure, Message, NewMessage, OpenCall, Prefix, Session, SessionKey, Turn, TurnState, Usage,
};
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
    /// Length in bytes of its stable tier.
    pub stable_prompt_bytes: u32,
    /// Exact tool list.
    pub tools_json: String,
    /// The tools in it that run at the client.
    pub client_tools: Vec<ClientTool>,
    /// Whether its turns never make a review due.
    pub skip_review: bool,
    /// What its prompt shows.
    pub exposures: Vec<Exposure>,
    /// What the prompt was assembled from, as [`super::KeptSetup`] writes it.
    pub setup: Vec<u8>,
}

/// What the requests of a session begin with from now on: a planned break of its prefix (`P-3`).
#[derive(Debug, Clone, PartialEq)]
pub struct Anew {
    /// Why: `model` or `tools`.
    pub reason: &'static str,
    /// Model that every request names.
    pub model: String,
    /// Exact system prompt.
    pub system_prompt: String,
    /// Length in bytes of its stable tier.
    pub stable_prompt_bytes: u32,
    /// Exact tool list.
    pub tools_json: String,
    /// The tools in it that run at the client.
    pub client_tools: Vec<ClientTool>,
    /// What the prompt shows.
    pub exposures: Vec<Exposure>,
    /// What the prompt was assembled from.
    pub setup: Vec<u8>,
}

/// A change of a session between two turns.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct SessionUpdate {
    /// The session as the caller read it; empty: however it is.
    pub etag: String,
    /// Makes a retry safe.
    pub request_id: String,
    /// New title.
    pub title: Option<String>,
    /// New beginning.
    pub anew: Option<Anew>,
}

/// A turn lease to take together with an append.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TurnLease {
    /// Turn that will run.
    pub turn: String,
    /// Who holds it.
    pub holder: String,
    /// How long it lives without being renewed.
    pub ttl: Duration,
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
    /// Fence of the turn lease; of no meaning with `lease`.
    pub fence: u64,
    /// Takes the turn lease first, in the same transaction.
    pub lease: Option<TurnLease>,
    /// Gives the lease up in the same transaction.
    pub release: bool,
    /// Number of the session's last message as the caller knows it.
    pub expected_seq: u64,
    /// The session as the caller read it; empty: however it is.
    pub expected_etag: String,
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
    /// What the messages show of what was learned, beside what the session was shown before.
    pub exposures: Vec<Exposure>,
}

/// What an append came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Appended {
    /// Number of the session's last message.
    pub last_seq: u64,
    /// The fence under which it was made.
    pub fence: u64,
}

/// A cut.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rewind {
    /// The last message that stays; 0 for none.
    pub to_seq: u64,
    /// The session as the caller read it; empty: however it is.
    pub etag: String,
    /// Makes a retry safe.
    pub request_id: String,
}

/// A session that goes on from another.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fork {
    /// Id of the new session.
    pub id: SessionId,
    /// The last message that is taken along; 0: all.
    pub through_seq: u64,
    /// Title; empty: that of the other one.
    pub title: String,
    /// Makes a retry safe.
    pub request_id: String,
}

/// A turn that waits for a client which did not come in time (`T-8`).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExpiredTurn {
    /// The session.
    pub session: SessionKey,
    /// Whose it is.
    pub user: UserId,
    /// The turn.
    pub turn: String,
}

/// A session with what a turn needs of it, read at one moment.
#[derive(Debug, Clone, PartialEq)]
pub struct Opened {
    /// The session.
    pub session: Session,
    /// The turn that was asked for, if the session has it.
    pub turn: Option<Turn>,
    /// All messages that are in the context, in order.
    pub history: Vec<Message>,
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

    /// Changes a session between two turns. The same request id again changes nothing and gives the session as it is.
    /// [`Error::SessionNotFound`]; [`Error::TurnRunning`] while a turn runs or waits; [`Error::SessionChanged`] for another
    /// etag.
    async fn update_session(&self, key: &SessionKey, update: SessionUpdate) -> Result<Session, Error>;

    /// A session with its messages and one of its turns (empty: none).
    async fn open(&self, key: &SessionKey, turn: &str) -> Result<Option<Opened>, Error>;

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

    /// Appends. [`Error::StaleFence`]; [`Error::TurnRunning`] when the lease that it is to take is another's;
    /// [`Error::SessionChanged`] when the session has other messages, or is otherwise not as expected.
    async fn append(&self, key: &SessionKey, append: Append) -> Result<Appended, Error>;

    /// A page of what people see. [`Error::Invalid`] for a token of another list.
    async fn messages(&self, key: &SessionKey, page_size: i32, page_token: &str) -> Result<MessagePage, Error>;

    /// Deletes a session with all that was said in it. [`Error::SessionNotFound`]; [`Error::TurnRunning`] while a turn runs;
    /// [`Error::SessionChanged`] for another etag.
    async fn delete_session(&self, key: &SessionKey, etag: &str) -> Result<(), Error>;

    /// Takes back what was said after a message. The same request id again changes nothing. [`Error::SessionNotFound`];
    /// [`Error::TurnRunning`] while a turn runs or waits; [`Error::SessionChanged`]; [`Error::Invalid`] where a turn would be
    /// parted.
    async fn rewind_session(&self, key: &SessionKey, rewind: Rewind) -> Result<Session, Error>;

    /// Begins a session that goes on from a message of another. The same request id again finds it.
    /// [`Error::SessionNotFound`]; [`Error::Invalid`] where there is no such message, or a call would be parted.
    async fn fork_session(&self, parent: &SessionKey, fork: Fork) -> Result<Session, Error>;

    /// Turns of all teams whose client did not come in time, longest over first, at most `limit`.
    async fn expired_turns(&self, limit: u32) -> Result<Vec<ExpiredTurn>, Error>;

    /// A turn.
    async fn turn(&self, key: &SessionKey, turn: &str) -> Result<Option<Turn>, Error>;
}
