//! The port to the erasure of what is one person's alone.

use async_trait::async_trait;
use steward_base::Timestamp;
use steward_base::names::{TeamId, UserId};

use crate::error::StoreFault;

/// Whose is to be erased.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Erasure {
    /// The tenant.
    pub team: TeamId,
    /// The person.
    pub user: UserId,
    /// Who does it, for the audit.
    pub by: String,
    /// When.
    pub at: Timestamp,
}

/// What was erased.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Erased {
    /// Skills.
    pub skills: u64,
    /// Their revisions.
    pub revisions: u64,
    /// Bundles, hidden marks, proposals.
    pub others: u64,
    /// What is found afterwards.
    pub found_after: u64,
}

/// Where people can be erased. Implementations pass [`super::contract::erase::check`].
#[async_trait]
pub trait EraseStore: Send + Sync {
    /// Destroys in one transaction the person's own skills with their revisions, answers, readings and the bytes that nothing
    /// else has, their bundles, what they hid, and every proposal that they made or that is for a skill of theirs. Leaves a
    /// line in the audit for each skill, without its name. Nothing of it stays readable in the file. What the team shares stays.
    async fn erase_person(&self, erasure: Erasure) -> Result<Erased, StoreFault>;
}
