//! What the hub keeps, as ports, and an in-memory implementation. Each call is one transaction: what it does, it does
//! whole, with its audit entries.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Mutex, PoisonError};

use serde::{Deserialize, Serialize};
use steward_base::Timestamp;
use steward_skill_scanner::{Report, Suppression, Tree};

use crate::audit::{Entry, Event};
use crate::error::StoreError;
use crate::lock::Lock;
use crate::quarantine::Item;

/// An installed skill with the scan by which it was let in.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Installed {
    /// Its lock.
    pub lock: Lock,
    /// The report that was approved.
    pub report: Report,
}

/// Who holds a name in the library.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Holder {
    /// Nobody.
    Free,
    /// A skill that the hub installed.
    Hub,
    /// Any other skill, told for people.
    Other(String),
}

/// The hub's tables, for one team at a time. Team first in every key.
#[async_trait::async_trait]
pub trait HubStore: fmt::Debug + Send + Sync {
    /// Puts an item in or replaces it, with what is to be recorded of it.
    async fn put_item(&self, team: &str, item: &Item, at: Timestamp, events: Vec<Event>) -> Result<(), StoreError>;
    /// One item.
    async fn item(&self, team: &str, id: &str) -> Result<Option<Item>, StoreError>;
    /// Items in the order in which they came in.
    async fn items(&self, team: &str) -> Result<Vec<Item>, StoreError>;
    /// Installs an item: its bytes into the library, its lock, its state and the audit entries, all or nothing.
    async fn install(
        &self,
        team: &str,
        item: &Item,
        installed: &Installed,
        at: Timestamp,
        events: Vec<Event>,
    ) -> Result<(), StoreError>;
    /// Removes an installed skill and its lock. Succeeds if the library no longer has it.
    async fn remove(&self, team: &str, name: &str, at: Timestamp, event: Event) -> Result<(), StoreError>;
    /// One lock with its report.
    async fn installed(&self, team: &str, name: &str) -> Result<Option<Installed>, StoreError>;
    /// All locks, by name.
    async fn all_installed(&self, team: &str) -> Result<Vec<Installed>, StoreError>;
    /// The skill as it stands in the library now; nothing if it is gone.
    async fn library(&self, team: &str, name: &str) -> Result<Option<Tree>, StoreError>;
    /// Who holds a name.
    async fn holder(&self, team: &str, name: &str) -> Result<Holder, StoreError>;
    /// Accepted findings.
    async fn suppressions(&self, team: &str) -> Result<Vec<Suppression>, StoreError>;
    /// Accepts a finding.
    async fn suppress(
        &self,
        team: &str,
        suppression: Suppression,
        at: Timestamp,
        event: Event,
    ) -> Result<(), StoreError>;
    /// Records what changed no table.
    async fn record(&self, team: &str, at: Timestamp, event: Event) -> Result<(), StoreError>;
    /// The whole log, oldest first.
    async fn audit(&self, team: &str) -> Result<Vec<Entry>, StoreError>;
}

#[derive(Debug, Default)]
struct Team {
    items: BTreeMap<String, Item>,
    installed: BTreeMap<String, Installed>,
    library: BTreeMap<String, Tree>,
    suppressions: Vec<Suppression>,
    audit: Vec<Entry>,
}

/// Everything in memory, for tests and trials.
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
}

fn append(team: &mut Team, at: Timestamp, events: Vec<Event>) {
    for event in events {
        let entry = Entry::after(team.audit.last(), event, at);
        team.audit.push(entry);
    }
}

#[async_trait::async_trait]
impl HubStore for InMemoryHubStore {
    async fn put_item(&self, team: &str, item: &Item, at: Timestamp, events: Vec<Event>) -> Result<(), StoreError> {
        self.with(team, |team| {
            team.items.insert(item.id.clone(), item.clone());
            append(team, at, events);
        });
        Ok(())
    }

    async fn item(&self, team: &str, id: &str) -> Result<Option<Item>, StoreError> {
        Ok(self.with(team, |team| team.items.get(id).cloned()))
    }

    async fn items(&self, team: &str) -> Result<Vec<Item>, StoreError> {
        Ok(self.with(team, |team| {
            let mut items: Vec<Item> = team.items.values().cloned().collect();
            items.sort_by(|a, b| (a.created_at, &a.id).cmp(&(b.created_at, &b.id)));
            items
        }))
    }

    async fn install(
        &self,
        team: &str,
        item: &Item,
        installed: &Installed,
        at: Timestamp,
        events: Vec<Event>,
    ) -> Result<(), StoreError> {
        self.with(team, |team| {
            let name = installed.lock.name.clone();
            team.library.insert(name.clone(), item.tree.clone());
            team.installed.insert(name, installed.clone());
            team.items.insert(item.id.clone(), item.clone());
            append(team, at, events);
        });
        Ok(())
    }

    async fn remove(&self, team: &str, name: &str, at: Timestamp, event: Event) -> Result<(), StoreError> {
        self.with(team, |team| {
            team.installed.remove(name);
            team.library.remove(name);
            append(team, at, vec![event]);
        });
        Ok(())
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

    async fn holder(&self, team: &str, name: &str) -> Result<Holder, StoreError> {
        Ok(self.with(team, |team| {
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
            team.suppressions.push(suppression);
            append(team, at, vec![event]);
        });
        Ok(())
    }

    async fn record(&self, team: &str, at: Timestamp, event: Event) -> Result<(), StoreError> {
        self.with(team, |team| append(team, at, vec![event]));
        Ok(())
    }

    async fn audit(&self, team: &str) -> Result<Vec<Entry>, StoreError> {
        Ok(self.with(team, |team| team.audit.clone()))
    }
}
