//! `ListUsers`: the people of the caller's team.

use steward_base::Caller;
use steward_base::names::TeamId;

use super::model::Page;
use super::{Access, Error, User, own_team};

impl Access {
    /// Users by id, after a cursor.
    pub async fn list_users(
        &self,
        caller: &Caller,
        team: &TeamId,
        after: Option<&str>,
        limit: u32,
    ) -> Result<Page<User>, Error> {
        own_team(caller, team)?;
        Ok(self.store.users(team, after, limit).await?)
    }
}
