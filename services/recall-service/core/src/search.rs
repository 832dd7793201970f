//! Word-for-word search of past sessions in four shapes (`Q-1`): discover, read, scroll, browse.
//!
//! No model is ever asked and nothing is paraphrased (`Q-2`). Every answer is bounded, and what was cut says so.

mod bounds;
mod browse;
mod discover;
mod look;
pub mod rank;
mod read;
mod scroll;
mod snippet;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use steward_base::names::{SessionId, TeamId, UserId};
use steward_base::{Integrity, Timestamp};

use crate::error::Error;
use crate::message::Role;
use crate::query::Query;
use crate::session::{Session, SessionSource};
use crate::sessions::not_found;
use crate::store::SessionStore;

pub use discover::{Discover, Question};
pub use look::{Glimpse, Look, Surroundings};
pub use read::Read;
pub use scroll::Scroll;
pub use snippet::{MATCH_END, MATCH_START, snippet};

/// Most text of one answer, in bytes.
pub const ANSWER_BYTES: usize = 256 * 1024;
/// Longest text of one message in read and scroll, in characters.
pub const MESSAGE_CHARS: usize = 4_000;
/// Longest text of one message around a hit, in characters.
pub const CONTEXT_CHARS: usize = 1_000;

/// Order of found conversations. Demoted sources come last in each (`Q-4`).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Sort {
    /// By BM25, whatever the age; newer ones first among equals.
    #[default]
    Relevance,
    /// Newest hit first.
    Newest,
    /// Oldest hit first.
    Oldest,
}

/// Who asks, and from where.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Asker {
    /// The tenant.
    pub team: TeamId,
    /// Whose sessions; always the caller's own (`Q-10`).
    pub user: UserId,
    /// Session in which the question is asked: what is in its context is left out (`Q-5`).
    pub current: Option<SessionId>,
}

/// What a store is asked for.
#[derive(Debug, Clone, PartialEq)]
pub struct HitQuery {
    /// Who asks.
    pub asker: Asker,
    /// The words.
    pub query: Query,
    /// Only hits of these roles; empty means all.
    pub roles: Vec<Role>,
    /// Only sessions of these sources; none of them hidden.
    pub sources: Vec<SessionSource>,
    /// Only messages from this time on.
    pub after: Option<Timestamp>,
    /// Only messages before this time.
    pub before: Option<Timestamp>,
    /// Order.
    pub sort: Sort,
    /// At most this many conversations.
    pub limit: usize,
    /// Matches to weigh against each other, at least: [`rank::DEPTH`] or [`rank::WIDE_DEPTH`].
    pub depth: usize,
}

/// The conversations to browse.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecentQuery {
    /// Who asks; the current session and its lineage are left out.
    pub asker: Asker,
    /// At most this many.
    pub limit: usize,
}

/// Sessions and their index as they were at one moment.
pub trait Snapshot {
    /// The best hits, one per lineage, filters applied before any limit (`Q-5`, `Q-6`).
    fn hits(&self, query: &HitQuery) -> Result<Vec<Hit>, Error>;

    /// Looks at sessions: `None` for one that does not exist.
    fn look(&self, team: &TeamId, looks: &[Look]) -> Result<Vec<Option<Surroundings>>, Error>;
}

/// The best hit of a conversation.
#[derive(Debug, Clone, PartialEq)]
pub struct Hit {
    /// Session that has it.
    pub session: SessionId,
    /// Root of the session's lineage.
    pub root: SessionId,
    /// Number of the message.
    pub seq: u64,
    /// Higher is better.
    pub score: f64,
}

/// A message as search shows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecalledMessage {
    /// Its number.
    pub seq: u64,
    /// Who spoke.
    pub role: Role,
    /// Its text, cut to the bound.
    pub text: String,
    /// Characters of the whole text.
    pub text_chars: u64,
    /// Tools that it calls or is the result of.
    pub tools: Vec<String>,
    /// When it was appended.
    pub created: Timestamp,
    /// How far its words may be trusted; whoever passes the text on passes this on.
    pub integrity: Integrity,
}

/// A conversation as search shows it.
#[derive(Debug, Clone, PartialEq)]
pub struct Conversation {
    /// The session, without its prompt and tool list.
    pub session: Session,
    /// Where it matched (discover).
    pub hit: Option<FoundHit>,
    /// Messages around the hit, the hit included (discover).
    pub around: Vec<RecalledMessage>,
    /// First messages (discover), or the first of the person (browse).
    pub opening: Vec<RecalledMessage>,
    /// Last messages (discover).
    pub closing: Vec<RecalledMessage>,
}

/// A hit with the words that matched.
#[derive(Debug, Clone, PartialEq)]
pub struct FoundHit {
    /// Number of the message.
    pub seq: u64,
    /// The part of its text that matches best; see [`snippet`].
    pub snippet: String,
    /// Higher is better; comparable within one answer only.
    pub score: f64,
    /// How far the words may be trusted.
    pub integrity: Integrity,
}

/// An answer of any shape.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Answer {
    /// Found or recent conversations.
    pub conversations: Vec<Conversation>,
    /// Messages (read, scroll).
    pub messages: Vec<RecalledMessage>,
    /// Whether too little was found with all words, and any word was accepted.
    pub widened: bool,
    /// The expression that was run.
    pub expression: String,
    /// Whether the whole was cut to [`ANSWER_BYTES`].
    pub truncated: bool,
    /// Read: number to go on from; 0 at the end.
    pub next_seq: u64,
    /// Why messages that are stored may be missing (discover).
    pub incomplete: Option<String>,
}

/// The search operations, over a store.
#[derive(Debug, Clone)]
pub struct Search {
    store: Arc<dyn SessionStore>,
}

impl Search {
    /// Search in `store`.
    pub fn new(store: Arc<dyn SessionStore>) -> Self {
        Self { store }
    }

    /// A session that the asker may look into. Another person's, and one of a hidden source, is answered like a missing
    /// one.
    async fn readable(&self, asker: &Asker, session: &SessionId) -> Result<Session, Error> {
        let found = self.store.session(&asker.team, session).await?;
        found
            .filter(|found| found.user == asker.user && !found.source.is_hidden())
            .ok_or_else(|| not_found(&asker.team, session))
    }
}
