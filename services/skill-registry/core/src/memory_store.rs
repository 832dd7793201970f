//! A store in memory: for tests of the rules, and what the contract suite is first run on.

mod erase;
mod library;
mod secrets;
mod shelf;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use steward_base::names::{SkillId, TeamId, UserId};
use steward_base::{JobRef, Timestamp};

use crate::bundle::{Bundle, BundleKey};
use crate::error::StoreFault;
use crate::library::{RunChange, Snapshot};
use crate::name::{self, Scope};
use crate::proposals::Proposal;
use crate::record::{self, BrokenRecord, Files, Found, Revision, SkillRecord};
use crate::secrets::{SecretInfo, SecretValue};
use crate::store::{Change, CommitError, FirstAnswer, Purge, Reader, SkillStore, View};

type SkillKey = (TeamId, String);

#[derive(Debug, Default)]
struct Inner {
    records: BTreeMap<SkillKey, SkillRecord>,
    broken: BTreeMap<SkillKey, String>,
    revisions: BTreeMap<SkillKey, Vec<Revision>>,
    blobs: BTreeMap<(TeamId, String), Vec<u8>>,
    reads: BTreeMap<(TeamId, String, String), String>,
    fences: BTreeMap<(TeamId, String), u64>,
    stale: BTreeMap<SkillKey, Timestamp>,
    snapshots: Vec<(TeamId, Snapshot)>,
    dropped: BTreeSet<(TeamId, String)>,
    references: BTreeMap<(TeamId, String), BTreeSet<String>>,
    hidden: BTreeSet<(TeamId, Option<UserId>, String)>,
    generation: u64,
    bundles: BTreeMap<BundleKey, Bundle>,
    secrets: BTreeMap<(TeamId, String), (SecretInfo, SecretValue)>,
    proposals: BTreeMap<(TeamId, String), Proposal>,
    changes: BTreeMap<(TeamId, String), BTreeMap<String, RunChange>>,
    answers: BTreeMap<(TeamId, String, String), (String, FirstAnswer)>,
    revoked: BTreeSet<(TeamId, String)>,
}

/// Keeps skills for as long as it lives.
#[derive(Debug, Default)]
pub struct InMemorySkillStore {
    inner: Mutex<Inner>,
}

impl InMemorySkillStore {
    /// Holds nothing.
    pub fn new() -> Self {
        Self::default()
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        // A panic elsewhere cannot leave a change half applied: each is applied after its last check.
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Makes the record of a skill unreadable, as a damaged row would be.
    pub fn damage_record(&self, team: &TeamId, uid: &str) {
        self.lock()
            .broken
            .insert((team.clone(), uid.to_owned()), "unknown provenance".to_owned());
    }

    /// Makes a skill one that Steward needs, as seeding does.
    pub fn protect(&self, team: &TeamId, uid: &str) {
        if let Some(record) = self.lock().records.get_mut(&(team.clone(), uid.to_owned())) {
            record.protected = true;
        }
    }

    /// Revokes a tree for the team, or lifts that.
    pub fn set_revoked(&self, team: &TeamId, files: &Files, revoked: bool) {
        let key = (team.clone(), record::tree_hash(&record::manifest(files)));
        let mut inner = self.lock();
        if revoked {
            inner.revoked.insert(key);
        } else {
            inner.revoked.remove(&key);
        }
    }

    /// Changes the stored bytes of a blob.
    pub fn damage_blob(&self, team: &TeamId, sha256: &str) {
        if let Some(bytes) = self.lock().blobs.get_mut(&(team.clone(), sha256.to_owned())) {
            bytes.push(b'!');
        }
    }
}

impl Inner {
    fn found(&self, key: &SkillKey, record: &SkillRecord) -> Found {
        match self.broken.get(key) {
            None => Ok(record.clone()),
            Some(problem) => Err(BrokenRecord {
                skill: record.full_name(),
                uid: record.uid.clone(),
                problem: problem.clone(),
            }),
        }
    }

    fn select(&self, team: &TeamId, scopes: &[Scope], keep: impl Fn(&SkillRecord) -> bool) -> Vec<Found> {
        let mut chosen = self
            .records
            .iter()
            .filter(|((owner, _), record)| owner == team && scopes.contains(&record.scope) && keep(record))
            .collect::<Vec<_>>();
        chosen.sort_by_key(|(_, record)| {
            (
                record.scope.rank(),
                record.category.clone(),
                record.name.clone(),
                record.uid.clone(),
            )
        });
        chosen
            .into_iter()
            .map(|(key, record)| self.found(key, record))
            .collect()
    }

    fn is_referenced(&self, team: &TeamId, uid: &str) -> bool {
        self.references
            .iter()
            .any(|((owner, _), skills)| owner == team && skills.contains(uid))
    }

    fn check_fence(&self, team: &TeamId, job: &JobRef) -> Result<(), CommitError> {
        let newest = self.fences.get(&(team.clone(), job.id.clone())).copied().unwrap_or(0);
        if newest > job.fence {
            return Err(CommitError::StaleFence { current: newest });
        }
        Ok(())
    }

