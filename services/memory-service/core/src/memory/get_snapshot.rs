//! What a new session of a person is shown (`M-8`, `M-10`).

use std::collections::BTreeSet;

use steward_base::Caller;
use steward_base::names::{TeamId, UserId};

use super::Memory;
use crate::access::{self, Act};
use crate::error::Error;
use crate::owner::{Owner, StoreName, Target};
use crate::snapshot::{Present, Snapshot, render, stores};

impl Memory {
    /// Renders the team's notes, the project's if one is named, and the person's notes and profile, in one consistent
    /// view, without what no longer holds; `failed_checks` are those that failed in the session's own workspace.
    pub async fn get_snapshot(
        &self,
        caller: &Caller,
        team: &TeamId,
        user: &UserId,
        project: Option<&Owner>,
        failed_checks: BTreeSet<String>,
    ) -> Result<Snapshot, Error> {
        let person = StoreName {
            team: team.clone(),
            owner: Owner::Person(user.clone()),
            target: Target::Notes,
        };
        access::check(caller, &person, Act::Read)?;
        let stores = stores(&person, project);
        let books = self.store.books(&stores).await?;
        let present = Present {
            at: self.clock.now(),
            failed_checks,
        };
        Ok(render(stores.iter().zip(&books), &present))
    }
}
