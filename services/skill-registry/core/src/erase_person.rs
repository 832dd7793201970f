//! What the library holds of one person alone, destroyed for good (`M-14`): an act of that person's own hand, or of an admin,
//! who sees nothing of it.

use steward_base::names::{TeamId, UserId};
use steward_base::{Caller, Identity, Role};

use crate::actor::Actor;
use crate::error::Error;
use crate::skills::Skills;
use crate::store::{Erased, Erasure};

impl Skills {
    /// Destroys the person's own skills, bundles, marks and writes. To anybody else, and to an agent whoever it acts for,
    /// there is no such library.
    pub async fn erase_person(&self, caller: &Caller, team: &TeamId, user: &UserId) -> Result<Erased, Error> {
        let actor = Actor::new(caller)?;
        let by_hand = matches!(caller.identity, Identity::User);
        let permitted = actor.user.as_ref() == Some(user) || actor.role >= Role::Admin;
        if !by_hand || actor.team != *team || !permitted {
            return Err(Error::SkillNotFound {
                skill: format!("of teams/{team}/users/{user}"),
            });
        }
        let erasure = Erasure {
            team: team.clone(),
            user: user.clone(),
            by: actor.audit_name(),
            at: self.clock.now(),
        };
        Ok(self.store.erase_person(erasure).await?)
    }
}
