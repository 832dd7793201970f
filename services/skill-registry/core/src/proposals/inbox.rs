//! What waits, for whom: a list, and a count for whoever is shown that something does (`L-7`).

use steward_base::names::UserId;
use steward_base::{Role, Timestamp, page};

use super::{Proposal, ProposalState, place};
use crate::actor::Actor;
use crate::error::Error;
use crate::skills::Skills;

const DEFAULT_PAGE: u32 = 50;
const MAX_PAGE: u32 = 200;

/// Whose proposals somebody sees.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Seen {
    /// Those made by this person or on their behalf.
    pub user: Option<UserId>,
    /// Whether those for the team's library too.
    pub team: bool,
}

impl Seen {
    /// Of the actor: their own, and a maintainer's also all for the team's library.
    pub fn of(actor: &Actor) -> Self {
        Self {
            user: actor.user.clone(),
            team: actor.role >= Role::Maintainer,
        }
    }

    /// Whether this proposal is among them.
    pub fn has(&self, proposal: &Proposal) -> bool {
        let is_own = self.user.is_some() && self.user == proposal.author;
        is_own || self.team && !proposal.is_private()
    }
}

/// What waits for the caller.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Inbox {
    /// Proposals that the caller may decide or has made.
    pub proposals: usize,
    /// When the oldest of them was made.
    pub oldest: Option<Timestamp>,
}

impl Skills {
    /// What waits for the caller now.
    pub async fn inbox(&self, actor: &Actor) -> Result<Inbox, Error> {
        let now = self.clock.now();
        let (proposals, oldest) = self.store.waiting(&actor.team, &Seen::of(actor), now).await?;
        Ok(Inbox { proposals, oldest })
    }

    /// A page of proposals, oldest first, and the token of the next one.
    pub async fn list_proposals(
        &self,
        actor: &Actor,
        state: ProposalState,
        page_size: i32,
        page_token: &str,
    ) -> Result<(Vec<Proposal>, String), Error> {
        let size = page::size(page_size, DEFAULT_PAGE, MAX_PAGE)?;
        let bound = [actor.team.as_str(), state.as_str()];
        let after = page::decode(&bound, page_token)?;
        let now = self.clock.now();
        let mut found = self
            .store
            .proposals(&actor.team, &Seen::of(actor), (state, now), after.as_deref(), size + 1)
            .await?;
        let size = usize::try_from(size).unwrap_or(usize::MAX);
        let more = found.len() > size;
        found.truncate(size);
        for proposal in &mut found {
            proposal.state = state;
        }
        let last = found.last().filter(|_| more);
        let token = last.map_or_else(String::new, |last| page::encode(&bound, &place(last)));
        Ok((found, token))
    }
}
