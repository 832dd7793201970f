//! An entry of memory, its revisions, and where each revision came from (`M-12`).

use serde::{Deserialize, Serialize};
use steward_base::names::{EntryId, SessionId, UserId};
use steward_base::{Caller, Identity, Integrity, Origin, Timestamp};

use crate::freshness::{Holds, Stale};

/// What a lesson rests on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Basis {
    /// A person with standing said it should be so.
    Stated,
    /// A tool result in the conversation shows it.
    Checked,
    /// It worked or failed once and nothing confirms why.
    SeenOnce,
}

impl Basis {
    /// The name in stores and in the review's answer.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Stated => "stated",
            Self::Checked => "checked",
            Self::SeenOnce => "seen_once",
        }
    }

    /// From its name.
    pub fn parse(name: &str) -> Option<Self> {
        [Self::Stated, Self::Checked, Self::SeenOnce]
            .into_iter()
            .find(|basis| basis.as_str() == name)
    }
}

/// The spans of a conversation that support a write.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Evidence {
    /// The session in which they stand.
    pub session: SessionId,
    /// Ids of the cited spans, `s{message}` or `s{message}.{index}`.
    pub spans: Vec<String>,
    /// Grade of the evidence, if one was given.
    pub basis: Option<Basis>,
    /// Lowest integrity among the cited spans; absent means unknown, which counts as external.
    pub integrity: Option<Integrity>,
}

/// Where a revision came from. All but the evidence is taken from the caller's credential.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Provenance {
    /// The person who wrote it or on whose behalf it was written.
    pub author: Option<UserId>,
    /// Kind of activity.
    pub origin: Origin,
    /// The session that the credential was bound to.
    pub session: Option<SessionId>,
    /// The turn, for a write by the agent in a conversation.
    pub turn: Option<String>,
    /// The job, for a write by a review.
    pub job: Option<String>,
    /// What supports it; people need none.
    pub evidence: Option<Evidence>,
    /// Why, in the writer's words; may be empty.
    pub reason: String,
    /// The person who approved it, if it was a proposal.
    pub approved_by: Option<UserId>,
    /// How long it holds, as the writer says.
    #[serde(default)]
    pub holds: Holds,
}

impl Provenance {
    /// What `caller` proves about itself, and the evidence and reason it gives.
    pub fn of(caller: &Caller, evidence: Option<Evidence>, reason: String) -> Self {
        let (turn, job) = match &caller.identity {
            Identity::Turn { turn, .. } => (Some(turn.clone()), None),
            Identity::Job { job, .. } => (None, Some(job.id.clone())),
            Identity::User | Identity::Service { .. } => (None, None),
        };
        Self {
            author: caller.user.clone(),
            origin: caller.origin,
            session: caller.session().and_then(|session| SessionId::parse(session).ok()),
            turn,
            job,
            evidence,
            reason,
            approved_by: None,
            holds: Holds::default(),
        }
    }

    /// How far what the revision rests on may be trusted: a person who approved it, or wrote it without the agent, stands
    /// behind it; else the evidence says; what the agent wrote without evidence is unknown.
    pub fn integrity(&self) -> Option<Integrity> {
        let by_hand = !self.origin.is_automatic() && self.turn.is_none();
        match &self.evidence {
            _ if self.approved_by.is_some() => Some(Integrity::Person),
            Some(evidence) => evidence.integrity,
            None => by_hand.then_some(Integrity::Person),
        }
    }
}

/// An entry as it stands now.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Entry {
    /// Its id, unique in the team.
    pub id: EntryId,
    /// Its text in kept form.
    pub content: String,
    /// Number of its latest revision, from 1.
    pub revision: u32,
    /// When its first revision was made; entries are shown in this order.
    pub created: Timestamp,
    /// When its latest revision was made.
    pub changed: Timestamp,
    /// Where its latest revision came from.
    pub provenance: Provenance,
    /// The check of this revision that was last reported to fail.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failed_check: Option<String>,
}

impl Entry {
    /// Why it no longer holds at `at`; `None` while it does.
    pub fn stale(&self, at: Timestamp) -> Option<Stale> {
        if self.provenance.holds.until.is_some_and(|until| until <= at) {
            return Some(Stale::Ended);
        }
        self.failed_check.clone().map(Stale::CheckFailed)
    }
}

/// What a revision did.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Action {
    /// Made the entry.
    Added,
    /// Put another text in its place.
    Replaced,
    /// Took it out of memory; the history stays.
    Removed,
    /// Put the text of an earlier revision back.
    Reverted,
}

impl Action {
    /// The name in stores.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Added => "added",
            Self::Replaced => "replaced",
            Self::Removed => "removed",
            Self::Reverted => "reverted",
        }
    }

    /// From its name.
    pub fn parse(name: &str) -> Option<Self> {
        [Self::Added, Self::Replaced, Self::Removed, Self::Reverted]
            .into_iter()
            .find(|action| action.as_str() == name)
    }
}

/// One step in an entry's history. Never changed once written.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Revision {
    /// The entry.
    pub entry: EntryId,
    /// From 1, without gaps.
    pub number: u32,
    /// What it did.
    pub action: Action,
    /// The text from then on; absent once removed.
    pub content: Option<String>,
    /// When.
    pub at: Timestamp,
    /// Where it came from.
    pub provenance: Provenance,
}
