//! The index of an actor's skills for the system prompt.

use crate::actor::Actor;
use crate::error::Error;
use crate::index::{self, Filter, Index};
use crate::skills::Skills;

impl Skills {
    /// Renders it. Broken skills are left out and hide nothing; `list_skills` names them.
    pub async fn get_index(&self, actor: &Actor, filter: &Filter) -> Result<Index, Error> {
        self.seed_builtins(&actor.team).await?;
        let found = self.store.list(&actor.team, &actor.scopes(), false).await?;
        let skills = found.into_iter().filter_map(Result::ok).collect::<Vec<_>>();
        Ok(index::render(&skills, filter))
    }
}
