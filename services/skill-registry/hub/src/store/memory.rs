//! Everything in memory, for tests and trials. Its library has one scope and merges whole files, not lines.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, PoisonError};

use steward_base::{ErrorKind, Timestamp};
use steward_skill_scanner::{Suppression, Tree};

use super::{Holder, HubStore, Install, Installed, Local, Placed, Sight, Withdraw};
use crate::audit::{Entry, Event};
use crate::error::{Refusal, StoreError};
use crate::hub::Actor;
use crate::lock::Lock;
use crate::publish::Publication;
use crate::quarantine::{Item, State};
use crate::withdrawal::Withdrawal;

#[derive(Debug, Default)]
struct Team {
    items: BTreeMap<String, Item>,
    installed: BTreeMap<String, Installed>,
    library: BTreeMap<String, Tree>,
    /// Skills that are installed and out of sight.
    hidden: BTreeMap<String, Tree>,
    withdrawals: BTreeMap<String, Withdrawal>,
    publications: BTreeMap<String, (Publication, Vec<u8>)>,
    suppressions: Vec<Suppression>,
    audit: Vec<Entry>,
}

/// The hub's tables and a library in memory.
#[derive(Debug, Default)]
pub struct InMemoryHubStore {
    teams: Mutex<BTreeMap<String, Team>>,
}

impl InMemoryHubStore {
    fn with<T>(&self, team: &str, act: impl FnOnce(&mut Team) -> T) -> T {
        let mut teams = self.teams.lock().unwrap_or_else(PoisonError::into_inner);
        act(teams.entry(team.to_owned()).or_default())
    }

    /// Puts a skill into the library as a person would, past the hub.
    pub fn write_by_hand(&self, team: &str, name: &str, tree: Tree) {
        self.with(team, |team| team.library.insert(name.to_owned(), tree));
    }

    /// Takes a skill out of the library past the hub.
    pub fn remove_by_hand(&self, team: &str, name: &str) {
        self.with(team, |team| team.library.remove(name));
    }

    /// Other bytes for an item in quarantine, past the hub.
    pub fn swap_by_hand(&self, team: &str, id: &str, tree: Tree) {
        self.with(team, |team| {
            if let Some(item) = team.items.get_mut(id) {
                item.tree = tree;
            }
        });
    }
}

impl Team {
    fn append(&mut self, at: Timestamp, events: Vec<Event>) {
        for event in events {
            let entry = Entry::after(self.audit.last(), event, at);
            self.audit.push(entry);
        }
    }

    fn put(&mut self, item: &Item, before: Option<State>) -> Result<(), StoreError> {
        let there = self.items.get(&item.id).map(|item| item.state);
        if there != before {
            return Err(StoreError::conflict("the item is in another state"));
        }
        let mut item = item.clone();
        if !item.state.keeps_bytes() {
            item.tree = Tree::new();
        }
        self.items.insert(item.id.clone(), item);
        Ok(())
    }

    fn install(&mut self, install: &Install<'_>) -> Result<Placed, StoreError> {
        let name = &install.installed.lock.name;
        let present = self.installed.get(name).map(|installed| &installed.lock);
        if present != install.before {
            return Err(StoreError::conflict("another revision was installed meanwhile"));
        }
        let approved = self.items.get(&install.item.id).map(|item| item.state);
        if approved != Some(State::Approved) {
            return Err(StoreError::conflict("the item is in another state"));
        }
        let withdrawn = self.withdrawals.get(&install.installed.lock.digest);
        if withdrawn.is_some_and(Withdrawal::is_in_force) {
            return Err(StoreError::conflict("it was withdrawn meanwhile"));
        }
        let mut placed = Placed::default();
        let tree = match (self.library.get(name), install.before) {
            (Some(_), None) if !install.replace => return Err(taken(name)),
            (Some(_), None) => {
                placed.set_aside.push(name.clone());
                install.item.tree.clone()
            }
            (Some(ours), Some(lock)) => merged(ours, lock, install, &mut placed)?,
            (None, _) => install.item.tree.clone(),
        };
        self.put(install.item, Some(State::Approved))?;
        self.hidden.remove(name);
        self.library.insert(name.clone(), tree);
        self.installed.insert(name.clone(), install.installed.clone());
        Ok(placed)
    }
}

