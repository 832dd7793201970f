//! The public keys of a running server, and when they are read again.
//!
//! Reading is bounded: whoever sends tokens with made-up key ids makes the server read a small folder once a second and
//! no more. A folder that cannot be read, or that holds something that is no key, changes nothing: what was good stays
//! good and the log says why. A key that is taken out of the folder is out within a minute, for tokens that were verified
//! before as well.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::Duration;

use jsonwebtoken::DecodingKey;
use steward_base::{Clock, Timestamp, error_chain};

use super::keys::{KeyMap, PublicKeys, read_keys};

/// Shortest time between two readings that unknown key ids cause.
pub(super) const UNKNOWN_KEY_PAUSE: Duration = Duration::from_secs(1);

/// Longest life of what was read.
pub(super) const REFRESH: Duration = Duration::from_mins(1);

#[derive(Debug)]
pub(super) struct KeyRing {
    keys: RwLock<Arc<Keys>>,
    source: Option<PathBuf>,
    clock: Arc<dyn Clock>,
    reads: Mutex<Reads>,
}

struct Keys(KeyMap);

impl std::fmt::Debug for Keys {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_set().entries(self.0.keys()).finish()
    }
}

/// When the keys were last read: at all, and because of an unknown key id.
#[derive(Debug)]
struct Reads {
    any: Timestamp,
    unknown: Option<Timestamp>,
}

impl KeyRing {
    pub(super) fn new(keys: PublicKeys, clock: Arc<dyn Clock>) -> Self {
        let (keys, source) = keys.into_parts();
        let any = clock.now();
        Self {
            keys: RwLock::new(Arc::new(Keys(keys))),
            source,
            clock,
            reads: Mutex::new(Reads { any, unknown: None }),
        }
    }

    /// Whether the key is still one of ours.
    pub(super) fn knows(&self, key_id: &str) -> bool {
        self.read_again(|reads, now| !recent(reads.any, now, REFRESH));
        self.current().0.contains_key(key_id)
    }

    /// The key with this id, also if it was put there a moment ago.
    pub(super) fn find(&self, key_id: &str) -> Option<DecodingKey> {
        if !self.knows(key_id) {
            self.read_again(|reads, now| {
                let due = !reads.unknown.is_some_and(|last| recent(last, now, UNKNOWN_KEY_PAUSE));
                if due {
                    reads.unknown = Some(now);
                }
                due
            });
        }
        self.current().0.get(key_id).cloned()
    }

    fn current(&self) -> Arc<Keys> {
        Arc::clone(&self.keys.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Others wait while one reads, and then see what it found.
    fn read_again(&self, due: impl FnOnce(&mut Reads, Timestamp) -> bool) {
        let Some(source) = &self.source else { return };
        let mut reads = self.reads.lock().unwrap_or_else(PoisonError::into_inner);
        let now = self.clock.now();
        if !due(&mut reads, now) {
            return;
        }
        reads.any = now;
        match read_keys(source) {
            Ok(keys) => {
                let mut current = self.keys.write().unwrap_or_else(PoisonError::into_inner);
                if !current.0.keys().eq(keys.keys()) {
                    tracing::info!(keys = keys.len(), "public keys changed");
                }
                *current = Arc::new(Keys(keys));
            }
            Err(error) => tracing::warn!(error = error_chain(&error), "public keys not read again"),
        }
    }
}

/// Whether `last` is less than `within` ago. A clock that was set back makes nothing recent.
fn recent(last: Timestamp, now: Timestamp, within: Duration) -> bool {
    last <= now && now.since(last) < within
}
