//! What waits for a person (`L-7`): how much, since when. Nothing in it is ever decided by silence.

use steward_base::names::TeamId;
use steward_base::{Caller, Timestamp};

use super::Memory;
use super::list_proposals::visible_to;
use crate::error::Error;
use crate::owner::Owner;

/// What waits for the caller.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Inbox {
    /// Proposals that the caller may decide or has made.
    pub proposals: usize,
    /// When the oldest of them was made.
    pub oldest: Option<Timestamp>,
    /// Entries of the caller's own stores, the team's notes and its projects' that no longer hold.
    pub stale: usize,
}

impl Memory {
    /// What waits for the caller in `team` now.
    pub async fn inbox(&self, caller: &Caller, team: &TeamId) -> Result<Inbox, Error> {
        if caller.team.as_ref() != Some(team) {
            return Err(Error::StoreNotFound {
                store: Owner::Team.name(team),
            });
        }
        let at = self.clock.now();
        let (proposals, oldest) = self.store.waiting(team, &visible_to(caller), at).await?;
        let stale = self.store.stale(team, caller.user.as_ref(), at).await?;
        Ok(Inbox {
            proposals,
            oldest,
            stale,
        })
    }
}