impl Team {
    fn withdraw(&mut self, withdraw: &Withdraw<'_>) -> Result<(), StoreError> {
        let there = self
            .installed
            .values()
            .find(|installed| installed.lock.digest == withdraw.digest);
        let there = there.map(|installed| installed.lock.name.as_str());
        if self.withdrawals.get(withdraw.digest) != withdraw.before || there != withdraw.skill {
            return Err(StoreError::conflict("it was withdrawn or installed meanwhile"));
        }
        match withdraw.skill.zip(withdraw.sight()) {
            Some((name, Sight::Hide)) => {
                let tree = self.library.remove(name);
                self.hidden.extend(tree.map(|tree| (name.to_owned(), tree)));
            }
            Some((name, Sight::Show)) => {
                let tree = self.hidden.remove(name);
                self.library.extend(tree.map(|tree| (name.to_owned(), tree)));
            }
            None => {}
        }
        match withdraw.after {
            Some(after) => self.withdrawals.insert(withdraw.digest.to_owned(), after.clone()),
            None => self.withdrawals.remove(withdraw.digest),
        };
        Ok(())
    }
}

fn taken(name: &str) -> StoreError {
    StoreError::Refused(Refusal {
        kind: ErrorKind::AlreadyExists,
        reason: "SKILL_EXISTS",
        message: format!("{name} is there already"),
        ..Refusal::default()
    })
}

/// Whole files of both sides over those of the lock.
fn merged(ours: &Tree, lock: &Lock, install: &Install<'_>, placed: &mut Placed) -> Result<Tree, StoreError> {
    let theirs = &install.item.tree;
    if lock.verify(ours).is_none() || install.local == Local::GiveUp {
        return Ok(theirs.clone());
    }
    if install.local == Local::Keep {
        return Err(StoreError::conflict("it was changed here meanwhile"));
    }
    let (mine, new) = (ours.digests(), theirs.digests());
    let paths: BTreeSet<&String> = mine.keys().chain(new.keys()).collect();
    let (mut tree, mut conflicts) = (Tree::new(), Vec::new());
    for path in paths {
        let (base, mine, new) = (lock.files.get(path), mine.get(path), new.get(path));
        let kept = if mine == base || mine == new {
            theirs.get(path)
        } else if new == base {
            placed.merged.push(path.clone());
            ours.get(path)
        } else {
            conflicts.push(path.clone());
            None
        };
        if let Some(file) = kept {
            tree.insert(path.clone(), file.clone());
        }
    }
    if conflicts.is_empty() {
        return Ok(tree);
    }
    Err(StoreError::Refused(Refusal {
        kind: ErrorKind::Precondition,
        reason: "MERGE_CONFLICT",
        message: format!("both sides changed {}", conflicts.join(", ")),
        ..Refusal::default()
    }))
}

#[async_trait::async_trait]
impl HubStore for InMemoryHubStore {
    async fn put_item(
        &self,
        team: &str,
        item: &Item,
        before: Option<State>,
        at: Timestamp,
        events: Vec<Event>,
    ) -> Result<(), StoreError> {
        self.with(team, |team| {
            team.put(item, before)?;
            team.append(at, events);
            Ok(())
        })
    }

    async fn item(&self, team: &str, id: &str) -> Result<Option<Item>, StoreError> {
        Ok(self.with(team, |team| team.items.get(id).cloned()))
    }

    async fn items(&self, team: &str, after: Option<&str>, limit: usize) -> Result<Vec<Item>, StoreError> {
        Ok(self.with(team, |team| {
            let mut items: Vec<Item> = team.items.values().cloned().collect();
            items.sort_by_key(Item::place);
            items.retain(|item| after.is_none_or(|after| item.place().as_str() > after));
            items.truncate(limit);
            for item in &mut items {
                item.tree = Tree::new();
            }
            items
        }))
    }

    async fn open_items(&self, team: &str) -> Result<usize, StoreError> {
        Ok(self.with(team, |team| {
            team.items.values().filter(|item| item.state.is_open()).count()
        }))
    }

    async fn install(&self, install: Install<'_>, events: Vec<Event>) -> Result<Placed, StoreError> {
        self.with(install.actor.team, |team| {
            let placed = team.install(&install)?;
            team.append(install.at, events);
            Ok(placed)
        })
    }

    async fn remove(&self, actor: Actor<'_>, name: &str, at: Timestamp, event: Event) -> Result<(), StoreError> {
        self.with(actor.team, |team| {
            team.installed.remove(name);
            team.library.remove(name);
            team.hidden.remove(name);
            team.append(at, vec![event]);
        });
        Ok(())
    }

    async fn withdrawal(&self, team: &str, digest: &str) -> Result<Option<Withdrawal>, StoreError> {
        Ok(self.with(team, |team| team.withdrawals.get(digest).cloned()))
    }

