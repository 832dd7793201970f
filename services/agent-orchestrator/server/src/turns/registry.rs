//! Which turns this process knows: the running one of each session, and a bounded number of those that wait or have
//! ended. Forgetting one loses nothing but the finer grain of its events.

use std::collections::{HashMap, VecDeque};
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use steward_orchestrator_core::session::SessionKey;

use super::live::{LiveTurn, Mark};

#[derive(Default)]
struct Known {
    running: HashMap<SessionKey, Arc<LiveTurn>>,
    resting: VecDeque<Arc<LiveTurn>>,
}

/// The turns of this process.
pub(crate) struct Registry {
    known: Mutex<Known>,
    kept: usize,
}

impl fmt::Debug for Registry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let known = self.known();
        f.debug_struct("Registry")
            .field("running", &known.running.len())
            .field("resting", &known.resting.len())
            .finish_non_exhaustive()
    }
}

impl Registry {
    /// Keeps the events of at most `kept` turns that do not run.
    pub(crate) fn new(kept: usize) -> Self {
        Self {
            known: Mutex::default(),
            kept,
        }
    }

    /// The turn that runs in the session.
    pub(crate) fn running(&self, key: &SessionKey) -> Option<Arc<LiveTurn>> {
        self.known().running.get(key).cloned()
    }

    /// The turn that has answered this request, and where its answer begins.
    pub(crate) fn answered(&self, key: &SessionKey, request: &str) -> Option<(Arc<LiveTurn>, Mark)> {
        let known = self.known();
        let resting = known.resting.iter().rev().filter(|live| live.key() == key);
        let mut candidates = known.running.get(key).into_iter().chain(resting);
        candidates.find_map(|live| Some((Arc::clone(live), live.mark(request)?)))
    }

    /// A turn of the session, running or not.
    pub(crate) fn find(&self, key: &SessionKey, turn: &str) -> Option<Arc<LiveTurn>> {
        let known = self.known();
        let resting = known.resting.iter().rev().filter(|live| live.key() == key);
        let mut candidates = known.running.get(key).into_iter().chain(resting);
        candidates.find(|live| live.id() == turn).cloned()
    }

    /// The turn of the session that came to rest last: the one that waits, if one does.
    pub(crate) fn resting(&self, key: &SessionKey) -> Option<Arc<LiveTurn>> {
        self.known()
            .resting
            .iter()
            .rev()
            .find(|live| live.key() == key)
            .cloned()
    }

    /// A segment of the turn begins.
    pub(crate) fn run(&self, live: &Arc<LiveTurn>) {
        let mut known = self.known();
        known.resting.retain(|other| !Arc::ptr_eq(other, live));
        known.running.insert(live.key().clone(), Arc::clone(live));
    }

    /// Its segment is over and what became of it is stored.
    pub(crate) fn rest(&self, live: &Arc<LiveTurn>) {
        live.rest();
        let mut known = self.known();
        known.stop(live);
        known.resting.push_back(Arc::clone(live));
        while known.resting.len() > self.kept {
            known.resting.pop_front();
        }
    }

    /// Its segment is over and the store does not know how: the next request must ask the store.
    pub(crate) fn forget(&self, live: &Arc<LiveTurn>) {
        live.rest();
        self.known().stop(live);
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Known {
    fn stop(&mut self, live: &Arc<LiveTurn>) {
        if self
            .running
            .get(live.key())
            .is_some_and(|running| Arc::ptr_eq(running, live))
        {
            self.running.remove(live.key());
        }
    }
}
