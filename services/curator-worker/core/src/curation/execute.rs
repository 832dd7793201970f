//! Carrying a run out, through ports: look, decide, keep the plan, take the snapshot, change.
//!
//! What was decided is kept before anything changes, and the registry does nothing of a run twice, so that a later try
//! ends where the first would have.

use std::collections::{BTreeMap, BTreeSet};

use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use steward_base::Timestamp;

use super::report::{self, Counts, Finished};
use super::transitions::{self, Age, Decision, Record, Settings, Why};
use super::{Kind, Run, RunId};
use crate::error::Error;

/// Changes of one call to the registry.
const BATCH: usize = 200;

/// The skills that may age.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Library {
    /// Their records.
    pub records: Vec<Record>,
    /// Names of those whose record cannot be read. Nothing touches them.
    pub damaged: Vec<String>,
}

/// What became of a skill.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Change {
    /// Resource name.
    pub skill: String,
    /// Age before.
    pub from: Age,
    /// Age after.
    pub to: Age,
    /// `applied`, `unchanged`, `conflict`, `refused`, or `planned` in a dry run.
    pub outcome: String,
    /// For conflicts and refusals: what stood in the way.
    pub reason: String,
}

/// The registry, in the name of the job.
#[async_trait]
pub trait LibraryPort: Send + Sync {
    /// All records.
    async fn records(&self) -> Result<Library, Error>;

    /// Takes the run's snapshot, once; its name.
    async fn create_snapshot(&self, run: &RunId) -> Result<String, Error>;

    /// Changes ages; what became of each, in order.
    async fn apply(&self, run: &RunId, decisions: &[Decision]) -> Result<Vec<Change>, Error>;

    /// Puts back what a run changed; the name of the safety snapshot, and what became of each.
    async fn rollback(&self, run: &RunId, rollback: &RunId) -> Result<(String, Vec<Change>), Error>;
}

/// Which skills schedules refer to, paused and future ones too.
#[async_trait]
pub trait Schedules: std::fmt::Debug + Send + Sync {
    /// Resource names of skills.
    async fn skills(&self, run: &Run) -> Result<BTreeSet<String>, Error>;
}

/// What a run has decided.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Plan {
    /// When it looked.
    pub at: Timestamp,
    /// The ages that it went by.
    pub settings: Settings,
    /// What it found.
    pub before: Counts,
    /// Skills whose record could not be read.
    pub damaged: Vec<String>,
    /// What it decided about each skill in use.
    pub decisions: Vec<Decision>,
}

/// The run's share of the ledger, under the fence of its claim.
#[async_trait]
pub trait RunJournal: Send + Sync {
    /// When curation first saw each skill of the team.
    async fn seen(&self) -> Result<BTreeMap<String, Timestamp>, Error>;

    /// What an earlier try decided.
    async fn plan(&self) -> Result<Option<Plan>, Error>;

    /// Keeps what was decided, and `at` as first sight of the skills that were not seen before.
    async fn keep_plan(&self, plan: &Plan) -> Result<(), Error>;

    /// Keeps the name of the run's snapshot; nothing of the run is changed before.
    async fn keep_snapshot(&self, snapshot: &str) -> Result<(), Error>;

    /// Whether an earlier run of the team changed nothing, as far as its row tells.
    async fn changed_nothing(&self, run: &RunId) -> Result<bool, Error>;
}

/// Carries a run out.
pub async fn execute(
    run: &Run,
    library: &dyn LibraryPort,
    schedules: &dyn Schedules,
    journal: &dyn RunJournal,
    settings: Settings,
    now: Timestamp,
) -> Result<Finished, Error> {
    if let (Kind::Rollback, Some(undoes)) = (run.kind, &run.undoes) {
        if journal.changed_nothing(undoes).await? {
            return report::rollback(run, now, undoes, "", &[]);
        }
        let (snapshot, changes) = library.rollback(undoes, &run.id).await?;
        return report::rollback(run, now, undoes, &snapshot, &changes);
    }
    if run.kind == Kind::DryRun {
        let plan = look(run, library, schedules, journal, settings, now).await?;
        let planned = plan.decisions.iter().filter(|decision| decision.is_change());
        let changes: Vec<Change> = planned.map(|decision| change(decision, "planned")).collect();
        return report::curation(run, &plan, "", &changes);
    }
    let plan = if let Some(plan) = journal.plan().await? {
        plan
    } else {
        let plan = look(run, library, schedules, journal, settings, now).await?;
        journal.keep_plan(&plan).await?;
        plan
    };
    let wanted: Vec<Decision> = plan.decisions.iter().filter(|one| one.is_change()).cloned().collect();
    if wanted.is_empty() {
        return report::curation(run, &plan, "", &[]);
    }
    let snapshot = library.create_snapshot(&run.id).await?;
    journal.keep_snapshot(&snapshot).await?;
    let mut changes = Vec::with_capacity(wanted.len());
    for batch in wanted.chunks(BATCH) {
        changes.extend(library.apply(&run.id, batch).await?);
    }
    report::curation(run, &plan, &snapshot, &changes)
}

async fn look(
    run: &Run,
    library: &dyn LibraryPort,
    schedules: &dyn Schedules,
    journal: &dyn RunJournal,
    settings: Settings,
    now: Timestamp,
) -> Result<Plan, Error> {
    let found = library.records().await?;
    let (seen, named) = (journal.seen().await?, schedules.skills(run).await?);
    Ok(Plan {
        at: now,
        settings,
        before: Counts::of(found.records.iter().map(|record| record.age)),
        damaged: found.damaged,
        decisions: transitions::decide(now, &found.records, &seen, &named, settings),
    })
}

fn change(decision: &Decision, outcome: &str) -> Change {
    Change {
        skill: decision.name.clone(),
        from: decision.from,
        to: decision.to,
        outcome: outcome.to_owned(),
        reason: String::new(),
    }
}

impl Plan {
    /// The skills that were seen for the first time.
    pub fn first_seen(&self) -> impl Iterator<Item = &str> {
        let unseen = self.decisions.iter().filter(|decision| decision.why == Why::FirstSight);
        unseen.map(|decision| decision.uid.as_str())
    }
}

#[cfg(test)]
mod tests;
