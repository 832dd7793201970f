//! Memory kept in memory: the store of unit tests and the model that the SQL store is compared with.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use steward_base::JobRef;
use steward_base::names::{EntryId, TeamId};

use crate::book::Book;
use crate::entry::Revision;
use crate::error::Error;
use crate::owner::StoreName;
use crate::proposal::{Proposal, ProposalId, State};
use crate::store::{Decide, Decision, Frame, Listed, Loaded, MemoryStore, ProposalQuery};

/// A [`MemoryStore`] without an engine.
#[derive(Debug, Default)]
pub struct InMemoryMemoryStore {
    state: Mutex<Tables>,
}

#[derive(Debug, Default)]
struct Tables {
    books: BTreeMap<StoreName, Book>,
    revisions: BTreeMap<(StoreName, EntryId), Vec<Revision>>,
    proposals: BTreeMap<(TeamId, ProposalId), Proposal>,
    /// (team, scope, request id) to (hash, answer).
    answers: BTreeMap<(TeamId, String, String), (String, String)>,
    fences: BTreeMap<(TeamId, String), u64>,
}

impl InMemoryMemoryStore {
    /// An empty store.
    pub fn new() -> Self {
        Self::default()
    }

    fn lock(&self) -> MutexGuard<'_, Tables> {
        // Nothing is changed before a decision has succeeded, so a panic in one leaves the tables whole.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Tables {
    fn load(&self, frame: &Frame) -> Loaded {
        let team = &frame.store.team;
        let waits = |proposal: &&Proposal| proposal.state == State::Pending && proposal.owner == frame.store.owner;
        Loaded {
            book: self.books.get(&frame.store).cloned().unwrap_or_default(),
            history: frame
                .entry
                .as_ref()
                .map(|entry| self.history(&frame.store, entry))
                .unwrap_or_default(),
            proposal: frame
                .proposal
                .clone()
                .and_then(|id| self.proposals.get(&(team.clone(), id)).cloned()),
            pending: self
                .proposals
                .iter()
                .filter(|((of, _), _)| of == team)
                .filter(|(_, one)| waits(one))
                .count(),
        }
    }

    fn history(&self, store: &StoreName, entry: &EntryId) -> Vec<Revision> {
        self.revisions
            .get(&(store.clone(), entry.clone()))
            .cloned()
            .unwrap_or_default()
    }

    fn saw(&mut self, team: &TeamId, job: Option<&JobRef>) {
        if let Some(job) = job {
            self.fences.insert((team.clone(), job.id.clone()), job.fence);
        }
    }

    fn keep(&mut self, store: &StoreName, decision: &Decision) {
        let book = self.books.entry(store.clone()).or_default();
        if let Some((revision, refusals)) = &decision.head {
            book.revision = *revision;
            book.refusals = refusals.clone();
        }
        book.entries.retain(|entry| !decision.gone.contains(&entry.id));
        for entry in &decision.put {
            book.entries.retain(|present| present.id != entry.id);
            book.insert(entry.clone());
        }
        for revision in &decision.revisions {
            self.revisions
                .entry((store.clone(), revision.entry.clone()))
                .or_default()
                .push(revision.clone());
        }
        if let Some(proposal) = &decision.proposal {
            self.proposals
                .insert((store.team.clone(), proposal.id.clone()), proposal.clone());
        }
    }
}

#[async_trait]
impl MemoryStore for InMemoryMemoryStore {
    async fn write(&self, frame: Frame, decide: Decide) -> Result<String, Error> {
        let mut tables = self.lock();
        let team = frame.store.team.clone();
        if let Some(job) = &frame.job {
            let current = tables.fences.get(&(team.clone(), job.id.clone())).copied().unwrap_or(0);
            if job.fence < current {
                return Err(Error::StaleFence {
                    job: job.id.clone(),
                    fence: job.fence,
                    current,
                });
            }
        }
        let key = frame
            .request
            .as_ref()
            .map(|request| (team.clone(), request.scope.clone(), request.id.clone()));
        if let (Some(request), Some(key)) = (&frame.request, &key)
            && let Some((hash, answer)) = tables.answers.get(key)
        {
            if *hash != request.hash {
                return Err(Error::RequestIdReused {
                    request_id: request.id.clone(),
                });
            }
            let answer = answer.clone();
            tables.saw(&team, frame.job.as_ref());
            return Ok(answer);
        }
        let decision = decide(&tables.load(&frame))?;
        tables.keep(&frame.store, &decision);
        tables.saw(&team, frame.job.as_ref());
        if let (Some(request), Some(key)) = (frame.request, key) {
            tables.answers.insert(key, (request.hash, decision.answer.clone()));
        }
        Ok(decision.answer)
    }

    async fn book(&self, store: &StoreName) -> Result<Book, Error> {
        Ok(self.lock().books.get(store).cloned().unwrap_or_default())
    }

    async fn books(&self, stores: &[StoreName]) -> Result<Vec<Book>, Error> {
        let tables = self.lock();
        Ok(stores
            .iter()
            .map(|store| tables.books.get(store).cloned().unwrap_or_default())
            .collect())
    }

    async fn history(&self, store: &StoreName, entry: &EntryId) -> Result<Vec<Revision>, Error> {
        Ok(self.lock().history(store, entry))
    }

    async fn proposal(&self, team: &TeamId, proposal: &ProposalId) -> Result<Option<Proposal>, Error> {
        Ok(self.lock().proposals.get(&(team.clone(), proposal.clone())).cloned())
    }

    async fn proposals(&self, query: &ProposalQuery) -> Result<Vec<Listed>, Error> {
        let tables = self.lock();
        let page = tables
            .proposals
            .iter()
            .filter(|((team, _), _)| *team == query.team)
            .map(|(_, proposal)| proposal)
            .filter(|proposal| proposal.state == query.state && query.visible.includes(proposal))
            .filter(|proposal| query.after.as_deref().is_none_or(|after| proposal.id.as_str() > after))
            .take(usize::try_from(query.limit).unwrap_or(usize::MAX))
            .cloned()
            .map(Ok)
            .collect();
        Ok(page)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::store::contract;

    #[tokio::test]
    async fn the_in_memory_store_keeps_the_contract() {
        contract::all(|| async { Arc::new(InMemoryMemoryStore::new()) as Arc<dyn MemoryStore> }).await;
    }
}
