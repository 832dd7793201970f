//! `CreateTeam`: a new tenant together with its first admin.

use steward_base::names::{TeamId, UserId};
use steward_base::{Caller, FieldViolations, Role};

use super::model::{RequestKey, check_label};
use super::store::Written;
use super::{Access, Error, Team, User};

/// A team to be created.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewTeam {
    /// Id of the team.
    pub team: TeamId,
    /// Name for people; may be empty.
    pub display_name: String,
    /// Id of its first user, who becomes its admin.
    pub admin: UserId,
    /// Makes a retry safe; empty: it is not.
    pub request_id: String,
}

impl Access {
    /// Creates a team; only an admin of the home team may. Atomic.
    pub async fn create_team(&self, caller: &Caller, new: NewTeam) -> Result<(Team, User), Error> {
        let mut violations = FieldViolations::new();
        check_label("display_name", &new.display_name, &mut violations);
        let content = [new.team.as_str(), &new.display_name, new.admin.as_str()];
        let scope_team = caller.team.clone().unwrap_or_else(|| new.team.clone());
        let request = RequestKey::new(&scope_team, "CreateTeam", &new.request_id, &content, &mut violations);
        violations.into_result()?;
        if !self.is_home_admin(caller).await? {
            return Err(Error::HomeTeamRequired);
        }
        let now = self.clock.now();
        let team = Team {
            id: new.team.clone(),
            display_name: new.display_name,
            created: now,
        };
        let admin = User {
            team: new.team.clone(),
            id: new.admin,
            display_name: String::new(),
            role: Role::Admin,
            disabled: false,
            created: now,
        };
        match self.store.create_team(&team, &admin, false, request.as_ref()).await? {
            Written::Done(created) => Ok(created),
            Written::Exists | Written::Missing | Written::LastAdmin => Err(Error::TeamExists { team: new.team }),
            Written::RequestReused => Err(Error::request_id_reused(&new.request_id)),
        }
    }
}
