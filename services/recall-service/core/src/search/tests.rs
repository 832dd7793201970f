//! The store contract on the in-memory store.

use super::*;
use crate::store::memory::InMemorySessionStore;

#[expect(clippy::unused_async, reason = "the contract awaits stores that have to be opened")]
async fn empty_store() -> ((), Arc<dyn SessionStore>) {
    ((), Arc::new(InMemorySessionStore::default()))
}

crate::session_store_contract!(empty_store);
