//! Teams, users, roles and tokens, and the only signer of credentials (`A-1`, `A-2`).
//!
//! One file per operation, named like its RPC. A token's text is returned once and stored nowhere; what is stored is its
//! id, so that it can be listed and revoked. The signature itself is made behind the port [`Signer`]: this crate knows
//! what a credential says, not how it is written.

pub mod contract;
mod create_team;
mod create_token;
mod create_user;
mod error;
mod exchange_job_token;
mod first_start;
mod list_revocations;
mod list_teams;
mod list_tokens;
mod list_users;
mod memory_store;
mod model;
mod revoke_token;
mod sign;
mod store;
#[cfg(test)]
mod tests;
mod update_user;
mod who_am_i;

use std::fmt;
use std::sync::{Arc, OnceLock};

use steward_base::names::{TeamId, UserId};
use steward_base::{Caller, Clock, IdGen, Role};

pub use create_team::NewTeam;
pub use create_token::{IssuedToken, NewToken};
pub use create_user::NewUser;
pub use error::Error;
pub use exchange_job_token::{JobToken, JobTokenRequest, KNOWN_CAPABILITIES};
pub use first_start::{HOME_TEAM, OWNER, RENEW_BEFORE, WORKER_SERVICE};
pub use list_tokens::TokenList;
pub use memory_store::InMemoryAccessStore;
pub use model::{AccessToken, Page, RequestKey, Revocation, Revoked, Team, User};
pub use sign::{Claims, Credential, Signer, SigningError, Subject};
pub use store::{AccessStore, StoreFailure, UserUpdate, Written};
pub use update_user::UserChange;
pub use who_am_i::WhoAmI;

/// The operations on teams, users and tokens. Cheap to clone.
#[derive(Clone)]
pub struct Access {
    store: Arc<dyn AccessStore>,
    signer: Arc<dyn Signer>,
    clock: Arc<dyn Clock>,
    ids: Arc<dyn IdGen>,
    /// The home team once it is known: it is made once and stays the one that it is.
    home: Arc<OnceLock<TeamId>>,
}

impl fmt::Debug for Access {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Access").finish_non_exhaustive()
    }
}

impl Access {
    /// Over a store and a signer.
    pub fn new(
        store: Arc<dyn AccessStore>,
        signer: Arc<dyn Signer>,
        clock: Arc<dyn Clock>,
        ids: Arc<dyn IdGen>,
    ) -> Self {
        Self {
            store,
            signer,
            clock,
            ids,
            home: Arc::default(),
        }
    }

    /// The installation's home team; `None` before the first start.
    async fn home_team(&self) -> Result<Option<TeamId>, Error> {
        if let Some(home) = self.home.get() {
            return Ok(Some(home.clone()));
        }
        let found = self.store.home_team().await?;
        Ok(found.map(|found| self.home.get_or_init(|| found).clone()))
    }

    /// Whether `caller` administers the installation: an admin of its home team.
    async fn is_home_admin(&self, caller: &Caller) -> Result<bool, Error> {
        let home = self.home_team().await?;
        Ok(caller.role >= Role::Admin && home.is_some() && caller.team == home)
    }

    /// The user, if it exists in the caller's team; else the answer that hides whether it does.
    async fn user_in_team_of(&self, caller: &Caller, team: &TeamId, user: &UserId) -> Result<User, Error> {
        let missing = || Error::UserNotFound {
            team: team.clone(),
            user: user.clone(),
        };
        if caller.team.as_ref() != Some(team) {
            return Err(missing());
        }
        self.store.user(team, user).await?.ok_or_else(missing)
    }
}

/// A team's name as the caller may see it: its own, or one that does not exist for it.
fn own_team(caller: &Caller, team: &TeamId) -> Result<(), Error> {
    if caller.team.as_ref() == Some(team) {
        Ok(())
    } else {
        Err(Error::TeamNotFound { team: team.clone() })
    }
}
