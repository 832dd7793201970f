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
use crate::publish::Publication;
use crate::quarantine::{Item, State};
use crate::withdrawal::{Standing, Withdrawal};

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

/// A withdrawal that begins, changes or ends.
#[derive(Debug, Clone, Copy)]
pub struct Withdraw<'a> {
    /// Who says so.
    pub actor: Actor<'a>,
    /// Digest of the tree.
    pub digest: &'a str,
    /// What the decision rests on. If it is something else by now, nothing is done.
    pub before: Option<&'a Withdrawal>,
    /// What it is afterwards; nothing if it ends.
    pub after: Option<&'a Withdrawal>,
    /// The skill that is installed with this digest. If it is another one by now, nothing is done.
    pub skill: Option<&'a str>,
    /// When.
    pub at: Timestamp,
}

/// What a withdrawal does to the library.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sight {
    /// They go out of agents' sight.
    Hide,
    /// They come back.
    Show,
}

impl Withdraw<'_> {
    /// What it does to skills with the tree; nothing where their sight does not change.
    pub fn sight(&self) -> Option<Sight> {
        let revoked = |withdrawal: Option<&Withdrawal>| {
            withdrawal.is_some_and(|withdrawal| withdrawal.standing == Standing::Revoked)
        };
        match (revoked(self.before), revoked(self.after)) {
            (false, true) => Some(Sight::Hide),
            (true, false) => Some(Sight::Show),
            _ => None,
        }
    }
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
    /// entries, all or nothing. The item must still be approved, its tree not withdrawn, and the lock the one that the
    /// decision rests on.
    async fn install(&self, install: Install<'_>, events: Vec<Event>) -> Result<Placed, StoreError>;
    /// Takes an installed skill out of use, by the library's own gates, and removes its lock. Succeeds if the library no
    /// longer has it.
    async fn remove(&self, actor: Actor<'_>, name: &str, at: Timestamp, event: Event) -> Result<(), StoreError>;
    /// What is known of one tree's withdrawal.
    async fn withdrawal(&self, team: &str, digest: &str) -> Result<Option<Withdrawal>, StoreError>;
    /// All of them, by digest.
    async fn withdrawals(&self, team: &str) -> Result<Vec<Withdrawal>, StoreError>;
    /// Begins, changes or ends a withdrawal, with what that does ([`Withdraw::sight`]) to the skill that is installed and to
    /// every copy of the tree in the team's library, and the audit entries, all or nothing. Pins and schedules do not hold
    /// it up.
    async fn withdraw(&self, withdraw: Withdraw<'_>, events: Vec<Event>) -> Result<(), StoreError>;
    /// Puts a publication in place of the one of its name, with its archive and the audit entry.
    async fn publish(
        &self,
        team: &str,
        publication: &Publication,
        archive: Vec<u8>,
        at: Timestamp,
        event: Event,
    ) -> Result<(), StoreError>;
    /// Ends a publication, with the audit entry; says whether there was one. Without one nothing is recorded.
    async fn unpublish(&self, team: &str, name: &str, at: Timestamp, event: Event) -> Result<bool, StoreError>;
    /// What the team publishes, by name.
    async fn publications(&self, team: &str) -> Result<Vec<Publication>, StoreError>;
    /// The archive with this digest, if that is what is published under the name.
    async fn archive(&self, team: &str, name: &str, digest: &str) -> Result<Option<Vec<u8>>, StoreError>;
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
