//! The operations on sessions that services call. One file per verb holds its rule; this one holds what they share and
//! the ones that only read.

use std::sync::Arc;
use std::time::Duration;

use steward_base::names::{SessionId, TeamId, UserId, session_name};
use steward_base::{Clock, FieldViolations, IdGen, Timestamp};

use crate::error::Error;
use crate::get_session::MessagePage;
use crate::lease::{Grant, LeaseRequest, check_ttl};
use crate::session::Session;
use crate::store::{IntegrityReport, MessageRange, SessionList, SessionStore, Taken};
use crate::turn::{DueReview, ExpiredTurn, Turn};

/// Bounds that an operator may set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Largest message in bytes, its arguments and sent bytes included.
    pub message_bytes: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            message_bytes: 2 * 1024 * 1024,
        }
    }
}

/// Identifies a row of the outbox.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DueReviewRef {
    /// The tenant.
    pub team: TeamId,
    /// The session.
    pub session: SessionId,
    /// The id.
    pub id: String,
}

/// The operations, over a store.
#[derive(Debug, Clone)]
pub struct Sessions {
    pub(crate) store: Arc<dyn SessionStore>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) ids: Arc<dyn IdGen>,
    pub(crate) limits: Limits,
}

impl Sessions {
    /// Operations over `store`, by `clock`: the clock by which leases end.
    pub fn new(store: Arc<dyn SessionStore>, clock: Arc<dyn Clock>, ids: Arc<dyn IdGen>, limits: Limits) -> Self {
        Self {
            store,
            clock,
            ids,
            limits,
        }
    }

    /// A fresh identifier, for what the caller leaves to the server.
    pub fn new_id(&self) -> String {
        self.ids.new_id()
    }

    /// A user's sessions, most recently active first, without prompts and tool lists.
    pub async fn list_sessions(&self, list: &SessionList) -> Result<Vec<Session>, Error> {
        self.store.sessions(list).await
    }

    /// Takes the turn lease, or renews the caller's own (`T-7`).
    pub async fn acquire_turn_lease(
        &self,
        team: &TeamId,
        session: &SessionId,
        turn: String,
        holder: String,
        ttl: Duration,
    ) -> Result<Grant, Error> {
        let request = LeaseRequest { turn, holder, ttl };
        let mut violations = FieldViolations::new();
        request.check("", &mut violations);
        violations.into_result()?;
        self.store.acquire_lease(team, session, request, self.clock.now()).await
    }

    /// Extends the lease with this fence.
    pub async fn renew_turn_lease(
        &self,
        team: &TeamId,
        session: &SessionId,
        fence: u64,
        ttl: Duration,
    ) -> Result<Timestamp, Error> {
        let mut violations = FieldViolations::new();
        check_ttl("ttl", ttl, &mut violations);
        violations.into_result()?;
        self.store
            .renew_lease(team, session, fence, ttl, self.clock.now())
            .await
    }

    /// Gives the lease up. One that is no longer held changes nothing.
    pub async fn release_turn_lease(&self, team: &TeamId, session: &SessionId, fence: u64) -> Result<(), Error> {
        self.store.release_lease(team, session, fence).await
    }

    /// Messages in order, up to the range's limit or [`crate::get_session::PAGE_BYTES`].
    pub async fn list_messages(
        &self,
        team: &TeamId,
        session: &SessionId,
        range: &MessageRange,
    ) -> Result<MessagePage, Error> {
        let range = MessageRange {
            taken: Taken::First,
            ..range.clone()
        };
        let page = self.store.page(team, session, &range).await?;
        page.ok_or_else(|| not_found(team, session))
    }

    /// A turn.
    pub async fn get_turn(&self, team: &TeamId, session: &SessionId, turn: &str) -> Result<Turn, Error> {
        if let Some(turn) = self.store.turn(team, session, turn).await? {
            return Ok(turn);
        }
        self.get_session(team, session).await?;
        Err(Error::TurnNotFound { turn: turn.to_owned() })
    }

    /// Due reviews of one team or of all that nobody has acknowledged, oldest first. Reading does not remove them.
    pub async fn list_due_reviews(&self, team: Option<&TeamId>, limit: u32) -> Result<Vec<DueReview>, Error> {
        self.store.due_reviews(team, limit).await
    }

    /// Removes due reviews; how many were there.
    pub async fn acknowledge_due_reviews(&self, reviews: Vec<DueReviewRef>) -> Result<u32, Error> {
        self.store.acknowledge(reviews).await
    }

    /// Turns of one team or of all that wait for a client whose time is over (`T-8`).
    pub async fn list_expired_turns(&self, team: Option<&TeamId>, limit: u32) -> Result<Vec<ExpiredTurn>, Error> {
        self.store.expired_turns(team, self.clock.now(), limit).await
    }

    /// Compares a team's rows with its index, and rebuilds the index if asked to (`Q-11`).
    pub async fn check_integrity(&self, team: &TeamId, rebuild: bool) -> Result<IntegrityReport, Error> {
        self.store.check_integrity(team, rebuild).await
    }

    /// The session, if it is this user's. Another user's is answered like a missing one.
    pub async fn own_session(&self, team: &TeamId, session: &SessionId, user: &UserId) -> Result<Session, Error> {
        let found = self.get_session(team, session).await?;
        if found.user == *user {
            Ok(found)
        } else {
            Err(not_found(team, session))
        }
    }
}

pub(crate) fn not_found(team: &TeamId, session: &SessionId) -> Error {
    Error::SessionNotFound {
        session: session_name(team, session),
    }
}
