//! Skills that a person or a team does not want to be offered (`S-5`). They stay where they are and open by name.

use crate::actor::Actor;
use crate::error::Error;
use crate::record::SkillRecord;
use crate::skills::{Skills, parse_name};

use steward_base::{FieldViolations, Role};

impl Skills {
    /// Hides a skill from the index of the actor's user, or `for_team` from everyone's, or shows it again.
    pub async fn hide_skill(
        &self,
        actor: &Actor,
        name: &str,
        hidden: bool,
        for_team: bool,
    ) -> Result<SkillRecord, Error> {
        let record = self.resolve_resource(actor, &parse_name("name", name)?).await?;
        if for_team && actor.role < Role::Maintainer {
            return Err(Error::RoleRequired {
                role: actor.role,
                required: Role::Maintainer,
            });
        }
        let user = match (&actor.user, for_team) {
            (_, true) => None,
            (Some(user), false) => Some(user),
            (None, false) => return Err(FieldViolations::one("for_team", "must be set: no person calls").into()),
        };
        self.store.set_hidden(&actor.team, user, &record.uid, hidden).await?;
        Ok(record)
    }
}
