//! What is no longer accepted although its signature is good: tokens by id, and everything of a disabled user.
//!
//! The list is small and complete: whoever pushes it pushes all of it. It is kept in a file, since a server that comes up
//! while the orchestrator is down must not accept what was revoked before.

use std::fs;
use std::io;
use std::path::PathBuf;
use std::sync::{Arc, PoisonError, RwLock};

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
    entries: RwLock<Vec<Revocation>>,
}

impl Revocations {
    /// Kept in memory only, for tests.
    pub fn in_memory(clock: Arc<dyn Clock>) -> Self {
        Self {
            path: None,
            clock,
            entries: RwLock::default(),
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
            entries: RwLock::new(entries),
        })
    }

    /// Takes a complete new list: on disk first, then in force.
    pub fn replace(&self, mut entries: Vec<Revocation>) -> io::Result<()> {
        let now = self.clock.now();
        entries.retain(|entry| entry.expires.is_none_or(|expires| now < expires));
        // Held while writing, so that the file and the list never differ.
        let mut current = self.entries.write().unwrap_or_else(PoisonError::into_inner);
        if *current == entries {
            return Ok(());
        }
        if let Some(path) = &self.path {
            let bytes = serde_json::to_vec(&entries).map_err(io::Error::other)?;
            data_dir::write_private(path, &bytes)?;
        }
        tracing::info!(entries = entries.len(), "revocations changed");
        *current = entries;
        Ok(())
    }

    /// The list in force.
    pub fn list(&self) -> Vec<Revocation> {
        self.entries.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Whether the caller's credential is revoked, or the user it acts for is disabled.
    pub fn covers(&self, caller: &Caller) -> bool {
        let entries = self.entries.read().unwrap_or_else(PoisonError::into_inner);
        entries.iter().any(|entry| match &entry.subject {
            Revoked::Token(id) => *id == caller.token_id,
            Revoked::User(team, user) => caller.team.as_ref() == Some(team) && caller.user.as_ref() == Some(user),
        })
    }
}
