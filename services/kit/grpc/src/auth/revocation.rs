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
    tokens: HashSet<String>,
    users: HashMap<TeamId, HashSet<UserId>>,
}

impl List {
    fn new(entries: Vec<Revocation>) -> Self {
        let mut list = Self::default();
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
            list: RwLock::new(List::new(entries)),
        })
    }

    /// Takes a complete new list: on disk first, then in force.
    pub fn replace(&self, mut entries: Vec<Revocation>) -> io::Result<()> {
        let now = self.clock.now();
        entries.retain(|entry| entry.expires.is_none_or(|expires| now < expires));
        // Held while writing, so that the file and the list never differ.
        let mut current = self.list.write().unwrap_or_else(PoisonError::into_inner);
        if current.entries == entries {
            return Ok(());
        }
        if let Some(path) = &self.path {
            let bytes = serde_json::to_vec(&entries).map_err(io::Error::other)?;
            data_dir::write_private(path, &bytes)?;
        }
        tracing::info!(entries = entries.len(), "revocations changed");
        *current = List::new(entries);
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
