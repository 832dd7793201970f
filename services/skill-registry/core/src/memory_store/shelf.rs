//! Bundles and proposals in memory.

use async_trait::async_trait;
use steward_base::names::{TeamId, UserId};

use super::{InMemorySkillStore, Inner};
use crate::bundle::{Bundle, BundleKey};
use crate::error::StoreFault;
use crate::proposals::{self, Proposal, ProposalState};
use crate::store::{BundleStore, CommitError, ProposalStore};

impl Inner {
    /// Whether the proposal is pending; then the decision is kept.
    pub(super) fn decide(&mut self, proposal: Proposal) -> bool {
        let key = (proposal.team.clone(), proposal.id.clone());
        match self.proposals.get_mut(&key) {
            Some(present) if present.state == ProposalState::Pending => {
                *present = proposal;
                true
            }
            _ => false,
        }
    }

    pub(super) fn is_pending(&self, proposal: &Proposal) -> bool {
        let present = self.proposals.get(&(proposal.team.clone(), proposal.id.clone()));
        present.is_some_and(|present| present.state == ProposalState::Pending)
    }
}

#[async_trait]
impl BundleStore for InMemorySkillStore {
    async fn bundle(&self, key: &BundleKey) -> Result<Option<Bundle>, StoreFault> {
        Ok(self.lock().bundles.get(key).cloned())
    }

    async fn bundles(&self, team: &TeamId, owner: Option<&UserId>) -> Result<Vec<Bundle>, StoreFault> {
        let inner = self.lock();
        let wanted = inner.bundles.values();
        let wanted = wanted.filter(|bundle| bundle.key.team == *team && bundle.key.owner.as_ref() == owner);
        Ok(wanted.cloned().collect())
    }

    async fn save_bundle(&self, bundle: Bundle) -> Result<(), CommitError> {
        let mut inner = self.lock();
        let present = inner.bundles.get(&bundle.key).map_or(0, |present| present.version);
        if present + 1 != bundle.version {
            return Err(CommitError::VersionMismatch);
        }
        inner.bundles.insert(bundle.key.clone(), bundle);
        Ok(())
    }

    async fn delete_bundle(&self, key: &BundleKey) -> Result<bool, StoreFault> {
        Ok(self.lock().bundles.remove(key).is_some())
    }
}

#[async_trait]
impl ProposalStore for InMemorySkillStore {
    async fn proposal(&self, team: &TeamId, id: &str) -> Result<Option<Proposal>, StoreFault> {
        Ok(self.lock().proposals.get(&(team.clone(), id.to_owned())).cloned())
    }

    async fn proposals(
        &self,
        team: &TeamId,
        author: Option<&UserId>,
        state: ProposalState,
        after: Option<&str>,
        limit: u32,
    ) -> Result<Vec<Proposal>, StoreFault> {
        let inner = self.lock();
        let mut found = inner
            .proposals
            .values()
            .filter(|proposal| proposal.team == *team && proposal.state == state)
            .filter(|proposal| author.is_none_or(|author| proposal.author == *author))
            .filter(|proposal| after.is_none_or(|after| proposals::place(proposal).as_str() > after))
            .cloned()
            .collect::<Vec<_>>();
        found.sort_by_key(proposals::place);
        found.truncate(limit as usize);
        Ok(found)
    }

    async fn add_proposal(&self, proposal: Proposal) -> Result<Option<Proposal>, StoreFault> {
        let mut inner = self.lock();
        let pending = inner.proposals.values().find(|other| {
            other.team == proposal.team && other.uid == proposal.uid && other.state == ProposalState::Pending
        });
        if let Some(pending) = pending {
            return Ok(Some(pending.clone()));
        }
        inner
            .proposals
            .insert((proposal.team.clone(), proposal.id.clone()), proposal);
        Ok(None)
    }

    async fn decide(&self, proposal: Proposal) -> Result<bool, StoreFault> {
        Ok(self.lock().decide(proposal))
    }
}
