//! A team's library as a curation sees it: how old skills count as, snapshots, and the undoing of a run (`C-2` to `C-4`).
//!
//! Which skill ages when is decided by the curator; here it is decided whether that may happen. Whatever is asked, only
//! skills that a review or a curation made and that nobody pinned are touched (`S-14`), each by compare and swap, with a
//! line in the run's record from which the run can be undone.

mod restore_snapshot;
mod rollback_run;
mod store;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use steward_base::names::{TeamId, parse_team, team_name};
use steward_base::{Clock, FieldViolations, Origin, Timestamp};

use crate::actor::Actor;
use crate::error::Error;
use crate::gate::{self, Action, Gate, GateState, Ruling};
use crate::name;
use crate::record::{Archival, BrokenRecord, NewRevision, SkillRecord, State};
use crate::skills::commit_error;
use crate::store::{Change, CommitError};

pub use store::{AgeChange, LibraryStore, NewSnapshot, RunChange, Snapshot, SnapshotEntry};

/// Snapshots that are kept per team (`C-4`).
pub const SNAPSHOTS: u32 = 10;

/// Most changes of one call.
pub const MOST_TRANSITIONS: usize = 500;

/// How old a skill counts as.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Age {
    /// In use.
    Active,
    /// In use, and not used for long.
    Stale,
    /// Set aside.
    Archived,
}

impl Age {
    /// The name in stores.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Active => "active",
            Self::Stale => "stale",
            Self::Archived => "archived",
        }
    }

    /// From its name.
    pub fn parse(name: &str) -> Option<Self> {
        [Self::Active, Self::Stale, Self::Archived]
            .into_iter()
            .find(|age| age.as_str() == name)
    }

    /// Of a skill in this state.
    pub const fn of(state: &State, stale_since: Option<Timestamp>) -> Self {
        match (state, stale_since) {
            (State::Archived(_), _) => Self::Archived,
            (State::Active, Some(_)) => Self::Stale,
            (State::Active, None) => Self::Active,
        }
    }
}

/// A skill with what decides on its age.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LibraryRecord {
    /// The skill.
    pub record: SkillRecord,
    /// Since when it counts as stale. A use or a patch ends that at once.
    pub stale_since: Option<Timestamp>,
    /// Its latest revision that no curation made, bringing back aside; at least its creation.
    pub last_change: Timestamp,
    /// Whether a schedule names it (`C-2`).
    pub referenced: bool,
}

impl LibraryRecord {
    /// How old it counts as.
    pub const fn age(&self) -> Age {
        Age::of(&self.record.state, self.stale_since)
    }

    /// State of the record and of its use: differs as soon as either changes.
    pub fn etag(&self) -> String {
        let (record, usage) = (&self.record, &self.record.usage);
        format!("{}-{}-{}", record.version, usage.uses, usage.patches)
    }

    /// The name that means this skill and no other, archived or not.
    pub fn exact_name(&self) -> String {
        exact_name(&self.record)
    }
}

fn exact_name(record: &SkillRecord) -> String {
    if record.is_active() {
        return record.resource_name();
    }
    let id = name::archived_id(&record.name, &record.uid);
    name::resource_name(&record.team, &record.scope, &id)
}

/// A change that a curation asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Transition {
    /// Which skill.
    pub uid: String,
    /// [`LibraryRecord::etag`] as it was read.
    pub etag: String,
    /// How old it shall count as.
    pub age: Age,
}

/// What became of a skill.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// Changed, now or by an earlier try of the run.
    Applied,
    /// It was so already.
    Unchanged,
    /// Something else was quicker; it stays as it is.
    Conflict(&'static str),
    /// A gate refused; it stays as it is.
    Refused(&'static str),
}

/// What became of a skill, with its age before and after.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TransitionResult {
    /// Which skill.
    pub uid: String,
    /// Its name, the last known one if it is gone.
    pub name: String,
    /// What happened.
    pub outcome: Outcome,
    /// Its age before.
    pub from: Age,
    /// Its age after.
    pub to: Age,
}

/// A page of records.
#[derive(Debug, Clone, Default)]
pub struct RecordPage {
    /// The records.
    pub records: Vec<LibraryRecord>,
    /// Those that cannot be read; nothing touches them (`S-15`).
    pub damaged: Vec<BrokenRecord>,
    /// The identity behind which the next page starts; absent at the end.
    pub next: Option<String>,
}

