//! `CreateUser`: a new person in the caller's team.

use steward_base::names::{TeamId, UserId};
use steward_base::{Caller, FieldViolations, Role};

use super::model::{RequestKey, check_label};
use super::store::Written;
use super::{Access, Error, User, own_team};

/// A user to be created.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewUser {
    /// Team.
    pub team: TeamId,
    /// Id in the team.
    pub user: UserId,
    /// Name for people; may be empty.
    pub display_name: String,
    /// Role.
    pub role: Role,
    /// Makes a retry safe; empty: it is not.
    pub request_id: String,
}

impl Access {
    /// Creates a user.
    pub async fn create_user(&self, caller: &Caller, new: NewUser) -> Result<User, Error> {
        own_team(caller, &new.team)?;
        let mut violations = FieldViolations::new();
        check_label("user.display_name", &new.display_name, &mut violations);
        let role = format!("{:?}", new.role);
        let content = [new.team.as_str(), new.user.as_str(), &new.display_name, &role];
        let request = RequestKey::new(&new.team, "CreateUser", &new.request_id, &content, &mut violations);
        violations.into_result()?;
        let user = User {
            team: new.team.clone(),
            id: new.user.clone(),
            display_name: new.display_name,
            role: new.role,
            disabled: false,
            created: self.clock.now(),
        };
        match self.store.create_user(&user, request.as_ref()).await? {
            Written::Done(user) => Ok(user),
            Written::Missing | Written::LastAdmin => Err(Error::TeamNotFound { team: new.team }),
            Written::Exists => Err(Error::UserExists {
                team: new.team,
                user: new.user,
            }),
            Written::RequestReused => Err(Error::request_id_reused(&new.request_id)),
        }
    }
}
