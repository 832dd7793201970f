//! The port behind which sessions and their index are kept. An implementation is a transaction and a search; every rule
//! is in this crate and is asked from inside the transaction.

pub mod contract;
pub mod memory;

use std::fmt;
use std::time::Duration;

use async_trait::async_trait;
use steward_base::Timestamp;
use steward_base::names::{SessionId, TeamId, UserId};

use crate::append_messages::{Append, Appended};
use crate::create_session::NewSession;
use crate::delete_session::Deletion;
use crate::error::Error;
use crate::fork_session::Fork;
use crate::get_session::{MessagePage, SessionRead, SessionView};
use crate::import_session::WholeSession;
use crate::lease::{Grant, LeaseRequest};
use crate::mark_compacted::Compaction;
use crate::message::{Message, Role};
use crate::rewind_session::Rewind;
use crate::search::{Answer, Question, RecentQuery};
use crate::session::{Session, SessionSource};
use crate::sessions::DueReviewRef;
use crate::team_activity::ActivityPage;
use crate::turn::{DueReview, ExpiredTurn, Turn};
use crate::update_session::SessionUpdate;

/// A page of a user's sessions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionList {
    /// The tenant.
    pub team: TeamId,
    /// Whose.
    pub user: UserId,
    /// Only these sources; never empty.
    pub sources: Vec<SessionSource>,
    /// Only those that come after this one, in order of descending activity and id.
    pub after: Option<(Timestamp, SessionId)>,
    /// At most this many.
    pub limit: u32,
}

/// Which messages of a session can be seen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Visibility {
    /// What is sent to the model: neither rewound nor compacted.
    InContext,
    /// What search may show: not rewound.
    Searchable,
    /// What search may show to somebody in the session itself: taken out of the context by compression, not rewound.
    OutOfContext,
    /// Everything, as the history was.
    All,
}

/// From which end messages are taken. They are returned in ascending order either way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Taken {
    /// The first ones of the range.
    First,
    /// The last ones of the range.
    Last,
}

/// A stretch of a session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MessageRange {
    /// First number, inclusive.
    pub from: u64,
    /// Last number, inclusive.
    pub to: u64,
    /// Which ones.
    pub visibility: Visibility,
    /// Only these roles; empty means all.
    pub roles: Vec<Role>,
    /// From which end.
    pub taken: Taken,
    /// At most this many.
    pub limit: u32,
}

impl MessageRange {
    /// By which number messages are ordered, and `from` and `to` are understood: in the context a summary stands in the
    /// place of what it replaces, everywhere else it is the last message of its time.
    pub fn position(&self, message: &Message) -> u64 {
        match self.visibility {
            Visibility::InContext => message.place(),
            Visibility::Searchable | Visibility::OutOfContext | Visibility::All => message.seq,
        }
    }

    /// The first `limit` of everything in `from..=to`, as the model sees it.
    pub fn in_context(from: u64, to: u64, limit: u32) -> Self {
        Self {
            from,
            to,
            visibility: Visibility::InContext,
            roles: Vec::new(),
            taken: Taken::First,
            limit,
        }
    }
}

/// What a check found.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct IntegrityReport {
    /// A sentence per finding; empty when rows and index agree.
    pub problems: Vec<String>,
    /// Number of messages.
    pub messages: u64,
    /// Version of the tokenizer that the index was built with.
    pub tokenizer_version: u32,
}

