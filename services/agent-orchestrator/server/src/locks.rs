//! One lock for each session of this process, held while it is decided what a request does to the session: begin a turn,
//! close one, change what the session begins with. Between processes the store's lease and its checks do the same.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use steward_orchestrator_core::session::SessionKey;

/// Locks that nobody uses any more are cleared away when there are this many.
const MANY: usize = 1024;

type SessionLock = tokio::sync::Mutex<()>;

/// The locks. Clones are the same ones.
#[derive(Clone, Default)]
pub(crate) struct SessionLocks(Arc<Mutex<HashMap<SessionKey, Weak<SessionLock>>>>);

impl fmt::Debug for SessionLocks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SessionLocks").finish_non_exhaustive()
    }
}

impl SessionLocks {
    /// The session's lock.
    pub(crate) fn of(&self, key: &SessionKey) -> Arc<SessionLock> {
        let mut locks = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(lock) = locks.get(key).and_then(Weak::upgrade) {
            return lock;
        }
        if locks.len() >= MANY {
            locks.retain(|_, lock| lock.strong_count() > 0);
        }
        let lock = Arc::new(SessionLock::default());
        locks.insert(key.clone(), Arc::downgrade(&lock));
        lock
    }
}