/// The library over a store.
#[derive(Debug)]
pub struct Library {
    store: Arc<dyn LibraryStore>,
    clock: Arc<dyn Clock>,
    prune_builtins: bool,
}

impl Library {
    /// Over a store.
    pub fn new(store: Arc<dyn LibraryStore>, clock: Arc<dyn Clock>) -> Self {
        Self {
            store,
            clock,
            prune_builtins: false,
        }
    }

    /// With builtins among what curations age, the protected ones apart (`C-3`). That is the installation's to say and
    /// no request's.
    #[must_use]
    pub const fn with_prune_builtins(mut self, prune: bool) -> Self {
        self.prune_builtins = prune;
        self
    }

    /// The skills of the whole team that reviews and curations made, behind the identity `after`; with `prune_builtins`
    /// the builtins too that are not protected.
    pub async fn list_records(
        &self,
        actor: &Actor,
        parent: &str,
        after: Option<&str>,
        limit: u32,
    ) -> Result<RecordPage, Error> {
        let team = own_team(actor, parent)?;
        let found = self
            .store
            .library_records(&team, after, limit, self.prune_builtins)
            .await?;
        let is_full = found.len() >= usize::try_from(limit).unwrap_or(usize::MAX);
        let mut page = RecordPage::default();
        for found in found {
            let uid = match found {
                Ok(record) => {
                    let uid = record.record.uid.clone();
                    page.records.push(record);
                    uid
                }
                Err(broken) => {
                    let uid = broken.uid.clone();
                    page.damaged.push(broken);
                    uid
                }
            };
            page.next = is_full.then_some(uid);
        }
        Ok(page)
    }

    /// Takes the snapshot of a run, once.
    pub async fn create_snapshot(&self, actor: &Actor, parent: &str, run: &str) -> Result<Snapshot, Error> {
        let team = own_run(actor, parent, run)?;
        self.take_snapshot(actor, &team, run, None).await
    }

    async fn take_snapshot(
        &self,
        actor: &Actor,
        team: &TeamId,
        run: &str,
        spare: Option<&str>,
    ) -> Result<Snapshot, Error> {
        let new = NewSnapshot {
            team: team.clone(),
            run: run.to_owned(),
            fence: actor.job.clone(),
            now: self.clock.now(),
            keep: SNAPSHOTS,
            spare: spare.map(str::to_owned),
        };
        self.store.take_snapshot(new).await.map_err(|error| {
            commit_error(error, actor, "").unwrap_or_else(|| Error::SnapshotNotFound {
                snapshot: snapshot_name(team, run),
            })
        })
    }

    /// Changes the age of skills, each by itself.
    pub async fn apply_transitions(
        &self,
        actor: &Actor,
        parent: &str,
        run: &str,
        transitions: &[Transition],
    ) -> Result<Vec<TransitionResult>, Error> {
        let team = own_run(actor, parent, run)?;
        if transitions.len() > MOST_TRANSITIONS {
            let violation = format!("must be at most {MOST_TRANSITIONS}");
            return Err(FieldViolations::one("transitions", violation).into());
        }
        self.snapshot(&team, run).await?;
        let done = self.done(&team, run).await?;
        let mut results = Vec::with_capacity(transitions.len());
        for transition in transitions {
            results.push(match done.get(&transition.uid) {
                Some(change) => change.applied(),
                None => self.apply_one(actor, &team, run, transition).await?,
            });
        }
        Ok(results)
    }

    async fn apply_one(
        &self,
        actor: &Actor,
        team: &TeamId,
        run: &str,
        transition: &Transition,
    ) -> Result<TransitionResult, Error> {
        let result = |name: String, from, outcome| TransitionResult {
            uid: transition.uid.clone(),
            name,
            outcome,
            from,
            to: if outcome == Outcome::Applied {
                transition.age
            } else {
                from
            },
        };
        let found = match self.store.library_record(team, &transition.uid).await? {
            None => return Ok(result(String::new(), transition.age, Outcome::Conflict("gone"))),
            Some(Err(broken)) => {
                return Ok(result(broken.skill, transition.age, Outcome::Refused("unreadable")));
            }
            Some(Ok(found)) => found,
        };
        let (name, from) = (found.exact_name(), found.age());
        if let Some(refused) = refused(&found, transition.age, self.prune_builtins) {
            return Ok(result(name, from, refused));
        }
        if from == transition.age {
            return Ok(result(name, from, Outcome::Unchanged));
        }
        if from == Age::Archived || found.etag() != transition.etag {
            return Ok(result(name, from, Outcome::Conflict("changed")));
        }
        let change = self.ageing(actor, run, &found, transition.age).await?;
        match self.commit(actor, change).await? {
            Outcome::Applied => Ok(result(name, from, Outcome::Applied)),
            other => Ok(result(name, from, other)),
        }
    }

