//! Where skills come from: one trait for every kind of source (`H-1`).
//!
//! A source resolves a reference to an immutable revision first, and fetches exactly that. It answers for the wire
//! format alone: what it brings is untrusted, and goes into quarantine.

use std::fmt;

use serde::{Deserialize, Serialize};
use steward_base::Timestamp;
use steward_fetch::FetchError;
use steward_skill_scanner::Tree;

use crate::archive::ArchiveError;
use crate::policy::Trust;

/// Who owns a skill at its source, by ids that a rename does not change. A changed id is another owner.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Pins {
    /// The owner's id.
    pub owner: Option<String>,
    /// The repository's id.
    pub repository: Option<String>,
}

impl Pins {
    /// Whether a known id has become another one.
    pub fn changed_from(&self, before: &Self) -> bool {
        let differs = |then: &Option<String>, now: &Option<String>| matches!((then, now), (Some(then), now) if now.as_ref() != Some(then));
        differs(&before.owner, &self.owner) || differs(&before.repository, &self.repository)
    }
}

/// One row of a search.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Found {
    /// The source.
    pub source: String,
    /// What to install, in full: unique within the source.
    pub reference: String,
    /// The skill's name.
    pub name: String,
    /// What it says of itself. Untrusted text.
    pub description: String,
    /// How far its origin is trusted.
    pub trust: Trust,
    /// Whether the source can deliver it; some list what they do not hold.
    pub installable: bool,
    /// How often it was installed, if the source counts.
    pub installs: Option<u64>,
}

/// A reference turned into one revision.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Resolved {
    /// The source.
    pub source: String,
    /// The reference in full.
    pub reference: String,
    /// The skill's name, as far as the source knows.
    pub name: String,
    /// The revision: a commit, a version with a digest, a digest.
    pub revision: String,
    /// Who owns it.
    pub pins: Pins,
    /// How far its origin is trusted.
    pub trust: Trust,
    /// When the revision was published, if the source says.
    pub published_at: Option<Timestamp>,
    /// What the source itself warns of, for people. Never a reason to trust.
    pub warnings: Vec<String>,
    /// Where [`Source::fetch`] finds it; opaque to everyone else.
    pub locator: String,
}

/// What a source could not do.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SourceError {
    /// Not a reference of this source.
    #[error("{reference} is no reference of {source_name}: {problem}")]
    Reference {
        /// The source.
        source_name: &'static str,
        /// The reference.
        reference: String,
        /// What would be right.
        problem: &'static str,
    },
    /// The source does not have it, or no longer.
    #[error("{reference} is not there")]
    Gone {
        /// The reference.
        reference: String,
    },
    /// More than one skill is meant.
    #[error("{reference} could be any of {}", candidates.join(", "))]
    Ambiguous {
        /// The reference.
        reference: String,
        /// Full references.
        candidates: Vec<String>,
    },
    /// The source itself withholds it.
    #[error("{reference} is withheld by its source: {reason}")]
    Withheld {
        /// The reference.
        reference: String,
        /// Why.
        reason: String,
    },
    /// An answer that is not in the source's format.
    #[error("the answer of {source_name} is not understood: {problem}")]
    Answer {
        /// The source.
        source_name: &'static str,
        /// What is wrong.
        problem: String,
    },
    /// Part of the skill is missing or not what was announced: nothing is installed.
    #[error("{file} {problem}")]
    Incomplete {
        /// The file.
        file: String,
        /// What is wrong with it.
        problem: String,
    },
    /// The archive is refused.
    #[error(transparent)]
    Archive(#[from] ArchiveError),
    /// The request failed.
    #[error(transparent)]
    Fetch(#[from] FetchError),
}

/// One source of skills.
#[async_trait::async_trait]
pub trait Source: fmt::Debug + Send + Sync {
    /// Its stable name, for example `github`.
    fn name(&self) -> &'static str;

    /// Whether a reference can only be one of this source.
    fn claims(&self, reference: &str) -> bool;

    /// Up to `limit` skills that match `query`; sources that cannot be searched return none.
    async fn search(&self, query: &str, limit: usize) -> Result<Vec<Found>, SourceError>;

    /// Turns a reference into one immutable revision.
    async fn resolve(&self, reference: &str) -> Result<Resolved, SourceError>;

    /// Whether the source takes back a revision that was fetched from it, and why. By default it does when it no longer
    /// has the skill, or withholds it; one with a word for single revisions says so.
    async fn withdrawn(&self, reference: &str, _revision: &str) -> Result<Option<String>, SourceError> {
        match self.resolve(reference).await {
            Ok(_) => Ok(None),
            Err(SourceError::Gone { .. }) => Ok(Some("its source no longer has it".to_owned())),
            Err(SourceError::Withheld { reason, .. }) => Ok(Some(reason)),
            Err(error) => Err(error),
        }
    }

    /// Fetches exactly that revision, whole or not at all.
    async fn fetch(&self, resolved: &Resolved) -> Result<Tree, SourceError>;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_changed_or_vanished_id_is_another_owner_and_a_new_one_is_not() {
        let pins = |owner: Option<&str>, repository: Option<&str>| Pins {
            owner: owner.map(str::to_owned),
            repository: repository.map(str::to_owned),
        };
        let before = pins(Some("1"), Some("2"));
        assert!(!pins(Some("1"), Some("2")).changed_from(&before));
        assert!(pins(Some("9"), Some("2")).changed_from(&before));
        assert!(pins(Some("1"), Some("9")).changed_from(&before));
        assert!(pins(None, Some("2")).changed_from(&before));
        assert!(!pins(Some("1"), Some("2")).changed_from(&pins(None, None)));
    }
}
