//! What a credential says. How it is written and signed is behind [`Signer`]; only agent-orchestrator has one.

use std::collections::BTreeSet;
use std::fmt;

use steward_base::names::{SessionId, TeamId, UserId};
use steward_base::{Capability, JobRef, Origin, Role, Timestamp};

/// What a credential is issued for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Subject {
    /// A person, or a program that uses the person's token.
    User,
    /// A turn on behalf of a person.
    Turn {
        /// Session id.
        session: SessionId,
        /// Turn id.
        turn: String,
        /// What it may call.
        capabilities: BTreeSet<Capability>,
    },
    /// A claim of a background job on behalf of a person.
    Job {
        /// Job and fence.
        job: JobRef,
        /// The session that the job looks at.
        session: Option<SessionId>,
        /// What it may call.
        capabilities: BTreeSet<Capability>,
    },
    /// One of the services; with a person only for calls on that person's behalf.
    Service {
        /// Its name.
        name: String,
    },
}

/// Everything a credential says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Claims {
    /// Its id, for audit and revocation.
    pub id: String,
    /// What it is issued for.
    pub subject: Subject,
    /// The person on whose behalf it is used. Always there but for a service's own calls.
    pub person: Option<(TeamId, UserId)>,
    /// The person's role.
    pub role: Role,
    /// Where writes with it come from (`A-2`).
    pub origin: Origin,
    /// When it was made.
    pub issued: Timestamp,
    /// When it ends.
    pub expires: Timestamp,
}

/// A signed credential. `Debug` does not show it.
#[derive(Clone, PartialEq, Eq)]
pub struct Credential(String);

impl Credential {
    /// Wraps the text that a signer made.
    pub fn new(text: String) -> Self {
        Self(text)
    }

    /// The text, for the one place that hands it out or sends it.
    pub fn reveal(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Credential {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Credential(<hidden>)")
    }
}

/// The signer could not sign: a fault of ours.
#[derive(Debug, thiserror::Error)]
#[error("the signing key could not be used")]
pub struct SigningError(#[source] pub Box<dyn std::error::Error + Send + Sync>);

/// Signs credentials. There is one per installation.
pub trait Signer: fmt::Debug + Send + Sync {
    /// The credential that says `claims`.
    fn sign(&self, claims: &Claims) -> Result<Credential, SigningError>;
}
