//! Proposals that the caller may decide or has made, a page of them or one (`L-7`, `M-13`).

use steward_base::names::TeamId;
use steward_base::{Caller, Role};

use super::Memory;
use crate::error::Error;
use crate::owner::Owner;
use crate::proposal::{Proposal, ProposalId, State, proposal_name};
use crate::store::{Listed, ProposalQuery, Visible};

impl Memory {
    /// At most `size` proposals of a team in `state`, oldest first, those after the id `after`.
    pub async fn list_proposals(
        &self,
        caller: &Caller,
        team: &TeamId,
        state: State,
        after: Option<String>,
        size: u32,
    ) -> Result<Vec<Listed>, Error> {
        if caller.team.as_ref() != Some(team) {
            return Err(Error::StoreNotFound {
                store: Owner::Team.name(team),
            });
        }
        let visible = visible_to(caller);
        self.store
            .proposals(&ProposalQuery {
                team: team.clone(),
                state,
                visible,
                after,
                at: self.clock.now(),
                limit: size,
            })
            .await
    }
}

impl Memory {
    /// One proposal, whatever became of it. One that the caller may not see answers like one that does not exist.
    pub async fn get_proposal(&self, caller: &Caller, team: &TeamId, id: &ProposalId) -> Result<Proposal, Error> {
        let found = if caller.team.as_ref() == Some(team) {
            self.store.proposal(team, id).await?
        } else {
            None
        };
        found
            .filter(|proposal| visible_to(caller).includes(proposal))
            .ok_or_else(|| Error::ProposalNotFound {
                proposal: proposal_name(team, id),
            })
    }
}

/// What `caller` may see of the team's proposals.
pub(super) fn visible_to(caller: &Caller) -> Visible {
    Visible {
        user: caller.user.clone(),
        shared: caller.role >= Role::Maintainer,
    }
}