/// Keeps sessions. Writes are durable and visible to every later read when they return; each is one transaction.
#[async_trait]
pub trait SessionStore: fmt::Debug + Send + Sync + 'static {
    /// Creates a session. The same request again returns the session; its id under another request is
    /// [`Error::SessionExists`].
    async fn create_session(&self, new: NewSession, now: Timestamp) -> Result<Session, Error>;

    /// A session, or `None`.
    async fn session(&self, team: &TeamId, session: &SessionId) -> Result<Option<Session>, Error>;

    /// A session with what is asked for, all as it was at one moment; `None` without the session.
    async fn view(&self, team: &TeamId, session: &SessionId, read: &SessionRead) -> Result<Option<SessionView>, Error>;

    /// Applies [`crate::update_session::decide`] in one transaction. The same request again returns the session.
    async fn update_session(&self, update: SessionUpdate, now: Timestamp) -> Result<Session, Error>;

    /// Sessions by descending activity; their prompts and tool lists are left out.
    async fn sessions(&self, list: &SessionList) -> Result<Vec<Session>, Error>;

    /// Takes the turn lease; see [`crate::lease`].
    async fn acquire_lease(
        &self,
        team: &TeamId,
        session: &SessionId,
        request: LeaseRequest,
        now: Timestamp,
    ) -> Result<Grant, Error>;

    /// Extends the turn lease.
    async fn renew_lease(
        &self,
        team: &TeamId,
        session: &SessionId,
        fence: u64,
        ttl: Duration,
        now: Timestamp,
    ) -> Result<Timestamp, Error>;

    /// Gives the turn lease up, if it is held with this fence.
    async fn release_lease(&self, team: &TeamId, session: &SessionId, fence: u64) -> Result<(), Error>;

    /// Applies [`crate::append_messages::decide`] in one transaction. Whoever searches from then on finds the messages, or is
    /// told that the answer is incomplete (`Q-11`). A retry is answered by [`crate::append_messages::answer_again`].
    async fn append(&self, append: Append, now: Timestamp) -> Result<Appended, Error>;

    /// Messages in ascending order; none for a session that does not exist.
    async fn messages(&self, team: &TeamId, session: &SessionId, range: &MessageRange) -> Result<Vec<Message>, Error>;

    /// A page of messages in ascending order; `None` for a session that does not exist.
    async fn page(
        &self,
        team: &TeamId,
        session: &SessionId,
        range: &MessageRange,
    ) -> Result<Option<MessagePage>, Error>;

    /// Applies [`crate::delete_session::decide`]: the session, all that belongs to it and its entries in the index are gone
    /// in one transaction, and a mark is left by which a late append is refused ([`Error::SessionDeleted`]).
    async fn delete_session(&self, deletion: Deletion, now: Timestamp) -> Result<(), Error>;

    /// Applies [`crate::rewind_session::decide`]: what is cut leaves the index in the same transaction. The same request
    /// again returns the session.
    async fn rewind_session(&self, rewind: Rewind, now: Timestamp) -> Result<Session, Error>;

    /// Applies [`crate::fork_session::decide`] to what was in the context at one moment. The same request again returns the
    /// session.
    async fn fork_session(&self, fork: Fork, now: Timestamp) -> Result<Session, Error>;

    /// Applies [`crate::mark_compacted::decide`]. The same request again returns the first answer.
    async fn mark_compacted(&self, compaction: Compaction, now: Timestamp) -> Result<Appended, Error>;

    /// Takes a session in as it is, unless it is there: whether it was taken in. One that was deleted is there again.
    /// [`Error::SessionExists`] for another user's.
    async fn import_session(&self, whole: WholeSession) -> Result<bool, Error>;

    /// All turns of a session, by their first messages; none for a session that does not exist.
    async fn turns(&self, team: &TeamId, session: &SessionId) -> Result<Vec<Turn>, Error>;

    /// Why searches of the team may miss messages that are stored; `None` when they do not, as far as is known.
    fn index_trouble(&self, _team: &TeamId) -> Option<String> {
        None
    }

    /// Turns of one team or of all whose time to wait for a client ended before `now`, longest over first. A team that
    /// cannot be read hides no other.
    async fn expired_turns(&self, team: Option<&TeamId>, now: Timestamp, limit: u32)
    -> Result<Vec<ExpiredTurn>, Error>;

    /// A turn, or `None`.
    async fn turn(&self, team: &TeamId, session: &SessionId, turn: &str) -> Result<Option<Turn>, Error>;

    /// The outbox of one team or of all, oldest first. A team whose rows cannot be read hides no other's.
    async fn due_reviews(&self, team: Option<&TeamId>, limit: u32) -> Result<Vec<DueReview>, Error>;

    /// Removes rows of the outbox; how many were there.
    async fn acknowledge(&self, reviews: Vec<DueReviewRef>) -> Result<u32, Error>;

    /// When the people of each team were last active: at most `limit` teams behind `after`, by id. A team that cannot be
    /// read hides no other.
    async fn team_activity(&self, after: Option<&TeamId>, limit: u32) -> Result<ActivityPage, Error>;

    /// Compares rows and index; rebuilds the index from the rows first if asked to.
    async fn check_integrity(&self, team: &TeamId, rebuild: bool) -> Result<IntegrityReport, Error>;

    /// Answers a question from one [`crate::search::Snapshot`], which has all that was acknowledged before it, or says in
    /// the answer that it is incomplete (`Q-11`).
    async fn discover(&self, question: Question) -> Result<Answer, Error>;

    /// Recently active conversations, one per lineage.
    async fn recent(&self, query: &RecentQuery) -> Result<Vec<Session>, Error>;
}
