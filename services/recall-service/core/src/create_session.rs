//! Beginning a session: what is frozen now is repeated by every request of it (`P-3`).

use steward_base::names::{SessionId, TeamId, UserId};
use steward_base::{FieldViolations, Integrity, Timestamp};

use crate::append_messages::{RequestKey, check_request_id};
use crate::error::Error;
use crate::lease::Lease;
use crate::session::{Counters, Exposure, Frozen, Lineage, PrefixState, Session, SessionSource, Usage};
use crate::sessions::Sessions;

/// Longest title in characters.
pub const MAX_TITLE: usize = 200;

/// A session to be created.
#[derive(Debug, Clone, PartialEq)]
pub struct NewSession {
    /// The tenant.
    pub team: TeamId,
    /// Id, drawn by the server where the caller gave none.
    pub id: SessionId,
    /// Whose it is.
    pub user: UserId,
    /// Where it comes from.
    pub source: SessionSource,
    /// Title for people; may be empty.
    pub title: String,
    /// Parent, which must exist in the same team.
    pub lineage: Option<Lineage>,
    /// Project; may be empty.
    pub project: String,
    /// What its requests repeat.
    pub frozen: Frozen,
    /// Whether its turns never make a review due.
    pub skip_review: bool,
    /// Whether it has no external memory provider.
    pub skip_memory: bool,
    /// Counters to start from: zero, or what an import computed (`T-4`).
    pub counters: Counters,
    /// Learned artefacts that its prompt shows.
    pub exposures: Vec<Exposure>,
    /// Recognises a retry.
    pub request: RequestKey,
}

impl NewSession {
    /// The session as it is stored. It joins the conversation of its parent, whose root is given, unless it has a parent
    /// only because that one was reset.
    pub fn into_session(self, parent_root: Option<SessionId>, now: Timestamp) -> Session {
        let joins = self.lineage.as_ref().is_some_and(|lineage| lineage.reason.continues());
        Session {
            root: parent_root.filter(|_| joins).unwrap_or_else(|| self.id.clone()),
            team: self.team,
            id: self.id,
            user: self.user,
            source: self.source,
            title: self.title,
            lineage: self.lineage,
            project: self.project,
            frozen: self.frozen,
            skip_review: self.skip_review,
            skip_memory: self.skip_memory,
            counters: self.counters,
            prefix: PrefixState::default(),
            usage: Usage::default(),
            last_seq: 0,
            open_calls: Vec::new(),
            exposures: self.exposures,
            lowest_integrity: Integrity::Operator,
            open_turn: None,
            lease: Lease::default(),
            created: now,
            last_active: now,
            revision: 1,
        }
    }

    fn check(&self) -> Result<(), Error> {
        let mut violations = FieldViolations::new();
        check_request_id(&self.request.id, &mut violations);
        if self.title.chars().count() > MAX_TITLE {
            violations.add("session.title", format!("must have at most {MAX_TITLE} characters"));
        }
        self.frozen.check(&mut violations);
        Ok(violations.into_result()?)
    }
}

impl Sessions {
    /// Creates the session; the same request again returns it.
    pub async fn create_session(&self, new: NewSession) -> Result<Session, Error> {
        new.check()?;
        self.store.create_session(new, self.clock.now()).await
    }
}
