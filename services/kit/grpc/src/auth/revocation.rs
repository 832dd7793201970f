//! What is no longer accepted although its signature is good: tokens by id, and everything of a disabled user.
//!
//! The list is small and complete: whoever pushes it pushes all of it. It is kept in a file, since a server that comes up
//! while the orchestrator is down must not accept what was revoked before. It has a version, since a push may be late: a
//! list that is older than the one in force changes nothing.

use std::collections::{HashMap, HashSet};
use std::fs;
use std::io;
use std::path::PathBuf;
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

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
    version: u64,
    entries: Vec<Revocation>,
    /// Whether the file says the same.
    kept: bool,
    tokens: HashSet<String>,
    users: HashMap<TeamId, HashSet<UserId>>,
}

/// What the file says.
#[derive(Debug, Default, Serialize, Deserialize)]
struct Kept {
    version: u64,
    entries: Vec<Revocation>,
}

/// Files of both forms: the first one had no version.
#[derive(Deserialize)]
#[serde(untagged)]
enum AnyKept {
    Versioned(Kept),
    Bare(Vec<Revocation>),
}

impl From<AnyKept> for Kept {
    fn from(kept: AnyKept) -> Self {
        match kept {
            AnyKept::Versioned(kept) => kept,
            AnyKept::Bare(entries) => Self { version: 0, entries },
        }
    }
}

impl List {
    fn new(version: u64, entries: Vec<Revocation>, kept: bool) -> Self {
        let mut list = Self {
            version,
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
        let kept = match fs::read(&path) {
            Ok(bytes) => serde_json::from_slice::<AnyKept>(&bytes)
                .map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))?
                .into(),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Kept::default(),
            Err(error) => return Err(error),
        };
        Ok(Self {
            path: Some(path),
            clock,
            list: RwLock::new(List::new(kept.version, kept.entries, true)),
        })
    }

    /// Takes a complete list that was read from where it belongs just now, and answers its version: that of the list in
    /// force if both say the same, else a higher one. For the signer, which reads and publishes one list at a time.
    pub fn publish(&self, entries: Vec<Revocation>) -> io::Result<u64> {
        let now = self.clock.now();
        let mut current = self.current();
        let entries = in_time(entries, now);
        let version = if current.version > 0 && current.entries == entries {
            current.version
        } else {
            // Higher than any before, also after the clock was set back.
            let by_clock = u64::try_from(now.as_micros()).unwrap_or(0);
            by_clock.max(current.version.saturating_add(1))
        };
        self.take(&mut current, version, entries)
    }

    /// Takes a complete list, unless a later one is in force, and answers the version that is. It is in force from now on
    /// even if it cannot be kept: the error says that it would be lost with the process, and the same list again tries to
    /// keep it again.
    pub fn replace(&self, version: u64, entries: Vec<Revocation>) -> io::Result<u64> {
        let now = self.clock.now();
        let mut current = self.current();
        if version < current.version {
            tracing::info!(
                version,
                in_force = current.version,
                "an old list of revocations came late"
            );
            let (version, entries) = (current.version, current.entries.clone());
            return self.take(&mut current, version, entries);
        }
        self.take(&mut current, version, in_time(entries, now))
    }

    /// The lock is held while writing, so that the file never says something older than the list.
    fn take(&self, current: &mut List, version: u64, entries: Vec<Revocation>) -> io::Result<u64> {
        if current.entries != entries {
            tracing::info!(version, entries = entries.len(), "revocations changed");
            *current = List::new(version, entries, false);
        } else if current.version != version {
            current.version = version;
            current.kept = false;
        }
        if current.kept {
            return Ok(version);
        }
        if let Some(path) = &self.path {
            let kept = Kept {
                version,
                entries: current.entries.clone(),
            };
            let bytes = serde_json::to_vec(&kept).map_err(io::Error::other)?;
            data_dir::write_private(path, &bytes)?;
        }
        current.kept = true;
        Ok(version)
    }

    fn current(&self) -> RwLockWriteGuard<'_, List> {
        self.list.write().unwrap_or_else(PoisonError::into_inner)
    }

    /// The list in force and its version, for those that pull it.
    pub fn versioned(&self) -> (u64, Vec<Revocation>) {
        let list = self.in_force();
        (list.version, list.entries.clone())
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

/// Without what would have ended anyway.
fn in_time(mut entries: Vec<Revocation>, now: Timestamp) -> Vec<Revocation> {
    entries.retain(|entry| entry.expires.is_none_or(|expires| now < expires));
    entries
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
        assert!(list.replace(1, revoked("t1")).is_err());
        assert!(list.covers(&caller("t1")) && !list.covers(&caller("t2")));
        std::fs::create_dir(root.path().join("later")).unwrap();
        list.replace(1, revoked("t1")).unwrap();
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
        list.replace(1, entries).unwrap();
        assert_eq!(list.list(), []);
        std::fs::write(&path, "[{").unwrap();
        assert!(Revocations::open(path, Arc::new(clock)).is_err());
    }

    #[test]
    fn an_old_list_never_wins_also_after_a_restart_and_a_clock_that_went_back() {
        let root = tempfile::tempdir().unwrap();
        let path = root.path().join("revocations.json");
        let clock = MockClock::default();
        let open = || Revocations::open(path.clone(), Arc::new(clock.clone())).unwrap();
        let signer = open();
        let first = signer.publish(revoked("t1")).unwrap();
        assert_eq!(signer.publish(revoked("t1")).unwrap(), first, "nothing changed");
        clock.set(Timestamp::from_secs(0));
        let signer = open();
        let second = signer.publish(revoked("t2")).unwrap();
        assert!(second > first);

        let server = Revocations::in_memory(Arc::new(clock.clone()));
        assert_eq!(server.replace(second, revoked("t2")).unwrap(), second);
        assert_eq!(server.replace(first, revoked("t1")).unwrap(), second, "it came late");
        assert!(server.covers(&caller("t2")) && !server.covers(&caller("t1")));
        let third = signer.publish(Vec::new()).unwrap();
        assert_eq!(server.replace(third, Vec::new()).unwrap(), third);
        assert_eq!(server.versioned(), (third, Vec::new()));
    }

    #[test]
    fn a_file_from_before_versions_counts_until_the_first_list_with_one() {
        let root = tempfile::tempdir().unwrap();
        let path = root.path().join("revocations.json");
        std::fs::write(&path, r#"[{"subject":{"token":"t1"},"expires":null}]"#).unwrap();
        let list = Revocations::open(path, Arc::new(MockClock::default())).unwrap();
        assert!(list.covers(&caller("t1")));
        list.replace(1, revoked("t2")).unwrap();
        assert!(list.covers(&caller("t2")) && !list.covers(&caller("t1")));
    }
}
