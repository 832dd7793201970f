//! What is no longer accepted although its signature is good: tokens by id, and everything of a disabled user.
//!
//! The list is small and complete: whoever pushes it pushes all of it. It is kept in a file, since a server that comes up
//! while the orchestrator is down must not accept what was revoked before.

use std::collections::{HashMap, HashSet};
use std::fs;
use std::io;
use std::path::PathBuf;
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard};

use serde::{Deserialize, Serialize};
use steward_base::names::{TeamId, UserId};
use steward_base::{Caller, Clock, Timestamp};
use steward_runtime::data_dir;

/// One thing that is no longer accepted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Revoked {
    /// A token, by its id.
    Token(String),
    /// Every credential issued on this user's behalf.
    User(TeamId, UserId),
}

/// An entry of the list.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Revocation {
    /// What is revoked.
    pub subject: Revoked,
    /// When it may be forgotten, because it would have ended anyway; absent: never.
    pub expires: Option<Timestamp>,
}

/// The list of a server.
#[derive(Debug)]
pub struct Revocations {
    path: Option<PathBuf>,
    clock: Arc<dyn Clock>,
    list: RwLock<List>,
}

/// The entries, and the same by what a call is looked up with: every call of every server asks.
#[derive(Debug, Default)]
struct List {
    entries: Vec<Revocation>,
    /// Whether the file says the same.
    kept: bool,
    tokens: HashSet<String>,
    users: HashMap<TeamId, HashSet<UserId>>,
}

impl List {
    fn new(entries: Vec<Revocation>, kept: bool) -> Self {
        let mut list = Self {
            kept,
            ..Self::default()
        };
        for entry in &entries {
            match &entry.subject {
                Revoked::Token(id) => {
                    list.tokens.insert(id.clone());
                }
                Revoked::User(team, user) => {
                    list.users.entry(team.clone()).or_default().insert(user.clone());
                }
            }
        }
        list.entries = entries;
        list
    }

    fn covers(&self, caller: &Caller) -> bool {
        let disabled = |team, user| self.users.get(team).is_some_and(|users| users.contains(user));
        self.tokens.contains(&caller.token_id)
            || caller
                .team
                .as_ref()
                .zip(caller.user.as_ref())
                .is_some_and(|(team, user)| disabled(team, user))
    }
}

impl Revocations {
    /// Kept in memory only, for tests.
    pub fn in_memory(clock: Arc<dyn Clock>) -> Self {
        Self {
            path: None,
            clock,
            list: RwLock::default(),
        }
    }

    /// Kept in the file at `path`; what is there counts from now on. A file that cannot be understood is an error: a
    /// server must not start without knowing what it must refuse.
    pub fn open(path: PathBuf, clock: Arc<dyn Clock>) -> io::Result<Self> {
        let entries = match fs::read(&path) {
            Ok(bytes) => {
                serde_json::from_slice(&bytes).map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))?
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => Vec::new(),
            Err(error) => return Err(error),
        };
        Ok(Self {
            path: Some(path),
            clock,
            list: RwLock::new(List::new(entries, true)),
        })
    }

    /// Takes a complete new list. It is in force from now on even if it cannot be kept: the error says that it would be
    /// lost with the process, and the same list again tries to keep it again.
    pub fn replace(&self, mut entries: Vec<Revocation>) -> io::Result<()> {
        let now = self.clock.now();
        entries.retain(|entry| entry.expires.is_none_or(|expires| now < expires));
        let mut current = self.list.write().unwrap_or_else(PoisonError::into_inner);
        if current.entries != entries {
            tracing::info!(entries = entries.len(), "revocations changed");
            *current = List::new(entries, false);
        }
        if current.kept {
            return Ok(());
        }
        // Still held while writing, so that the file never says something older than the list.
        if let Some(path) = &self.path {
            let bytes = serde_json::to_vec(&current.entries).map_err(io::Error::other)?;
            data_dir::write_private(path, &bytes)?;
        }
        current.kept = true;
        Ok(())
    }

    /// The list in force.
    pub fn list(&self) -> Vec<Revocation> {
        self.in_force().entries.clone()
    }

    /// Whether the caller's credential is revoked, or the user it acts for is disabled: a person's own, a turn's, a job's
    /// and a service's on the person's behalf alike.
    pub fn covers(&self, caller: &Caller) -> bool {
        self.in_force().covers(caller)
    }

    fn in_force(&self) -> RwLockReadGuard<'_, List> {
        self.list.read().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use steward_base::{Identity, Origin, Role};
    use steward_testkit::MockClock;

    fn revoked(token: &str) -> Vec<Revocation> {
        vec![Revocation {
            subject: Revoked::Token(token.to_owned()),
            expires: None,
        }]
    }

    fn caller(token: &str) -> Caller {
        Caller {
            team: None,
            user: None,
            role: Role::Viewer,
            origin: Origin::Foreground,
            identity: Identity::User,
            token_id: token.to_owned(),
        }
    }

    #[test]
    fn what_cannot_be_kept_is_refused_all_the_same_and_kept_when_it_can_be() {
        let root = tempfile::tempdir().unwrap();
        let path = root.path().join("later/revocations.json");
        let list = Revocations::open(path.clone(), Arc::new(MockClock::default())).unwrap();
        assert!(list.replace(revoked("t1")).is_err());
        assert!(list.covers(&caller("t1")) && !list.covers(&caller("t2")));
        std::fs::create_dir(root.path().join("later")).unwrap();
        list.replace(revoked("t1")).unwrap();
        let after_restart = Revocations::open(path, Arc::new(MockClock::default())).unwrap();
        assert!(after_restart.covers(&caller("t1")));
    }

    #[test]
    fn an_entry_whose_time_is_over_is_forgotten_and_a_damaged_file_is_an_error() {
        let root = tempfile::tempdir().unwrap();
        let path = root.path().join("revocations.json");
        let clock = MockClock::default();
        let list = Revocations::open(path.clone(), Arc::new(clock.clone())).unwrap();
        let mut entries = revoked("t1");
        entries[0].expires = Some(clock.now());
        list.replace(entries).unwrap();
        assert_eq!(list.list(), []);
        std::fs::write(&path, "[{").unwrap();
        assert!(Revocations::open(path, Arc::new(clock)).is_err());
    }
}