    /// The change that makes a skill in use count as `age`.
    async fn ageing(&self, actor: &Actor, run: &str, found: &LibraryRecord, age: Age) -> Result<AgeChange, Error> {
        let now = self.clock.now();
        let record = &found.record;
        let change = if age == Age::Archived {
            let (_, files) = self.load(record, &record.revision).await?;
            let new = NewRevision {
                parent: Some(record),
                action: Action::Archive.as_str(),
                files: &files,
                by: actor.authorship("not used for a long time", &[]),
                restored_from: None,
                created: now,
            };
            let revision = new.seal(&record.uid);
            let archival = Archival {
                at: now,
                origin: actor.origin,
                deleted: false,
                absorbed_into: String::new(),
            };
            let next = SkillRecord {
                state: State::Archived(archival),
                ..record.after(&revision, &files)
            };
            Change::of(next, Some(record.version), Some((revision, files)))
        } else {
            let next = SkillRecord {
                version: record.version + 1,
                ..record.clone()
            };
            Change::of(next, Some(record.version), None)
        };
        Ok(AgeChange::new(
            actor,
            run,
            found,
            change,
            (age == Age::Stale).then_some(now),
        ))
    }

    /// Whether the change was applied, or what stood in its way.
    async fn commit(&self, actor: &Actor, change: AgeChange) -> Result<Outcome, Error> {
        let name = change.log.name.clone();
        match self.store.change_age(change).await {
            Ok(()) => Ok(Outcome::Applied),
            Err(CommitError::VersionMismatch) => Ok(Outcome::Conflict("changed")),
            Err(CommitError::InTheWay(_)) => Ok(Outcome::Conflict("name_taken")),
            // That one stays as it is; the report names it, and the others are put back.
            Err(CommitError::Revoked) => Ok(Outcome::Refused(Gate::Revoked.as_str())),
            Err(error) => commit_error(error, actor, &name).map_or(Ok(Outcome::Conflict("changed")), Err),
        }
    }

    async fn snapshot(&self, team: &TeamId, run: &str) -> Result<Snapshot, Error> {
        let found = self.store.snapshot(team, run).await?;
        found.ok_or_else(|| Error::SnapshotNotFound {
            snapshot: snapshot_name(team, run),
        })
    }

    async fn done(&self, team: &TeamId, run: &str) -> Result<BTreeMap<String, RunChange>, Error> {
        let changes = self.store.run_changes(team, run).await?;
        Ok(changes.into_iter().map(|change| (change.uid.clone(), change)).collect())
    }
}

/// `teams/{team}/librarySnapshots/{snapshot}`.
pub fn snapshot_name(team: &TeamId, run: &str) -> String {
    format!("{}/librarySnapshots/{run}", team_name(team))
}

/// The gates of a curation, whoever calls: what it may not archive it may not call stale either.
fn refused(found: &LibraryRecord, age: Age, prunable: bool) -> Option<Outcome> {
    let action = if age == Age::Active {
        Action::Restore
    } else {
        Action::Archive
    };
    let state = GateState {
        referenced: found.referenced,
        prunable,
        ..found.record.gate_state()
    };
    match gate::rule(Origin::Curation, state, action) {
        Ruling::Refuse(gate) => Some(Outcome::Refused(gate.as_str())),
        Ruling::Allow | Ruling::AsArchive => None,
    }
}

/// The actor's team, if the request names it.
fn own_team(actor: &Actor, parent: &str) -> Result<TeamId, Error> {
    let team = parse_team(parent).map_err(|problem| FieldViolations::one("parent", problem.to_string()))?;
    if team == actor.team {
        Ok(team)
    } else {
        Err(FieldViolations::one("parent", "is not the caller's team").into())
    }
}

/// The same, for a run that is the caller's own job: nobody writes in the name of another run.
fn own_run(actor: &Actor, parent: &str, run: &str) -> Result<TeamId, Error> {
    let team = own_team(actor, parent)?;
    if actor.job.as_ref().is_some_and(|job| job.id == run) {
        Ok(team)
    } else {
        Err(FieldViolations::one("run", "must be the job that the credential was made for").into())
    }
}