    fn check(&self, change: &Change) -> Result<(), CommitError> {
        let record = &change.record;
        if let Some(job) = &change.fence {
            self.check_fence(&record.team, job)?;
        }
        if let Some((key, _)) = &change.answer
            && let Some((_, first)) = self
                .answers
                .get(&(record.team.clone(), key.scope.clone(), key.id.clone()))
        {
            return Err(CommitError::Answered(first.clone()));
        }
        let present = self.records.get(&(record.team.clone(), record.uid.clone()));
        if present.map(|present| present.version) != change.expected {
            return Err(CommitError::VersionMismatch);
        }
        let others = self.records.values().filter(|other| {
            other.team == record.team && other.scope == record.scope && other.uid != record.uid && other.is_active()
        });
        let existing = others.map(|other| (&other.category, &other.name));
        let in_the_way = name::in_the_way(&record.scope, &record.category, &record.name, existing);
        if record.is_active() && !in_the_way.is_empty() {
            return Err(CommitError::InTheWay(in_the_way));
        }
        let gets_into_use = change.revision.is_some() || present.is_some_and(|present| !present.is_active());
        if record.is_active() && gets_into_use && self.revoked.contains(&(record.team.clone(), record.tree.clone())) {
            return Err(CommitError::Revoked);
        }
        match &change.decides {
            Some(proposal) if !self.is_pending(proposal) => Err(CommitError::VersionMismatch),
            _ => Ok(()),
        }
    }

    fn apply(&mut self, change: Change) {
        self.generation += 1;
        let Change {
            mut record,
            revision,
            beneath,
            is_patch,
            reader,
            fence,
            answer,
            decides,
            ..
        } = change;
        if let Some(proposal) = decides {
            self.decide(proposal);
        }
        let key = (record.team.clone(), record.uid.clone());
        if let Some(present) = self.records.get(&key) {
            record.usage = present.usage;
        }
        if is_patch {
            record.usage.patches += 1;
            record.usage.last_patched = Some(record.updated);
        }
        if let Some(job) = fence {
            self.fences.insert((record.team.clone(), job.id), job.fence);
        }
        if let Some((request, answer)) = answer {
            let first = FirstAnswer {
                hash: request.hash,
                answer,
            };
            self.answers.insert(
                (record.team.clone(), request.scope, request.id),
                (record.uid.clone(), first),
            );
        }
        if let Some(reader) = reader {
            self.reads.insert(
                (record.team.clone(), reader.key(), record.uid.clone()),
                record.revision.clone(),
            );
        }
        for (revision, files) in beneath.into_iter().chain(revision) {
            for entry in &revision.files {
                if let Some(bytes) = files.get(&entry.path) {
                    self.blobs
                        .insert((record.team.clone(), entry.sha256.clone()), bytes.clone());
                }
            }
            self.revisions.entry(key.clone()).or_default().push(revision);
        }
        if is_patch || !record.is_active() {
            self.stale.remove(&key);
        }
        self.records.insert(key, record);
    }
}

#[async_trait]
impl SkillStore for InMemorySkillStore {
    async fn first_answer(&self, team: &TeamId, scope: &str, id: &str) -> Result<Option<FirstAnswer>, StoreFault> {
        let key = (team.clone(), scope.to_owned(), id.to_owned());
        Ok(self.lock().answers.get(&key).map(|(_, first)| first.clone()))
    }

    async fn list(&self, team: &TeamId, scopes: &[Scope], archived: bool) -> Result<Vec<Found>, StoreFault> {
        Ok(self
            .lock()
            .select(team, scopes, |record| record.is_active() != archived))
    }

    async fn named(&self, team: &TeamId, scopes: &[Scope], name: &SkillId) -> Result<Vec<Found>, StoreFault> {
        Ok(self.lock().select(team, scopes, |record| record.name == *name))
    }

    async fn revisions(
        &self,
        team: &TeamId,
        uid: &str,
        before: Option<u64>,
        limit: u32,
    ) -> Result<Vec<Revision>, StoreFault> {
        let inner = self.lock();
        let all = inner
            .revisions
            .get(&(team.clone(), uid.to_owned()))
            .map(Vec::as_slice)
            .unwrap_or_default();
        let older = all
            .iter()
            .rev()
            .filter(|revision| before.is_none_or(|before| revision.number < before));
        Ok(older
            .take(usize::try_from(limit).unwrap_or(usize::MAX))
            .cloned()
            .collect())
    }

    async fn revision(&self, team: &TeamId, uid: &str, id: &str) -> Result<Option<Revision>, StoreFault> {
        let inner = self.lock();
        let all = inner
            .revisions
            .get(&(team.clone(), uid.to_owned()))
            .map(Vec::as_slice)
            .unwrap_or_default();
        Ok(all.iter().find(|revision| revision.id == id).cloned())
    }

    async fn files(&self, team: &TeamId, revision: &Revision) -> Result<Files, StoreFault> {
        let inner = self.lock();
        let stored = |entry: &record::FileEntry| {
            let bytes = inner.blobs.get(&(team.clone(), entry.sha256.clone()))?;
            Some((entry.path.clone(), bytes.clone()))
        };
        let files = revision.files.iter().filter_map(stored).collect::<Files>();
        match record::verify(&files, &revision.files) {
            Ok(()) => Ok(files),
            Err(path) => Err(StoreFault::Damaged {
                what: format!("{path} of revision {}", revision.id),
            }),
        }
    }

