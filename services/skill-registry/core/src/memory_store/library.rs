//! The library's part of the store in memory.

use async_trait::async_trait;
use steward_base::names::TeamId;

use super::{InMemorySkillStore, Inner, SkillKey};
use crate::error::StoreFault;
use crate::gate::Provenance;
use crate::library::{AgeChange, LibraryRecord, LibraryStore, NewSnapshot, RunChange, Snapshot, SnapshotEntry};
use crate::record::{BrokenRecord, SkillRecord};
use crate::store::CommitError;

type Found = Result<LibraryRecord, BrokenRecord>;

impl Inner {
    fn library_record(&self, key: &SkillKey, record: &SkillRecord) -> Found {
        let record = self.found(key, record)?;
        let revisions = self.revisions.get(key).map(Vec::as_slice).unwrap_or_default();
        let last_change = revisions
            .iter()
            .filter(|revision| revision.by.origin != steward_base::Origin::Curation || revision.action != "archive")
            .map(|revision| revision.created)
            .max();
        Ok(LibraryRecord {
            stale_since: self.stale.get(key).copied(),
            last_change: last_change.map_or(record.created, |at| at.max(record.created)),
            referenced: self.is_referenced(&key.0, &key.1),
            record,
        })
    }

    fn take_snapshot(&mut self, new: NewSnapshot) -> Result<Snapshot, CommitError> {
        if let Some(job) = &new.fence {
            let newest = self.fences.entry((new.team.clone(), job.id.clone())).or_default();
            if *newest > job.fence {
                return Err(CommitError::StaleFence { current: *newest });
            }
            *newest = job.fence;
        }
        if let Some(snapshot) = self.snapshot_of(&new.team, &new.run) {
            return Ok(snapshot.clone());
        }
        let skills = self
            .records
            .iter()
            .filter(|(key, _)| key.0 == new.team && !self.broken.contains_key(key))
            .map(|(key, record)| SnapshotEntry::of(record, self.stale.get(key).copied()))
            .collect();
        let snapshot = Snapshot {
            run: new.run,
            taken: new.now,
            skills,
        };
        self.snapshots.push((new.team.clone(), snapshot.clone()));
        let mut of_team: Vec<String> = self
            .snapshots
            .iter()
            .filter(|(team, _)| *team == new.team)
            .map(|(_, snapshot)| snapshot.run.clone())
            .collect();
        of_team.reverse();
        for run in of_team.into_iter().skip(new.keep as usize) {
            if new.spare.as_ref() != Some(&run) {
                self.snapshots
                    .retain(|(team, snapshot)| (team, &snapshot.run) != (&new.team, &run));
                self.changes.remove(&(new.team.clone(), run.clone()));
                self.dropped.insert((new.team.clone(), run));
            }
        }
        Ok(snapshot)
    }

    fn snapshot_of(&self, team: &TeamId, run: &str) -> Option<&Snapshot> {
        let mut of_run = self
            .snapshots
            .iter()
            .filter(|(owner, snapshot)| owner == team && snapshot.run == run);
        of_run.next().map(|(_, snapshot)| snapshot)
    }
}

#[async_trait]
impl LibraryStore for InMemorySkillStore {
    async fn library_records(
        &self,
        team: &TeamId,
        after: Option<&str>,
        limit: u32,
        builtins: bool,
    ) -> Result<Vec<Found>, StoreFault> {
        let inner = self.lock();
        let wanted = inner.records.iter().filter(|(key, record)| {
            key.0 == *team
                && after.is_none_or(|after| key.1.as_str() > after)
                && (record.provenance == Provenance::AgentCreated
                    || builtins && record.provenance == Provenance::Builtin && !record.protected
                    || inner.broken.contains_key(key))
        });
        Ok(wanted
            .take(limit as usize)
            .map(|(key, record)| inner.library_record(key, record))
            .collect())
    }

    async fn library_record(&self, team: &TeamId, uid: &str) -> Result<Option<Found>, StoreFault> {
        let inner = self.lock();
        let key = (team.clone(), uid.to_owned());
        Ok(inner.records.get(&key).map(|record| inner.library_record(&key, record)))
    }

    async fn take_snapshot(&self, new: NewSnapshot) -> Result<Snapshot, CommitError> {
        self.lock().take_snapshot(new)
    }

    async fn snapshot(&self, team: &TeamId, run: &str) -> Result<Option<Snapshot>, StoreFault> {
        Ok(self.lock().snapshot_of(team, run).cloned())
    }

    async fn snapshots(&self, team: &TeamId) -> Result<Vec<Snapshot>, StoreFault> {
        let inner = self.lock();
        let of_team = inner.snapshots.iter().rev().filter(|(owner, _)| owner == team);
        Ok(of_team.map(|(_, snapshot)| snapshot.clone()).collect())
    }

    async fn was_dropped(&self, team: &TeamId, run: &str) -> Result<bool, StoreFault> {
        Ok(self.lock().dropped.contains(&(team.clone(), run.to_owned())))
    }

    async fn run_changes(&self, team: &TeamId, run: &str) -> Result<Vec<RunChange>, StoreFault> {
        let inner = self.lock();
        let found = inner.changes.get(&(team.clone(), run.to_owned()));
        Ok(found
            .map(|changes| changes.values().cloned().collect())
            .unwrap_or_default())
    }

    async fn change_age(&self, change: AgeChange) -> Result<(), CommitError> {
        let mut inner = self.lock();
        let AgeChange {
            change,
            stale_since,
            uses,
            log,
        } = change;
        inner.check(&change)?;
        let key = (change.record.team.clone(), change.record.uid.clone());
        if inner.records.get(&key).map(|record| record.usage.uses) != Some(uses) {
            return Err(CommitError::VersionMismatch);
        }
        inner.apply(change);
        match stale_since {
            Some(at) => inner.stale.insert(key.clone(), at),
            None => inner.stale.remove(&key),
        };
        inner
            .changes
            .entry((key.0, log.run.clone()))
            .or_default()
            .insert(key.1, log);
        Ok(())
    }
}
