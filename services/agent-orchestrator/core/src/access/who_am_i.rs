//! `WhoAmI`: what the caller's credential proves.

use steward_base::names::{TeamId, UserId};
use steward_base::{Caller, Role};

use super::{Access, Error};

/// Who the caller is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WhoAmI {
    /// Team.
    pub team: TeamId,
    /// User.
    pub user: UserId,
    /// Role that the credential carries.
    pub role: Role,
    /// Whether the team is the installation's home team.
    pub home_team: bool,
}

impl Access {
    /// Says who calls.
    pub async fn who_am_i(&self, caller: &Caller) -> Result<WhoAmI, Error> {
        let (Some(team), Some(user)) = (caller.team.clone(), caller.user.clone()) else {
            return Err(Error::field("authorization", "must be the credential of a person"));
        };
        let home_team = self.home_team().await?.as_ref() == Some(&team);
        Ok(WhoAmI {
            team,
            user,
            role: caller.role,
            home_team,
        })
    }
}
