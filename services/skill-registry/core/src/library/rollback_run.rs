//! Undoing what a run changed (`C-4`): a row of steps that can be taken up again where it stopped, since each leaves a line
//! in the undoing run's own record.

use std::collections::BTreeMap;

use steward_base::FieldViolations;
use steward_base::names::TeamId;

use super::{
    Age, AgeChange, Library, LibraryRecord, Outcome, RunChange, Snapshot, SnapshotEntry, TransitionResult, own_run,
    refused,
};
use crate::actor::Actor;
use crate::error::Error;
use crate::gate::Action;
use crate::record::{Files, NewRevision, Revision, SkillRecord};
use crate::store::Change;

/// What is to be done about a change.
enum Step<'a> {
    /// Nothing; this is the answer.
    Done(Outcome),
    /// Put back what the snapshot says.
    PutBack(Box<LibraryRecord>, &'a SnapshotEntry),
}

impl Library {
    /// Puts back what `run` changed, in the name of the run `rollback`. Before anything is touched, all that will be
    /// needed is read and a safety snapshot is taken. What something else changed since stays as it is. A run that
    /// changed nothing is undone by doing nothing: then there is no safety snapshot either.
    pub async fn rollback_run(
        &self,
        actor: &Actor,
        parent: &str,
        run: &str,
        rollback: &str,
    ) -> Result<(Option<Snapshot>, Vec<TransitionResult>), Error> {
        let team = own_run(actor, parent, rollback)?;
        if run == rollback {
            return Err(FieldViolations::one("run", "must be another run").into());
        }
        let Some(before) = self.undoable(&team, run).await? else {
            return Ok((None, Vec::new()));
        };
        let entries: BTreeMap<&str, &SnapshotEntry> =
            before.skills.iter().map(|entry| (entry.uid.as_str(), entry)).collect();
        let changes = self.store.run_changes(&team, run).await?;
        if changes.is_empty() {
            return Ok((None, Vec::new()));
        }
        let done = self.done(&team, rollback).await?;
        for change in changes.iter().filter(|change| !done.contains_key(&change.uid)) {
            if let Step::PutBack(found, _) = self.step(&team, change, &entries).await? {
                self.load(&found.record, &found.record.revision).await?;
            }
        }
        let safety = self.take_snapshot(actor, &team, rollback, Some(run)).await?;
        let mut results = Vec::with_capacity(changes.len());
        for change in &changes {
            if let Some(done) = done.get(&change.uid) {
                results.push(done.applied());
                continue;
            }
            let step = self.step(&team, change, &entries).await?;
            results.push(self.take(actor, rollback, change, step).await?);
        }
        Ok((Some(safety), results))
    }

    /// The snapshot of a run that is to be undone; none if the run never took one, since then it changed nothing. One
    /// that was dropped for newer ones is an error: what that run did is not known any more.
    async fn undoable(&self, team: &TeamId, run: &str) -> Result<Option<Snapshot>, Error> {
        let found = self.store.snapshot(team, run).await?;
        if found.is_none() && self.store.was_dropped(team, run).await? {
            return Err(Error::SnapshotNotFound {
                snapshot: super::snapshot_name(team, run),
            });
        }
        Ok(found)
    }

    async fn step<'a>(
        &self,
        team: &TeamId,
        change: &RunChange,
        entries: &BTreeMap<&str, &'a SnapshotEntry>,
    ) -> Result<Step<'a>, Error> {
        let Some(entry) = entries.get(change.uid.as_str()) else {
            return Ok(Step::Done(Outcome::Conflict("gone")));
        };
        let found = match self.store.library_record(team, &change.uid).await? {
            None => return Ok(Step::Done(Outcome::Conflict("gone"))),
            Some(Err(_)) => return Ok(Step::Done(Outcome::Refused("unreadable"))),
            Some(Ok(found)) => found,
        };
        if found.age() == entry.age() {
            return Ok(Step::Done(Outcome::Unchanged));
        }
        if found.record.version != change.version {
            return Ok(Step::Done(Outcome::Conflict("changed")));
        }
        // What a run did to a builtin may be undone when the setting has been taken back since.
        if let Some(refused) = refused(&found, entry.age(), true) {
            return Ok(Step::Done(refused));
        }
        Ok(Step::PutBack(Box::new(found), entry))
    }

    async fn take(
        &self,
        actor: &Actor,
        rollback: &str,
        change: &RunChange,
        step: Step<'_>,
    ) -> Result<TransitionResult, Error> {
        let result = |name: &str, outcome, to| TransitionResult {
            uid: change.uid.clone(),
            name: name.to_owned(),
            outcome,
            from: change.to,
            to,
        };
        let (found, entry) = match step {
            Step::Done(Outcome::Unchanged) => return Ok(result(&change.name, Outcome::Unchanged, change.from)),
            Step::Done(outcome) => return Ok(result(&change.name, outcome, change.to)),
            Step::PutBack(found, entry) => (found, entry),
        };
        let put_back = self.putting_back(actor, rollback, &found, entry).await?;
        let name = put_back.log.name.clone();
        match self.commit(actor, put_back).await? {
            Outcome::Applied => Ok(result(&name, Outcome::Applied, entry.age())),
            other => Ok(result(&change.name, other, change.to)),
        }
    }

    /// The change after which the skill is as the snapshot says. Where it went in or out of use, that is a revision.
    async fn putting_back(
        &self,
        actor: &Actor,
        rollback: &str,
        found: &LibraryRecord,
        entry: &SnapshotEntry,
    ) -> Result<AgeChange, Error> {
        let record = &found.record;
        let change = if (found.age() == Age::Archived) == (entry.age() == Age::Archived) {
            let next = SkillRecord {
                version: record.version + 1,
                ..record.clone()
            };
            Change::of(next, Some(record.version), None)
        } else {
            let (_, files) = self.load(record, &record.revision).await?;
            let action = if record.is_active() {
                Action::Archive
            } else {
                Action::Restore
            };
            let new = NewRevision {
                parent: Some(record),
                action: action.as_str(),
                files: &files,
                by: actor.authorship("a run of the curation is undone", &[]),
                restored_from: Some(entry.revision.clone()),
                created: self.clock.now(),
            };
            let revision = new.seal(&record.uid);
            let next = SkillRecord {
                state: entry.state.clone(),
                ..record.after(&revision, &files)
            };
            Change::of(next, Some(record.version), Some((revision, files)))
        };
        Ok(AgeChange::new(actor, rollback, found, change, entry.stale_since))
    }

    /// A revision with its files, checked against their hashes.
    pub(super) async fn load(&self, record: &SkillRecord, revision: &str) -> Result<(Revision, Files), Error> {
        let found = self.store.revision(&record.team, &record.uid, revision).await?;
        let revision = found.ok_or_else(|| Error::RecordDamaged {
            skill: record.full_name(),
            problem: format!("its revision {revision} is missing"),
        })?;
        let files = self.store.files(&record.team, &revision).await?;
        Ok((revision, files))
    }
}
