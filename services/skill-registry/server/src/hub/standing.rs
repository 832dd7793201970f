//! Asks sources and advisories, again and again, whether they withdrew what teams have installed or hold in quarantine. What
//! is yanked stays with a warning; what an advisory revokes is out of agents' sight at once.

use steward_base::Role;
use steward_runtime::reconcile::{Reconciler, Report};
use steward_runtime::tasks::BoxError;
use steward_skill_hub::error::Error;
use steward_skill_hub::hub::Actor;
use steward_skill_hub::quarantine::POLICY;

use super::Hubs;
use crate::sqlite::SqliteSkillStore;

/// Looks at what all teams have.
#[derive(Debug, Clone)]
pub(crate) struct Standings {
    hubs: Hubs,
    store: SqliteSkillStore,
}

impl Standings {
    pub(super) const fn new(hubs: Hubs, store: SqliteSkillStore) -> Self {
        Self { hubs, store }
    }

    /// How many skills changed their standing.
    async fn team(&self, team: &str) -> Result<u64, Error> {
        let actor = Actor {
            team,
            user: POLICY,
            role: Role::Viewer,
        };
        let mut changed = 0;
        for checked in self.hubs.of(team).check(actor).await? {
            if let Some(problem) = &checked.problem {
                tracing::debug!(team, skill.name = checked.lock.name, problem, "a source was not heard");
            }
            if !checked.changed {
                continue;
            }
            changed += 1;
            let standing = checked
                .withdrawal
                .as_ref()
                .map_or("offered again", |now| now.standing.as_str());
            tracing::warn!(
                team,
                skill.name = checked.lock.name,
                standing,
                "an installed skill changed its standing"
            );
        }
        Ok(changed)
    }
}

impl Reconciler for Standings {
    fn name(&self) -> &'static str {
        "skills/hub-standing"
    }

    async fn tick(&self) -> Result<Report, BoxError> {
        let teams = self.store.hub_teams().await;
        let teams = teams.map_err(|failure| BoxError::from(steward_skill_hub::error::StoreError::from(failure)))?;
        let (mut items, mut failed) = (0, None);
        for team in teams {
            // One team's trouble is not another's.
            match self.team(&team).await {
                Ok(changed) => items += changed,
                Err(error) => failed = Some(error),
            }
        }
        match failed {
            Some(error) => Err(error.into()),
            None => Ok(Report { items, more: false }),
        }
    }
}
