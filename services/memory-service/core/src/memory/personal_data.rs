//! All that memory holds on a person, given or erased (`M-14`).

use steward_base::names::{TeamId, UserId};
use steward_base::{Caller, Identity, Role};

use super::Memory;
use crate::error::Error;
use crate::owner::{Owner, StoreName, Target};
use crate::personal::{Holding, Receipt};

impl Memory {
    /// All that is held on a person, for that person alone.
    pub async fn export_user(&self, caller: &Caller, team: &TeamId, user: &UserId) -> Result<Vec<Holding>, Error> {
        let owner = Owner::Person(user.clone());
        crate::access::check(
            caller,
            &StoreName {
                team: team.clone(),
                owner,
                target: Target::Notes,
            },
            crate::access::Act::Read,
        )?;
        self.store.personal(team, user).await
    }

    /// Erases what is held on a person: for that person, and for an admin, who cannot read it. With `shared`, entries of
    /// shared stores that rest on the person's words alone go as well; all that rest on them are in the receipt.
    pub async fn erase_user(
        &self,
        caller: &Caller,
        team: &TeamId,
        user: &UserId,
        shared: bool,
    ) -> Result<Receipt, Error> {
        let is_own = caller.user.as_ref() == Some(user);
        let may = is_own || caller.role >= Role::Admin;
        if caller.team.as_ref() != Some(team) || !may {
            return Err(Error::StoreNotFound {
                store: Owner::Person(user.clone()).name(team),
            });
        }
        // Neither the agent nor a job ever destroys anything.
        if caller.origin.is_automatic() || !matches!(caller.identity, Identity::User) {
            return Err(Error::AutomaticDecision);
        }
        self.store.erase(team, user, shared, self.clock.now()).await
    }
}
