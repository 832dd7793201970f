//! A write that waits for a person (`M-13`, `L-6`, `L-7`).

use std::fmt;

use serde::{Deserialize, Serialize};
use steward_base::Timestamp;
use steward_base::names::{self, EntryId, NameError, TeamId, UserId};

use crate::access::Waiting;
use crate::edit::Operation;
use crate::entry::Provenance;
use crate::owner::{Owner, StoreName, Target};

/// Identifies a proposal in its team.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ProposalId(EntryId);

impl ProposalId {
    /// Checks the syntax of an id.
    pub fn parse(text: impl Into<String>) -> Result<Self, NameError> {
        EntryId::parse(text).map(Self)
    }

    /// The id as that of the entry which the proposal may make.
    pub fn as_entry(&self) -> EntryId {
        self.0.clone()
    }

    /// The bare id.
    pub fn as_str(&self) -> &str {
        self.0.as_str()
    }
}

impl From<EntryId> for ProposalId {
    fn from(id: EntryId) -> Self {
        Self(id)
    }
}

impl fmt::Display for ProposalId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// Where a proposal stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum State {
    /// Nobody has decided.
    Pending,
    /// It took effect.
    Approved,
    /// It never will.
    Rejected,
    /// Nobody decided in time. It is still there and takes no effect.
    Expired,
}

impl State {
    /// The name in stores.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Approved => "approved",
            Self::Rejected => "rejected",
            Self::Expired => "expired",
        }
    }

    /// From its name.
    pub fn parse(name: &str) -> Option<Self> {
        [Self::Pending, Self::Approved, Self::Rejected, Self::Expired]
            .into_iter()
            .find(|state| state.as_str() == name)
    }
}

/// Who decided what, and why.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Decided {
    /// The person.
    pub by: Option<UserId>,
    /// When.
    pub at: Timestamp,
    /// The person's reason; may be empty.
    pub reason: String,
}

/// A write that waits, or waited, for a person.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Proposal {
    /// Its id.
    pub id: ProposalId,
    /// Whose memory it would change.
    pub owner: Owner,
    /// Which book.
    pub target: Target,
    /// What it would do.
    pub operations: Vec<Operation>,
    /// Why it waits.
    pub waiting: Waiting,
    /// Where it came from.
    pub provenance: Provenance,
    /// When it was made.
    pub created: Timestamp,
    /// Where it stands.
    pub state: State,
    /// The decision, once there is one.
    pub decided: Option<Decided>,
    /// When it expires unless somebody decides before.
    pub expires: Timestamp,
    /// By which the same candidate is known again, see [`crate::near::fingerprint`].
    pub fingerprint: String,
    /// Whether those who decide on what is shared may see it. What was drawn from one person's conversation without them
    /// is first shown to that person alone, who may pass it on (`M-13`).
    pub shown: bool,
    /// What took effect, where a person changed it before approving.
    #[serde(default)]
    pub edited: Option<Vec<Operation>>,
}

/// A candidate that a person rejected, as it is remembered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rejection {
    /// By which it is known again.
    pub fingerprint: String,
    /// When.
    pub at: Timestamp,
    /// The person's reason.
    pub reason: String,
}

impl Proposal {
    /// Where it stands at `at`: nobody is asked for ever.
    pub fn state_at(&self, at: Timestamp) -> State {
        if self.state == State::Pending && self.expires <= at {
            State::Expired
        } else {
            self.state
        }
    }

    /// The store that it would change.
    pub fn store(&self, team: &TeamId) -> StoreName {
        StoreName {
            team: team.clone(),
            owner: self.owner.clone(),
            target: self.target,
        }
    }
}

/// The resource name of a proposal: `teams/{team}/memoryProposals/{proposal}`.
pub fn proposal_name(team: &TeamId, proposal: &ProposalId) -> String {
    format!("teams/{team}/memoryProposals/{proposal}")
}

/// Parses `teams/{team}/memoryProposals/{proposal}`.
pub fn parse_proposal_name(name: &str) -> Result<(TeamId, ProposalId), NameError> {
    let pattern = "teams/{team}/memoryProposals/{proposal}";
    let [team, proposal] = names::segments(name, ["teams", "memoryProposals"], pattern)?;
    Ok((TeamId::parse(team)?, ProposalId::parse(proposal)?))
}
