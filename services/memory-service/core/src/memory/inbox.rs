//! What waits for a person (`L-7`): how much, since when. Nothing in it is ever decided by silence.

use steward_base::names::TeamId;
use steward_base::{Caller, Timestamp};

use super::Memory;
use super::list_proposals::visible_to;
use crate::error::Error;
use crate::owner::{Owner, StoreName, Target};

/// What waits for the caller.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Inbox {
    /// Proposals that the caller may decide or has made.
    pub proposals: usize,
    /// When the oldest of them was made.
    pub oldest: Option<Timestamp>,
    /// Entries of the caller's own stores and the team's notes that no longer hold.
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
        let of = |owner: Owner, target| StoreName {
            team: team.clone(),
            owner,
            target,
        };
        let mut stores = vec![of(Owner::Team, Target::Notes)];
        if let Some(user) = &caller.user {
            stores.push(of(Owner::Person(user.clone()), Target::Notes));
            stores.push(of(Owner::Person(user.clone()), Target::Profile));
        }
        let books = self.store.books(&stores).await?;
        let entries = books.iter().flat_map(|book| &book.entries);
        Ok(Inbox {
            proposals,
            oldest,
            stale: entries.filter(|entry| entry.stale(at).is_some()).count(),
        })
    }
}
