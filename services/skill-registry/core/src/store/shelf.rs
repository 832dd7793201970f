//! The ports to what stands beside skills: bundles, and proposals for the team's library.

use async_trait::async_trait;
use steward_base::names::{TeamId, UserId};
use steward_base::{JobRef, Timestamp};

use super::CommitError;
use crate::bundle::{Bundle, BundleKey};
use crate::error::StoreFault;
use crate::proposals::{Proposal, ProposalState, Seen};

/// Where bundles are kept. Implementations pass [`super::contract::shelf::check`].
#[async_trait]
pub trait BundleStore: Send + Sync {
    /// One bundle.
    async fn bundle(&self, key: &BundleKey) -> Result<Option<Bundle>, StoreFault>;

    /// The bundles of a person, or with none the team's, by slug.
    async fn bundles(&self, team: &TeamId, owner: Option<&UserId>) -> Result<Vec<Bundle>, StoreFault>;

    /// Keeps a bundle if the present one has the version before its own, or if there is none and it is the first.
    async fn save_bundle(&self, bundle: Bundle) -> Result<(), CommitError>;

    /// Deletes a bundle; whether there was one.
    async fn delete_bundle(&self, key: &BundleKey) -> Result<bool, StoreFault>;
}

/// Where proposals are kept. Implementations pass [`super::contract::shelf::check`].
#[async_trait]
pub trait ProposalStore: Send + Sync {
    /// One proposal.
    async fn proposal(&self, team: &TeamId, id: &str) -> Result<Option<Proposal>, StoreFault>;

    /// Proposals that are in this state at this time, of those who are seen, oldest first, behind the place `after`
    /// ([`crate::proposals::place`]), at most `limit`.
    async fn proposals(
        &self,
        team: &TeamId,
        seen: &Seen,
        state: (ProposalState, Timestamp),
        after: Option<&str>,
        limit: u32,
    ) -> Result<Vec<Proposal>, StoreFault>;

    /// How many of those who are seen are pending at `at`, and when the oldest was made.
    async fn waiting(
        &self,
        team: &TeamId,
        seen: &Seen,
        at: Timestamp,
    ) -> Result<(usize, Option<Timestamp>), StoreFault>;

    /// The newest rejection of this write since `since`.
    async fn rejected(
        &self,
        team: &TeamId,
        fingerprint: &str,
        since: Timestamp,
    ) -> Result<Option<Proposal>, StoreFault>;

    /// Keeps a new proposal under the claim that makes it, unless one of the same slot ([`Proposal::slot`]) is pending at the
    /// time of its making: then that one is the answer. One that has expired by then gives way, and is expired for good.
    async fn add_proposal(&self, proposal: Proposal, fence: Option<JobRef>) -> Result<Option<Proposal>, CommitError>;

    /// Keeps a decision if the proposal is pending; whether it was.
    async fn decide(&self, proposal: Proposal) -> Result<bool, StoreFault>;
}
