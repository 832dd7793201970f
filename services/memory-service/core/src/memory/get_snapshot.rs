//! What a new session of a person is shown (`M-8`, `M-10`).

use steward_base::Caller;
use steward_base::names::{TeamId, UserId};

use super::Memory;
use crate::access::{self, Act};
use crate::error::Error;
use crate::owner::{Owner, StoreName, Target};
use crate::snapshot::{Snapshot, render, stores};

impl Memory {
    /// Renders the team's notes, the project's if one is named, and the person's notes and profile, in one consistent
    /// view.
    pub async fn get_snapshot(
        &self,
        caller: &Caller,
        team: &TeamId,
        user: &UserId,
        project: Option<&Owner>,
    ) -> Result<Snapshot, Error> {
        let person = StoreName {
            team: team.clone(),
            owner: Owner::Person(user.clone()),
            target: Target::Notes,
        };
        access::check(caller, &person, Act::Read)?;
        let stores = stores(&person, project);
        let books = self.store.books(&stores).await?;
        Ok(render(stores.iter().zip(&books)))
    }
}
