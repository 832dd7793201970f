//! `ListTeams`: all of them for an admin of the home team, else the caller's own.

use steward_base::Caller;

use super::model::Page;
use super::{Access, Error, Team};

impl Access {
    /// Teams by id, after a cursor.
    pub async fn list_teams(&self, caller: &Caller, after: Option<&str>, limit: u32) -> Result<Page<Team>, Error> {
        if self.is_home_admin(caller).await? {
            return Ok(self.store.teams(after, limit).await?);
        }
        let own = match &caller.team {
            Some(team) if after.is_none() => self.store.team(team).await?,
            _ => None,
        };
        Ok(Page {
            items: own.into_iter().collect(),
            next: None,
        })
    }
}
