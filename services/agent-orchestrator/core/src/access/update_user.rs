//! `UpdateUser`: another role, or the end (or return) of access.
//!
//! A role is part of what a token says. Tokens of a user whose role falls are therefore revoked with the change, in one
//! transaction; a role that rises needs new tokens, since the old ones go on saying the lower one.

use steward_base::names::{TeamId, UserId};
use steward_base::{Caller, Role};

use super::store::{UserUpdate, Written};
use super::{Access, Error, User};

/// What changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UserChange {
    /// New role; `None` leaves it.
    pub role: Option<Role>,
    /// Whether the user is disabled; `None` leaves it.
    pub disabled: Option<bool>,
}

impl Access {
    /// Changes a user of the caller's team.
    pub async fn update_user(
        &self,
        caller: &Caller,
        team: &TeamId,
        user: &UserId,
        change: UserChange,
    ) -> Result<User, Error> {
        let missing = || Error::UserNotFound {
            team: team.clone(),
            user: user.clone(),
        };
        if caller.team.as_ref() != Some(team) {
            return Err(missing());
        }
        if change.role.is_none() && change.disabled.is_none() {
            return Err(Error::field("role", "must be given, or disabled must"));
        }
        let update = UserUpdate {
            role: change.role,
            disabled: change.disabled,
            now: self.clock.now(),
        };
        match self.store.update_user(team, user, update).await? {
            Written::Done(user) => Ok(user),
            Written::LastAdmin => Err(Error::LastAdmin { team: team.clone() }),
            Written::Missing | Written::Exists | Written::RequestReused => Err(missing()),
        }
    }
}
