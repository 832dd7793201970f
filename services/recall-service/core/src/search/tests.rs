//! The store contract on the in-memory store, and the fold by itself.

use super::*;
use crate::store::memory::InMemorySessionStore;
use proptest::prelude::*;

#[expect(clippy::unused_async, reason = "the contract awaits stores that have to be opened")]
async fn empty_store() -> ((), Arc<dyn SessionStore>) {
    ((), Arc::new(InMemorySessionStore::default()))
}

crate::session_store_contract!(empty_store);

proptest! {
    #[test]
    fn the_fold_keeps_the_first_of_each_lineage(roots in prop::collection::vec(0_u8..12, 0..80), limit in 1_usize..8) {
        let mut fold = Fold::new(limit);
        let mut expected: Vec<u8> = Vec::new();
        let mut broken = false;
        for (seq, root) in roots.iter().enumerate() {
            if expected.len() < limit && !expected.contains(root) {
                expected.push(*root);
            }
            if !broken {
                let id = SessionId::parse(format!("r{root}")).unwrap();
                let hit = Hit { session: id.clone(), root: id, seq: seq as u64, score: 0.0 };
                broken = fold.offer(hit).is_break();
            }
        }
        let kept: Vec<String> = fold.into_hits().into_iter().map(|hit| hit.root.as_str().to_owned()).collect();
        prop_assert_eq!(kept, expected.into_iter().map(|root| format!("r{root}")).collect::<Vec<_>>());
    }
}
