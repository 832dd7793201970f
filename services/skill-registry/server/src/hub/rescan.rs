//! When the rules of the scanner change, what is installed is judged by the new ones, once per team (`H-6`).
//!
//! What comes out worse goes into the log and into this service's; nothing is taken away, since that is a person's decision.

use std::sync::Arc;
use std::time::Duration;

use steward_base::Role;
use steward_runtime::reconcile::{Every, Reconciler, Report};
use steward_runtime::tasks::BoxError;
use steward_skill_hub::error::Error;
use steward_skill_hub::hub::Actor;
use steward_skill_hub::quarantine::POLICY;

use super::Hubs;
use crate::sqlite::{HubFailure, SqliteSkillStore};

/// Looks for teams whose skills were let in by other rules.
#[derive(Debug, Clone)]
pub(crate) struct Rescan {
    hubs: Hubs,
    store: SqliteSkillStore,
    rule_set: Arc<str>,
}

impl Rescan {
    pub(super) const fn new(hubs: Hubs, store: SqliteSkillStore, rule_set: Arc<str>) -> Self {
        Self { hubs, store, rule_set }
    }

    /// Rules come with the program, so that the first look after a start is the one that matters; later ones find what
    /// failed then.
    pub(crate) fn every() -> Every {
        Every::new(Duration::from_hours(1))
    }

    /// How many skills came out worse.
    async fn team(&self, team: &str) -> Result<usize, Error> {
        let actor = Actor {
            team,
            user: POLICY,
            role: Role::Viewer,
        };
        let hub = self.hubs.of(team);
        let mut worse = 0;
        for rescanned in hub.rescan(actor).await? {
            if rescanned.is_worse() {
                worse += 1;
                let (was, is) = (rescanned.lock.verdict.as_str(), rescanned.report.verdict.as_str());
                tracing::warn!(
                    team,
                    skill.name = rescanned.lock.name,
                    was,
                    is,
                    "an installed skill is worse by today's rules"
                );
            }
        }
        Ok(worse)
    }
}

fn failed(failure: HubFailure) -> BoxError {
    steward_skill_hub::error::StoreError::from(failure).into()
}

impl Reconciler for Rescan {
    fn name(&self) -> &'static str {
        "skills/hub-rescan"
    }

    async fn tick(&self) -> Result<Report, BoxError> {
        let mut items = 0;
        let teams = self.store.hub_teams_to_rescan(&self.rule_set).await.map_err(failed)?;
        for team in teams {
            self.team(&team).await?;
            let done = self.store.hub_rescanned(team, self.rule_set.to_string());
            done.await.map_err(failed)?;
            items += 1;
        }
        Ok(Report { items, more: false })
    }
}
