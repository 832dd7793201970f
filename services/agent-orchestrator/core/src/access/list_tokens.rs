//! `ListTokens`: the records of tokens, never their text.

use steward_base::names::{TeamId, UserId};
use steward_base::{Caller, Role};

use super::model::Page;
use super::{Access, AccessToken, Error};

/// Whose tokens are listed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TokenList {
    /// One user's.
    User(TeamId, UserId),
    /// All of a team: as far as the caller may see them.
    Team(TeamId),
}

impl Access {
    /// Tokens, newest first, after a cursor. Members see their own, admins the team's.
    pub async fn list_tokens(
        &self,
        caller: &Caller,
        list: &TokenList,
        after: Option<&str>,
        limit: u32,
    ) -> Result<Page<AccessToken>, Error> {
        let is_admin = caller.role >= Role::Admin;
        let (team, user) = match list {
            TokenList::User(team, user) => {
                self.user_in_team_of(caller, team, user).await?;
                if caller.user.as_ref() != Some(user) && !is_admin {
                    return Err(Error::NotYourToken);
                }
                (team, Some(user))
            }
            TokenList::Team(team) => {
                super::own_team(caller, team)?;
                (team, if is_admin { None } else { caller.user.as_ref() })
            }
        };
        Ok(self.store.tokens(team, user, after, limit).await?)
    }
}
