//! Bundles and proposals in memory.

use async_trait::async_trait;
use steward_base::names::{TeamId, UserId};
use steward_base::{JobRef, Timestamp};

use super::{InMemorySkillStore, Inner};
use crate::bundle::{Bundle, BundleKey};
use crate::error::StoreFault;
use crate::proposals::{self, Proposal, ProposalState, Seen};
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
        seen: &Seen,
        (state, at): (ProposalState, Timestamp),
        after: Option<&str>,
        limit: u32,
    ) -> Result<Vec<Proposal>, StoreFault> {
        let inner = self.lock();
        let mut found = inner
            .proposals
            .values()
            .filter(|proposal| proposal.team == *team && proposal.state_at(at) == state && seen.has(proposal))
            .filter(|proposal| after.is_none_or(|after| proposals::place(proposal).as_str() > after))
            .cloned()
            .collect::<Vec<_>>();
        found.sort_by_key(proposals::place);
        found.truncate(limit as usize);
        Ok(found)
    }

    async fn waiting(
        &self,
        team: &TeamId,
        seen: &Seen,
        at: Timestamp,
    ) -> Result<(usize, Option<Timestamp>), StoreFault> {
        let inner = self.lock();
        let waiting = inner.proposals.values().filter(|proposal| {
            proposal.team == *team && proposal.state_at(at) == ProposalState::Pending && seen.has(proposal)
        });
        let made = waiting.map(|proposal| proposal.created).collect::<Vec<_>>();
        Ok((made.len(), made.into_iter().min()))
    }

    async fn rejected(
        &self,
        team: &TeamId,
        fingerprint: &str,
        since: Timestamp,
    ) -> Result<Option<Proposal>, StoreFault> {
        let inner = self.lock();
        let decided = |proposal: &Proposal| proposal.decision.as_ref().map(|decision| decision.at);
        let rejected = inner.proposals.values().filter(|proposal| {
            let print = proposal.staged.as_ref().map(|staged| staged.fingerprint.as_str());
            proposal.team == *team
                && proposal.state == ProposalState::Rejected
                && print == Some(fingerprint)
                && decided(proposal) > Some(since)
        });
        Ok(rejected.max_by_key(|proposal| decided(proposal)).cloned())
    }

    async fn add_proposal(&self, proposal: Proposal, fence: Option<JobRef>) -> Result<Option<Proposal>, CommitError> {
        let mut inner = self.lock();
        if let Some(job) = fence {
            inner.check_fence(&proposal.team, &job)?;
            inner.fences.insert((proposal.team.clone(), job.id), job.fence);
        }
        let (slot, at) = (proposal.slot(), proposal.created);
        let present = inner
            .proposals
            .values_mut()
            .find(|other| other.team == proposal.team && other.slot() == slot && other.state == ProposalState::Pending);
        match present {
            Some(pending) if pending.state_at(at) == ProposalState::Pending => return Ok(Some(pending.clone())),
            Some(expired) => expired.state = ProposalState::Expired,
            None => {}
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
