//! `RevokeToken`: the end of a token, for good.

use steward_base::names::{TeamId, TokenId, UserId, user_name};
use steward_base::{Caller, Role};

use super::store::Written;
use super::{Access, AccessToken, Error};

impl Access {
    /// Revokes a token of the caller, or as an admin any of the team. What the caller may not see does not exist.
    pub async fn revoke_token(
        &self,
        caller: &Caller,
        team: &TeamId,
        user: &UserId,
        token: &TokenId,
    ) -> Result<AccessToken, Error> {
        let missing = || Error::TokenNotFound {
            token: format!("{}/tokens/{token}", user_name(team, user)),
        };
        let may_see =
            caller.team.as_ref() == Some(team) && (caller.user.as_ref() == Some(user) || caller.role >= Role::Admin);
        if !may_see {
            return Err(missing());
        }
        let record = self.store.token(team, token).await?.ok_or_else(missing)?;
        if record.user != *user {
            return Err(missing());
        }
        match self.store.revoke_token(team, token, self.clock.now()).await? {
            Written::Done(token) => Ok(token),
            Written::Missing | Written::Exists | Written::LastAdmin | Written::RequestReused => Err(missing()),
        }
    }
}