    async fn withdrawals(&self, team: &str) -> Result<Vec<Withdrawal>, StoreError> {
        Ok(self.with(team, |team| team.withdrawals.values().cloned().collect()))
    }

    async fn withdraw(&self, withdraw: Withdraw<'_>, events: Vec<Event>) -> Result<(), StoreError> {
        self.with(withdraw.actor.team, |team| {
            team.withdraw(&withdraw)?;
            team.append(withdraw.at, events);
            Ok(())
        })
    }

    async fn publish(
        &self,
        team: &str,
        publication: &Publication,
        archive: Vec<u8>,
        at: Timestamp,
        event: Event,
    ) -> Result<(), StoreError> {
        self.with(team, |team| {
            let published = (publication.clone(), archive);
            team.publications.insert(publication.name.clone(), published);
            team.append(at, vec![event]);
        });
        Ok(())
    }

    async fn unpublish(&self, team: &str, name: &str, at: Timestamp, event: Event) -> Result<bool, StoreError> {
        Ok(self.with(team, |team| {
            let ended = team.publications.remove(name).is_some();
            if ended {
                team.append(at, vec![event]);
            }
            ended
        }))
    }

    async fn publications(&self, team: &str) -> Result<Vec<Publication>, StoreError> {
        Ok(self.with(team, |team| {
            let all = team.publications.values();
            all.map(|(publication, _)| publication.clone()).collect()
        }))
    }

    async fn archive(&self, team: &str, name: &str, digest: &str) -> Result<Option<Vec<u8>>, StoreError> {
        Ok(self.with(team, |team| {
            let found = team.publications.get(name);
            let found = found.filter(|(publication, _)| publication.archive == digest);
            found.map(|(_, archive)| archive.clone())
        }))
    }

    async fn installed(&self, team: &str, name: &str) -> Result<Option<Installed>, StoreError> {
        Ok(self.with(team, |team| team.installed.get(name).cloned()))
    }

    async fn all_installed(&self, team: &str) -> Result<Vec<Installed>, StoreError> {
        Ok(self.with(team, |team| team.installed.values().cloned().collect()))
    }

    async fn library(&self, team: &str, name: &str) -> Result<Option<Tree>, StoreError> {
        Ok(self.with(team, |team| team.library.get(name).cloned()))
    }

    async fn holder(&self, actor: Actor<'_>, name: &str) -> Result<Holder, StoreError> {
        Ok(self.with(actor.team, |team| {
            match (team.installed.contains_key(name), team.library.contains_key(name)) {
                (true, _) => Holder::Hub,
                (false, true) => Holder::Other("a skill that did not come from the hub".to_owned()),
                (false, false) => Holder::Free,
            }
        }))
    }

    async fn suppressions(&self, team: &str) -> Result<Vec<Suppression>, StoreError> {
        Ok(self.with(team, |team| team.suppressions.clone()))
    }

    async fn suppress(
        &self,
        team: &str,
        suppression: Suppression,
        at: Timestamp,
        event: Event,
    ) -> Result<(), StoreError> {
        self.with(team, |team| {
            team.suppressions
                .retain(|known| known.fingerprint != suppression.fingerprint);
            team.suppressions.push(suppression);
            team.append(at, vec![event]);
        });
        Ok(())
    }

    async fn record(&self, team: &str, at: Timestamp, event: Event) -> Result<(), StoreError> {
        self.with(team, |team| team.append(at, vec![event]));
        Ok(())
    }

    async fn audit(&self, team: &str, after: u64, limit: usize) -> Result<Vec<Entry>, StoreError> {
        Ok(self.with(team, |team| {
            let following = team.audit.iter().filter(|entry| entry.sequence > after);
            following.take(limit).cloned().collect()
        }))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::super::contract::{self, Bench};
    use super::*;

    struct InMemory(Arc<InMemoryHubStore>);

    #[async_trait::async_trait]
    impl Bench for InMemory {
        fn store(&self) -> Arc<dyn HubStore> {
            Arc::<InMemoryHubStore>::clone(&self.0)
        }

        async fn write_by_hand(&self, team: &str, name: &str, tree: Tree) {
            self.0.write_by_hand(team, name, tree);
        }

        async fn remove_by_hand(&self, team: &str, name: &str) {
            self.0.remove_by_hand(team, name);
        }
    }

    #[tokio::test]
    async fn it_fulfils_the_contract() {
        contract::check(|| async { InMemory(Arc::default()) }).await;
    }
}
