//! The index of an actor's skills for the system prompt.

use std::sync::Arc;

use crate::actor::Actor;
use crate::error::Error;
use crate::index::{self, Filter, Index};
use crate::listing::IndexKey;
use crate::skills::Skills;

impl Skills {
    /// Renders it, or gives back what was rendered when nothing that it shows has changed since (`S-4`). Broken skills are
    /// left out and hide nothing; `list_skills` names them.
    pub async fn get_index(&self, actor: &Actor, filter: &Filter) -> Result<Arc<Index>, Error> {
        self.seed(&actor.team).await?;
        // Read first: what changes while the skills are read makes the next call look again.
        let generation = self.store.generation(&actor.team).await?;
        let key = IndexKey {
            team: actor.team.clone(),
            user: actor.user.clone(),
            filter: filter.clone(),
        };
        if let Some(index) = self.indexes.get(&key, generation) {
            return Ok(index);
        }
        let found = self.store.list(&actor.team, &actor.scopes(), false).await?;
        let hidden = self.store.hidden(&actor.team, actor.user.as_ref()).await?;
        let skills = found
            .into_iter()
            .filter_map(Result::ok)
            .filter(|skill| !hidden.contains(&skill.uid))
            .collect::<Vec<_>>();
        let index = Arc::new(index::render_with(
            &skills,
            filter,
            &self.settings.compact_categories,
            &|description| self.indexes.described(description),
        ));
        self.indexes.put(key, generation, Arc::clone(&index));
        Ok(index)
    }
}
