//! What the hub keeps, as a port. Each call is one transaction: what it does, it does whole, with its audit entries.
//! [`contract`] says what every store must do; [`InMemoryHubStore`] is the one for tests and trials.

pub mod contract;
mod memory;

use std::fmt;

use serde::{Deserialize, Serialize};
use steward_base::Timestamp;
use steward_skill_scanner::{Report, Suppression, Tree};

use crate::audit::{Entry, Event};
use crate::error::StoreError;
use crate::hub::Actor;
use crate::lock::Lock;
use crate::quarantine::{Item, State};

pub use memory::InMemoryHubStore;

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
    /// Any other skill that the actor sees, told for people.
    Other(String),
}

/// What happens to changes that were made here since the last install (D-58).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Local {
    /// Nothing is installed where there are any.
    #[default]
    Keep,
    /// They are merged by line over what was installed last; where both sides meet nothing is installed.
    Merge,
    /// They are given up; the revision that has them stays in the skill's history.
    GiveUp,
}

/// One install, decided.
#[derive(Debug, Clone, Copy)]
pub struct Install<'a> {
    /// Who installs.
    pub actor: Actor<'a>,
    /// The item as it is afterwards: installed, with its bytes.
    pub item: &'a Item,
    /// The lock as it is afterwards, with the report.
    pub installed: &'a Installed,
    /// The lock that the decision rests on. If it is another one by now, nothing is done.
    pub before: Option<&'a Lock>,
    /// Whether a skill of the same name that did not come from the hub is set aside.
    pub replace: bool,
    /// What happens to changes that were made here.
    pub local: Local,
    /// When.
    pub at: Timestamp,
}

/// What an install did to the library besides.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Placed {
    /// Files in which changes made here stand beside the new ones.
    pub merged: Vec<String>,
    /// Full names of skills that were set aside for this one.
    pub set_aside: Vec<String>,
}

/// The hub's tables, for one team at a time. Team first in every key. Implementations pass [`contract::check`].
#[async_trait::async_trait]
pub trait HubStore: fmt::Debug + Send + Sync {
    /// Puts an item in, or changes one that is in state `before`, with what is to be recorded of it. One that cannot be
    /// installed any more keeps no bytes ([`State::keeps_bytes`]).
    async fn put_item(
        &self,
        team: &str,
        item: &Item,
        before: Option<State>,
        at: Timestamp,
        events: Vec<Event>,
    ) -> Result<(), StoreError>;
    /// One item with its bytes.
    async fn item(&self, team: &str, id: &str) -> Result<Option<Item>, StoreError>;
    /// At most `limit` items without their bytes, by [`Item::place`], from the first one after `after` on.
    async fn items(&self, team: &str, after: Option<&str>, limit: usize) -> Result<Vec<Item>, StoreError>;
    /// How many items are neither installed nor turned down.
    async fn open_items(&self, team: &str) -> Result<usize, StoreError>;
    /// Installs an item: its bytes into the library by the library's own gates, its lock, its state and the audit
    /// entries, all or nothing. The item must still be approved, and the lock the one that the decision rests on.
    async fn install(&self, install: Install<'_>, events: Vec<Event>) -> Result<Placed, StoreError>;
    /// Takes an installed skill out of use, by the library's own gates, and removes its lock. Succeeds if the library no
    /// longer has it.
    async fn remove(&self, actor: Actor<'_>, name: &str, at: Timestamp, event: Event) -> Result<(), StoreError>;
    /// One lock with its report.
    async fn installed(&self, team: &str, name: &str) -> Result<Option<Installed>, StoreError>;
    /// All locks, by name.
    async fn all_installed(&self, team: &str) -> Result<Vec<Installed>, StoreError>;
    /// The skill as it stands in the library now; nothing if it is gone.
    async fn library(&self, team: &str, name: &str) -> Result<Option<Tree>, StoreError>;
    /// Who holds a name, as far as the actor sees it.
    async fn holder(&self, actor: Actor<'_>, name: &str) -> Result<Holder, StoreError>;
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
    /// At most `limit` entries of the log that follow the one with number `after`, oldest first.
    async fn audit(&self, team: &str, after: u64, limit: usize) -> Result<Vec<Entry>, StoreError>;
}
