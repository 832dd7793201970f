//! Memory kept in memory: the store of unit tests and the model that the SQL store is compared with.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use steward_base::names::{EntryId, TeamId, UserId};
use steward_base::{JobRef, Timestamp};

use crate::book::Book;
use crate::entry::Revision;
use crate::error::Error;
use crate::owner::{Owner, StoreName, Target};
use crate::personal::{Derived, Holding, Receipt, Support, is_own};
use crate::proposal::{Proposal, ProposalId, Rejection, State};
use crate::store::{Decide, Decision, Frame, Listed, Loaded, MemoryStore, ProposalQuery, Visible};
use crate::transfer::Held;

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
    /// (store, fingerprint) to the last rejection.
    rejections: BTreeMap<(StoreName, String), Rejection>,
    held: BTreeMap<StoreName, Vec<Held>>,
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
        let waits =
            |proposal: &&Proposal| proposal.state_at(frame.at) == State::Pending && proposal.owner == frame.store.owner;
        let of_team = || {
            self.proposals
                .iter()
                .filter(|((of, _), _)| of == team)
                .map(|(_, one)| one)
        };
        let fingerprint = frame.fingerprint.as_ref();
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
            pending: fingerprint.map_or(0, |_| of_team().filter(waits).count()),
            rejected: fingerprint.and_then(|print| self.rejections.get(&(frame.store.clone(), print.clone())).cloned()),
            same: of_team()
                .filter(waits)
                .find(|one| one.target == frame.store.target && Some(&one.fingerprint) == fingerprint)
                .cloned(),
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
        for (entry, revision, failed) in &decision.checked {
            for present in book
                .entries
                .iter_mut()
                .filter(|present| present.id == *entry && present.revision == *revision)
            {
                present.failed_check.clone_from(failed);
            }
        }
        for proposal in &decision.proposals {
            self.proposals
                .insert((store.team.clone(), proposal.id.clone()), proposal.clone());
        }
        if let Some(rejection) = &decision.rejection {
            self.rejections
                .insert((store.clone(), rejection.fingerprint.clone()), rejection.clone());
        }
        let held = self.held.entry(store.clone()).or_default();
        held.extend(decision.held.iter().cloned());
        held.retain(|one| !decision.let_go.contains(&one.id));
    }

    /// The entries of shared stores that rest on a person.
    fn derived(&self, team: &TeamId, user: &UserId) -> Vec<(StoreName, EntryId, Derived)> {
        let shared = self
            .revisions
            .iter()
            .filter(|((store, _), _)| store.team == *team && store.owner.is_shared());
        shared
            .filter_map(|((store, entry), history)| {
                let support = Support::of(history, user)?;
                let derived = Derived {
                    entry: store.entry(entry),
                    revision: history.last()?.number,
                    support,
                    erased: false,
                };
                Some((store.clone(), entry.clone(), derived))
            })
            .collect()
    }

    fn remove_own(&mut self, team: &TeamId, user: &UserId, receipt: &mut Receipt) {
        let is_theirs = |store: &StoreName| store.team == *team && is_own(&store.owner, user);
        let count = |number: usize| u64::try_from(number).unwrap_or(u64::MAX);
        for (store, book) in &mut self.books {
            if is_theirs(store) {
                receipt.entries += count(book.entries.len());
                *book = Book {
                    revision: book.revision + 1,
                    ..Book::default()
                };
            }
        }
        self.revisions.retain(|(store, _), history| {
            let goes = is_theirs(store);
            receipt.revisions += if goes { count(history.len()) } else { 0 };
            !goes
        });
        self.proposals.retain(|(of, _), one| {
            let by_them = one.provenance.author.as_ref() == Some(user) && one.state != State::Approved;
            let goes = of == team && (is_own(&one.owner, user) || by_them);
            receipt.proposals += u64::from(goes);
            !goes
        });
        let scope_end = format!("/{user}");
        let before = self.answers.len() + self.rejections.len() + self.held.values().map(Vec::len).sum::<usize>();
        self.answers
            .retain(|(of, scope, _), _| of != team || !scope.ends_with(&scope_end));
        self.rejections.retain(|(store, _), _| !is_theirs(store));
        self.held.retain(|store, _| !is_theirs(store));
        let after = self.answers.len() + self.rejections.len() + self.held.values().map(Vec::len).sum::<usize>();
        receipt.others += count(before - after);
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
            .filter(|proposal| proposal.state_at(query.at) == query.state && query.visible.includes(proposal))
            .filter(|proposal| query.after.as_deref().is_none_or(|after| proposal.id.as_str() > after))
            .take(usize::try_from(query.limit).unwrap_or(usize::MAX))
            .cloned()
            .map(Ok)
            .collect();
        Ok(page)
    }

    async fn waiting(
        &self,
        team: &TeamId,
        visible: &Visible,
        at: Timestamp,
    ) -> Result<(usize, Option<Timestamp>), Error> {
        let tables = self.lock();
        let waiting = tables
            .proposals
            .iter()
            .filter(|((of, _), _)| of == team)
            .map(|(_, one)| one);
        let waiting = waiting.filter(|one| one.state_at(at) == State::Pending && visible.includes(one));
        let times: Vec<Timestamp> = waiting.map(|one| one.created).collect();
        Ok((times.len(), times.into_iter().min()))
    }

    async fn stale(&self, team: &TeamId, user: Option<&UserId>, at: Timestamp) -> Result<usize, Error> {
        let tables = self.lock();
        let books = tables.books.iter().filter(|(store, _)| {
            store.team == *team && (store.owner.is_shared() || user.is_some_and(|user| is_own(&store.owner, user)))
        });
        let entries = books.flat_map(|(_, book)| &book.entries);
        Ok(entries.filter(|entry| entry.stale(at).is_some()).count())
    }

    async fn held(&self, store: &StoreName) -> Result<Vec<Held>, Error> {
        Ok(self.lock().held.get(store).cloned().unwrap_or_default())
    }

    async fn personal(&self, team: &TeamId, user: &UserId) -> Result<Vec<Holding>, Error> {
        let tables = self.lock();
        let mut holdings = Vec::new();
        for ((store, entry), history) in &tables.revisions {
            let is_theirs = store.team == *team && is_own(&store.owner, user);
            let is_shared = store.team == *team && store.owner.is_shared();
            let present = tables
                .books
                .get(store)
                .and_then(|book| book.entries.iter().find(|one| one.id == *entry));
            let wanted = history
                .iter()
                .filter(|revision| is_theirs || (is_shared && revision.provenance.author.as_ref() == Some(user)));
            holdings.extend(wanted.map(|revision| Holding::Revision {
                store: store.clone(),
                revision: Box::new(revision.clone()),
                present: present.is_some_and(|entry| entry.revision == revision.number),
            }));
        }
        let proposals = tables.proposals.iter().filter(|((of, _), one)| {
            of == team && (is_own(&one.owner, user) || one.provenance.author.as_ref() == Some(user))
        });
        holdings.extend(proposals.map(|(_, one)| Holding::Proposal(Box::new(one.clone()))));
        for target in [Target::Notes, Target::Profile] {
            let store = StoreName {
                team: team.clone(),
                owner: Owner::Person(user.clone()),
                target,
            };
            let held = tables.held.get(&store).cloned().unwrap_or_default();
            holdings.extend(held.into_iter().map(|held| Holding::Held {
                store: store.clone(),
                held,
            }));
        }
        Ok(holdings)
    }

    async fn erase(&self, team: &TeamId, user: &UserId, shared: bool, _at: Timestamp) -> Result<Receipt, Error> {
        let mut tables = self.lock();
        let mut receipt = Receipt::default();
        for (store, entry, mut derived) in tables.derived(team, user) {
            derived.erased = shared && derived.support == Support::Sole;
            if derived.erased {
                tables.revisions.remove(&(store.clone(), entry.clone()));
                if let Some(book) = tables.books.get_mut(&store) {
                    book.entries.retain(|one| one.id != entry);
                    book.revision += 1;
                }
            }
            receipt.derived.push(derived);
        }
        tables.remove_own(team, user, &mut receipt);
        Ok(receipt)
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
