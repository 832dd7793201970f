//! Who calls, as proven by a verified credential. Services take the origin of every write from here and from nowhere
//! else (`A-2`, `S-14`).

use std::collections::BTreeSet;
use std::fmt;

use serde::{Deserialize, Serialize};

use crate::names::{TeamId, UserId};

/// What a person may do in a team. Later ones include earlier ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// Reads what the team shares.
    Viewer,
    /// Talks to the agent, owns sessions, memory and skills.
    Member,
    /// Decides what the team shares: approvals, team notes, purges.
    Maintainer,
    /// Manages users and tokens.
    Admin,
}

/// Which kind of activity a write comes from. Decided by the credential, never by a field of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Origin {
    /// A person is present.
    Foreground,
    /// A review looks back at a delivered turn.
    Review,
    /// A curation ages or merges skills.
    Curation,
    /// A schedule runs a turn with nobody present.
    Schedule,
    /// A delegated sub-agent works for a parent turn.
    Delegate,
    /// The hub installs or updates.
    Hub,
    /// Shipped with Steward.
    Builtin,
    /// Brought in from files.
    Import,
}

impl Origin {
    /// Whether no person is present to answer a question or an approval.
    pub const fn is_automatic(self) -> bool {
        matches!(
            self,
            Self::Review | Self::Curation | Self::Schedule | Self::Delegate | Self::Hub | Self::Builtin
        )
    }

    /// The name on the wire, in logs and in stores.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Foreground => "foreground",
            Self::Review => "review",
            Self::Curation => "curation",
            Self::Schedule => "schedule",
            Self::Delegate => "delegate",
            Self::Hub => "hub",
            Self::Builtin => "builtin",
            Self::Import => "import",
        }
    }

    /// From its name.
    pub fn parse(name: &str) -> Option<Self> {
        [
            Self::Foreground,
            Self::Review,
            Self::Curation,
            Self::Schedule,
            Self::Delegate,
            Self::Hub,
            Self::Builtin,
            Self::Import,
        ]
        .into_iter()
        .find(|origin| origin.as_str() == name)
    }
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Something a restricted credential permits, named after the agent's tool or the service call behind it:
/// `memory`, `skill_manage`, `skills_list`, `skill_view`, `session_search`, `session_history`, `generate`.
pub type Capability = String;

/// The job that a restricted credential was signed for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct JobRef {
    /// The job's id in the worker's queue.
    pub id: String,
    /// The fence of the claim; a lower one than seen before is stale.
    pub fence: u64,
}

/// What the credential was issued for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Identity {
    /// A person, or a program with a token that the person made.
    User,
    /// A turn of the agent on behalf of a person: restricted to the capabilities of the session's tools.
    Turn {
        /// Session id.
        session: String,
        /// Turn id, which is the request id of the turn's first segment.
        turn: String,
        /// What it may call.
        capabilities: BTreeSet<Capability>,
    },
    /// A background job on behalf of a person: restricted, and bound to a claim.
    Job {
        /// Which job and claim.
        job: JobRef,
        /// The session that the job looks at, if any.
        session: Option<String>,
        /// What it may call.
        capabilities: BTreeSet<Capability>,
    },
    /// One of the services, for calls between services.
    Service {
        /// Its name, for example `curator-worker`.
        name: String,
    },
}

/// A caller whose credential was verified.
///
/// A service's own calls may name a team and user on whose behalf they are made; a caller without a team can only
/// reach methods that are open to services.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Caller {
    /// The team that everything this caller does stays inside of.
    pub team: Option<TeamId>,
    /// The person on whose behalf it acts.
    pub user: Option<UserId>,
    /// The person's role in the team.
    pub role: Role,
    /// Where writes of this caller come from.
    pub origin: Origin,
    /// What the credential was issued for.
    pub identity: Identity,
    /// The credential's id, for audit and revocation.
    pub token_id: String,
}

impl Caller {
    /// Whether a restricted credential includes `capability`. Unrestricted ones include all.
    pub fn permits(&self, capability: &str) -> bool {
        match &self.identity {
            Identity::User | Identity::Service { .. } => true,
            Identity::Turn { capabilities, .. } | Identity::Job { capabilities, .. } => {
                capabilities.contains(capability)
            }
        }
    }

    /// The session that the credential is bound to.
    pub fn session(&self) -> Option<&str> {
        match &self.identity {
            Identity::Turn { session, .. } => Some(session),
            Identity::Job { session, .. } => session.as_deref(),
            Identity::User | Identity::Service { .. } => None,
        }
    }

    /// The job that the credential is bound to.
    pub fn job(&self) -> Option<&JobRef> {
        match &self.identity {
            Identity::Job { job, .. } => Some(job),
            Identity::User | Identity::Turn { .. } | Identity::Service { .. } => None,
        }
    }

    /// Whether this is one of the services itself.
    pub fn is_service(&self) -> bool {
        matches!(self.identity, Identity::Service { .. })
    }
}
