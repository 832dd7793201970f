//! Indexes that were rendered, kept for as long as what they show is the same (`S-4`).
//!
//! The store counts, per team, every change of anything that a listing shows; an index is good as long as that number is.
//! A look at a skill changes no listing and no number.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, PoisonError};

use steward_base::names::{TeamId, UserId};

use crate::index::{Filter, Index, shown_description};

/// Indexes that are kept; the ones that were not asked for longest go.
const KEPT: usize = 256;
/// Descriptions that are kept as they are shown; with more than these it begins anew.
const DESCRIBED: usize = 20_000;

/// Whose index, for what kind of session.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct IndexKey {
    pub(crate) team: TeamId,
    pub(crate) user: Option<UserId>,
    pub(crate) filter: Filter,
}

#[derive(Debug)]
struct Kept {
    generation: u64,
    index: Arc<Index>,
    used: u64,
}

#[derive(Debug, Default)]
struct Inner {
    kept: BTreeMap<IndexKey, Kept>,
    clock: u64,
    /// Descriptions as they are shown: the same text is screened once, whoever has it.
    shown: HashMap<String, String>,
}

/// The kept ones.
#[derive(Debug, Default)]
pub(crate) struct Indexes(Mutex<Inner>);

impl Indexes {
    /// The index of this state, if it is kept.
    pub(crate) fn get(&self, key: &IndexKey, generation: u64) -> Option<Arc<Index>> {
        let mut inner = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        inner.clock += 1;
        let now = inner.clock;
        let kept = inner.kept.get_mut(key).filter(|kept| kept.generation == generation)?;
        kept.used = now;
        Some(Arc::clone(&kept.index))
    }

    /// A description as an index shows it.
    pub(crate) fn described(&self, description: &str) -> String {
        let mut inner = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(shown) = inner.shown.get(description) {
            return shown.clone();
        }
        let shown = shown_description(description);
        if inner.shown.len() >= DESCRIBED {
            inner.shown.clear();
        }
        inner.shown.insert(description.to_owned(), shown.clone());
        shown
    }

    /// Keeps an index.
    pub(crate) fn put(&self, key: IndexKey, generation: u64, index: Arc<Index>) {
        let mut inner = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        inner.clock += 1;
        let used = inner.clock;
        inner.kept.insert(
            key,
            Kept {
                generation,
                index,
                used,
            },
        );
        if inner.kept.len() > KEPT {
            let oldest = inner
                .kept
                .iter()
                .min_by_key(|(_, kept)| kept.used)
                .map(|(key, _)| key.clone());
            if let Some(oldest) = oldest {
                inner.kept.remove(&oldest);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(user: usize) -> IndexKey {
        IndexKey {
            team: TeamId::parse("red").unwrap(),
            user: UserId::parse(format!("u{user}")).ok(),
            filter: Filter::default(),
        }
    }

    #[test]
    fn an_index_is_kept_for_its_own_state_only_and_the_oldest_goes() {
        let indexes = Indexes::default();
        let index = Arc::new(crate::index::render(&[], &Filter::default(), &[]));
        indexes.put(key(0), 1, Arc::clone(&index));
        assert!(indexes.get(&key(0), 1).is_some());
        assert!(indexes.get(&key(0), 2).is_none() && indexes.get(&key(1), 1).is_none());
        for user in 1..=KEPT {
            indexes.get(&key(0), 1);
            indexes.put(key(user), 1, Arc::clone(&index));
        }
        assert!(indexes.get(&key(0), 1).is_some() && indexes.get(&key(1), 1).is_none());
    }
}
