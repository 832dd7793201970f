//! Updates: what the recorded source has now, what that would change, and fetching it. No other source is ever asked
//! (`D-18`).

use std::sync::Arc;

use steward_base::Timestamp;
use steward_skill_provenance::Provenance;
use steward_skill_scanner::structure::Problem;
use steward_skill_scanner::{Change, Report, Tree};

use super::{Actor, Hub, Progress, quietly};
use crate::error::Error;
use crate::lock::{Drift, Lock};
use crate::quarantine::Item;
use crate::source::{Resolved, Source, SourceError};
use crate::store::Installed;

/// What an update would do to one installed skill.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Plan {
    /// The source has nothing newer.
    Current,
    /// A newer revision is there.
    Available {
        /// The revision.
        revision: String,
    },
    /// A newer revision is there and too young to be taken without a person's word.
    Cooling {
        /// The revision.
        revision: String,
        /// When it is old enough.
        until: Timestamp,
    },
    /// The skill was changed here; an update would lose that.
    LocalChanges {
        /// How.
        drift: Drift,
    },
    /// The source no longer has it; the copy here stays.
    GoneUpstream,
    /// The source is switched off or does not answer; nothing is changed and no other source is asked.
    SourceUnavailable {
        /// Why.
        problem: String,
    },
    /// It belongs to someone else at its source now.
    OwnerChanged {
        /// The revision.
        revision: String,
    },
}

impl Plan {
    /// The revision that an update would bring; nothing if it would bring none.
    pub fn revision(&self) -> Option<&str> {
        match self {
            Self::Available { revision } | Self::Cooling { revision, .. } | Self::OwnerChanged { revision } => {
                Some(revision)
            }
            Self::Current | Self::LocalChanges { .. } | Self::GoneUpstream | Self::SourceUnavailable { .. } => None,
        }
    }
}

/// A plan, and what a newer revision would change. Nothing of it is kept.
#[derive(Debug, Clone)]
pub struct Preview {
    /// What an update would do.
    pub plan: Plan,
    /// What is installed, as it was approved.
    pub lock: Lock,
    /// The newer revision, if there is one and it could be fetched.
    pub next: Option<Next>,
}

/// A newer revision, looked at.
#[derive(Debug, Clone)]
pub struct Next {
    /// Its revision.
    pub revision: String,
    /// The files that were installed.
    pub before: Tree,
    /// Its files.
    pub after: Tree,
    /// Why it could not be installed at all.
    pub problems: Vec<Problem>,
    /// Its scan, unless it has problems.
    pub report: Option<Report>,
    /// Who signed it.
    pub provenance: Provenance,
    /// What it brings on top of what is installed.
    pub change: Option<Change>,
}

/// What a source says of an installed skill.
enum Upstream<'h> {
    Plan(Plan),
    Has(&'h Arc<dyn Source>, Resolved),
}

impl Hub {
    /// What an update of one skill would do. Only the source that it came from is asked.
    pub async fn plan(&self, team: &str, name: &str) -> Result<Plan, Error> {
        let lock = self.installed(team, name).await?.lock;
        if let Some(plan) = self.local_plan(team, &lock).await? {
            return Ok(plan);
        }
        Ok(match self.upstream(&lock).await {
            Upstream::Plan(plan) => plan,
            Upstream::Has(_, resolved) => self.plan_for(&lock, &resolved),
        })
    }

    async fn local_plan(&self, team: &str, lock: &Lock) -> Result<Option<Plan>, Error> {
        let Some(tree) = self.parts.store.library(team, &lock.name).await? else {
            return Ok(None);
        };
        let drift = lock.verify(&tree);
        Ok((!drift.is_none()).then_some(Plan::LocalChanges { drift }))
    }

    async fn upstream(&self, lock: &Lock) -> Upstream<'_> {
        let Some(source) = self.source(&lock.source) else {
            return Upstream::Plan(Plan::SourceUnavailable {
                problem: format!("{} is switched off", lock.source),
            });
        };
        match source.resolve(&lock.reference).await {
            Ok(resolved) => Upstream::Has(source, resolved),
            Err(SourceError::Gone { .. }) => Upstream::Plan(Plan::GoneUpstream),
            Err(error) => Upstream::Plan(Plan::SourceUnavailable {
                problem: error.to_string(),
            }),
        }
    }

    fn plan_for(&self, lock: &Lock, resolved: &Resolved) -> Plan {
        let revision = resolved.revision.clone();
        if resolved.pins.changed_from(&lock.pins) {
            return Plan::OwnerChanged { revision };
        }
        if revision == lock.revision {
            return Plan::Current;
        }
        let until = resolved
            .published_at
            .map(|published| published.plus(resolved.trust.cool_down()));
        match until {
            Some(until) if until > self.parts.clock.now() => Plan::Cooling { revision, until },
            _ => Plan::Available { revision },
        }
    }

    /// The plan with everything that a person decides by: the files of both sides, new findings, new capabilities. The
    /// newer revision is fetched and scanned, and not kept. Where there are changes made here the plan says so, and the
    /// newer revision is looked at all the same.
    pub async fn preview(&self, team: &str, name: &str) -> Result<Preview, Error> {
        let lock = self.installed(team, name).await?.lock;
        let local = self.local_plan(team, &lock).await?;
        let (source, resolved) = match self.upstream(&lock).await {
            Upstream::Plan(plan) => {
                let plan = local.unwrap_or(plan);
                return Ok(Preview { plan, lock, next: None });
            }
            Upstream::Has(source, resolved) => (source, resolved),
        };
        let plan = self.plan_for(&lock, &resolved);
        let mut next = None;
        if plan.revision().is_some() {
            let fetched = source.fetch(&resolved).await;
            let after = fetched.map_err(|error| Error::Source {
                name: source.name().to_owned(),
                source: error,
            })?;
            next = Some(self.looked_at(team, &lock, resolved, after).await?);
        }
        let plan = local.unwrap_or(plan);
        Ok(Preview { plan, lock, next })
    }

    async fn looked_at(&self, team: &str, lock: &Lock, resolved: Resolved, after: Tree) -> Result<Next, Error> {
        let before = self.approved(team, lock).await?;
        let judged = self.judge(team, resolved, &after).await?;
        Ok(Next {
            revision: judged.resolved.revision,
            before,
            after,
            problems: judged.problems,
            report: judged.report,
            provenance: judged.provenance,
            change: judged.change,
        })
    }

    /// The files that were approved when a skill was installed; none if their item is gone.
    pub async fn approved(&self, team: &str, lock: &Lock) -> Result<Tree, Error> {
        let item = self.parts.store.item(team, &lock.item).await?;
        Ok(item.map(|item| item.tree).unwrap_or_default())
    }

    /// Brings the newer revision of an installed skill into quarantine, from its own source.
    pub async fn update(&self, actor: Actor<'_>, name: &str) -> Result<Item, Error> {
        self.fetch_update(actor, name, "", &quietly).await
    }

    /// The same, telling how far it is; see [`Hub::fetch`].
    pub async fn fetch_update(
        &self,
        actor: Actor<'_>,
        name: &str,
        request_id: &str,
        progress: Progress<'_>,
    ) -> Result<Item, Error> {
        let Installed { lock, .. } = self.installed(actor.team, name).await?;
        if self.source(&lock.source).is_none() {
            return Err(Error::SourceOff { name: lock.source });
        }
        let reference = format!("{}:{}", lock.source, lock.reference);
        self.fetch(actor, &reference, request_id, progress).await
    }
}
