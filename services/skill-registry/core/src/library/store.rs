//! What a library needs from its store, beside what skills need.

use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use steward_base::names::TeamId;
use steward_base::{JobRef, Timestamp};

use super::{Age, LibraryRecord, Outcome, TransitionResult, exact_name};
use crate::actor::Actor;
use crate::error::StoreFault;
use crate::record::{BrokenRecord, SkillRecord, State, Usage};
use crate::store::{Change, CommitError, SkillStore};

/// A skill in a snapshot. Files are not copied: revisions are never changed, and a snapshot names one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SnapshotEntry {
    /// Which skill.
    pub uid: String,
    /// Its resource name.
    pub name: String,
    /// In use or set aside.
    pub state: State,
    /// Since when it counts as stale.
    pub stale_since: Option<Timestamp>,
    /// Its newest revision.
    pub revision: String,
    /// Whether a person pinned it.
    pub pinned: bool,
    /// Its record's version.
    pub version: u64,
    /// Its counters.
    pub usage: Usage,
}

impl SnapshotEntry {
    /// Of a skill as it is now.
    pub fn of(record: &SkillRecord, stale_since: Option<Timestamp>) -> Self {
        Self {
            uid: record.uid.clone(),
            name: exact_name(record),
            state: record.state.clone(),
            stale_since,
            revision: record.revision.clone(),
            pinned: record.pinned,
            version: record.version,
            usage: record.usage,
        }
    }

    /// How old it counted as.
    pub const fn age(&self) -> Age {
        Age::of(&self.state, self.stale_since)
    }
}

/// All skills of a team at one moment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Snapshot {
    /// The run before whose changes it was taken.
    pub run: String,
    /// When.
    pub taken: Timestamp,
    /// The skills, by identity.
    pub skills: Vec<SnapshotEntry>,
}

/// A snapshot to be taken.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewSnapshot {
    /// The tenant.
    pub team: TeamId,
    /// The run before whose changes it is taken.
    pub run: String,
    /// The claim under which it is taken.
    pub fence: Option<JobRef>,
    /// When.
    pub now: Timestamp,
    /// How many are kept; the oldest beyond go, together with the record of what their runs changed.
    pub keep: u32,
    /// A run whose snapshot is needed and stays, however old it is.
    pub spare: Option<String>,
}

/// What a run did to a skill.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunChange {
    /// The run.
    pub run: String,
    /// Which skill.
    pub uid: String,
    /// Its name at that time.
    pub name: String,
    /// Its age before.
    pub from: Age,
    /// Its age after.
    pub to: Age,
    /// The record's version after. As long as the record has it, nothing else changed the skill.
    pub version: u64,
}

impl RunChange {
    /// As the answer to a call that asks for it again.
    pub(super) fn applied(&self) -> TransitionResult {
        TransitionResult {
            uid: self.uid.clone(),
            name: self.name.clone(),
            outcome: Outcome::Applied,
            from: self.from,
            to: self.to,
        }
    }
}

/// A change of a skill's age, whole.
#[derive(Debug, Clone)]
pub struct AgeChange {
    /// The record and its revision.
    pub change: Change,
    /// Since when it counts as stale afterwards.
    pub stale_since: Option<Timestamp>,
    /// Uses that were counted when the change was decided. One more, and it is not applied.
    pub uses: u64,
    /// What the run's record says of it.
    pub log: RunChange,
}

impl AgeChange {
    pub(super) fn new(
        actor: &Actor,
        run: &str,
        before: &LibraryRecord,
        change: Change,
        stale_since: Option<Timestamp>,
    ) -> Self {
        let log = RunChange {
            run: run.to_owned(),
            uid: before.record.uid.clone(),
            name: exact_name(&change.record),
            from: before.age(),
            to: Age::of(&change.record.state, stale_since),
            version: change.record.version,
        };
        Self {
            change: Change {
                fence: actor.job.clone(),
                ..change
            },
            stale_since,
            uses: before.record.usage.uses,
            log,
        }
    }
}

/// Where libraries are kept. Implementations pass [`crate::store::contract::library::check`].
#[async_trait]
pub trait LibraryStore: SkillStore {
    /// The team's skills that reviews and curations made, those whose maker cannot be read, and if `builtins` the
    /// builtins that are not protected, by identity, behind `after`, at most `limit`.
    async fn library_records(
        &self,
        team: &TeamId,
        after: Option<&str>,
        limit: u32,
        builtins: bool,
    ) -> Result<Vec<Result<LibraryRecord, BrokenRecord>>, StoreFault>;

    /// One skill, whoever made it.
    async fn library_record(
        &self,
        team: &TeamId,
        uid: &str,
    ) -> Result<Option<Result<LibraryRecord, BrokenRecord>>, StoreFault>;

    /// Keeps all skills of the team as they are in one moment, unless the run has a snapshot, and drops old ones. Answers
    /// the run's snapshot.
    async fn take_snapshot(&self, new: NewSnapshot) -> Result<Snapshot, CommitError>;

    /// The snapshot of a run.
    async fn snapshot(&self, team: &TeamId, run: &str) -> Result<Option<Snapshot>, StoreFault>;

    /// The snapshots that are kept, newest first.
    async fn snapshots(&self, team: &TeamId) -> Result<Vec<Snapshot>, StoreFault>;

    /// Whether the run had a snapshot that was dropped for newer ones.
    async fn was_dropped(&self, team: &TeamId, run: &str) -> Result<bool, StoreFault>;

    /// What a run changed so far, by identity.
    async fn run_changes(&self, team: &TeamId, run: &str) -> Result<Vec<RunChange>, StoreFault>;

    /// Applies a change and keeps the line of it, or does neither.
    async fn change_age(&self, change: AgeChange) -> Result<(), CommitError>;
}