    async fn last_read(&self, team: &TeamId, reader: &Reader, uid: &str) -> Result<Option<String>, StoreFault> {
        Ok(self
            .lock()
            .reads
            .get(&(team.clone(), reader.key(), uid.to_owned()))
            .cloned())
    }

    async fn record_view(&self, view: View) -> Result<(), StoreFault> {
        let mut inner = self.lock();
        if let Some(reader) = &view.reader {
            inner.reads.insert(
                (view.team.clone(), reader.key(), view.uid.clone()),
                view.revision.clone(),
            );
        }
        let key = (view.team, view.uid);
        let inner = &mut *inner;
        if let Some(record) = inner.records.get_mut(&key) {
            if view.is_use {
                record.usage.views += 1;
                record.usage.uses += 1;
                record.usage.last_used = Some(view.at);
                inner.stale.remove(&key);
            } else {
                record.usage.review_views += 1;
            }
        }
        Ok(())
    }

    async fn dry_run(&self, change: Change) -> Result<(), CommitError> {
        self.lock().check(&change)
    }

    async fn commit(&self, change: Change) -> Result<(), CommitError> {
        let mut inner = self.lock();
        inner.check(&change)?;
        inner.apply(change);
        Ok(())
    }

    async fn generation(&self, _: &TeamId) -> Result<u64, StoreFault> {
        Ok(self.lock().generation)
    }

    async fn hidden(&self, team: &TeamId, user: Option<&UserId>) -> Result<BTreeSet<String>, StoreFault> {
        let inner = self.lock();
        let of_user = inner
            .hidden
            .iter()
            .filter(|(owner, who, _)| owner == team && (who.is_none() || who.as_ref() == user));
        Ok(of_user.map(|(_, _, uid)| uid.clone()).collect())
    }

    async fn set_hidden(
        &self,
        team: &TeamId,
        user: Option<&UserId>,
        uid: &str,
        hidden: bool,
    ) -> Result<(), StoreFault> {
        let mut inner = self.lock();
        inner.generation += 1;
        let key = (team.clone(), user.cloned(), uid.to_owned());
        if hidden {
            inner.hidden.insert(key);
        } else {
            inner.hidden.remove(&key);
        }
        Ok(())
    }

    async fn set_references(&self, team: &TeamId, holder: &str, uids: &[String]) -> Result<(), StoreFault> {
        let mut inner = self.lock();
        let key = (team.clone(), holder.to_owned());
        if uids.is_empty() {
            inner.references.remove(&key);
        } else {
            inner.references.insert(key, uids.iter().cloned().collect());
        }
        Ok(())
    }

    async fn is_referenced(&self, team: &TeamId, uid: &str) -> Result<bool, StoreFault> {
        Ok(self.lock().is_referenced(team, uid))
    }

    async fn purge(&self, purge: Purge) -> Result<u64, CommitError> {
        let mut inner = self.lock();
        let key = (purge.record.team.clone(), purge.record.uid.clone());
        if inner.records.get(&key).map(|record| record.version) != Some(purge.record.version) {
            return Err(CommitError::VersionMismatch);
        }
        inner.records.remove(&key);
        inner.generation += 1;
        inner.hidden.retain(|(team, _, uid)| (team, uid) != (&key.0, &key.1));
        let revisions = inner.revisions.remove(&key).unwrap_or_default();
        inner.reads.retain(|(team, _, uid), _| (team, uid) != (&key.0, &key.1));
        inner
            .answers
            .retain(|(team, _, _), (uid, _)| (team, &*uid) != (&key.0, &key.1));
        inner
            .proposals
            .retain(|_, proposal| (&proposal.team, &proposal.uid) != (&key.0, &key.1) || proposal.staged.is_none());
        let used = inner
            .revisions
            .iter()
            .flat_map(|((team, _), all)| {
                all.iter()
                    .flat_map(|revision| revision.files.iter())
                    .map(|entry| (team.clone(), entry.sha256.clone()))
            })
            .collect::<std::collections::BTreeSet<_>>();
        inner.blobs.retain(|key, _| used.contains(key));
        Ok(u64::try_from(revisions.len()).unwrap_or(u64::MAX))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn it_fulfils_the_contract() {
        crate::store::contract::check(|| async { InMemorySkillStore::new() }).await;
        crate::store::contract::erase::check(|| async { InMemorySkillStore::new() }).await;
        crate::store::contract::library::check(|| async { InMemorySkillStore::new() }).await;
        crate::store::contract::revoked::check(
            || async { InMemorySkillStore::new() },
            |store, team, files, revoked| {
                store.set_revoked(&team, &files, revoked);
                std::future::ready(())
            },
        )
        .await;
        crate::store::contract::shelf::check(|| async { InMemorySkillStore::new() }).await;
        crate::store::contract::secrets::check(|| async { InMemorySkillStore::new() }).await;
    }
}
