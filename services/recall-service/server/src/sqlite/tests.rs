//! The store contract on SQLite, and what only files can get wrong.

use std::sync::Arc;

use steward_recall_core::SessionStore;
use steward_testkit::TempDir;

use super::*;

async fn empty_store() -> (TempDir, Arc<dyn SessionStore>) {
    let folder = TempDir::new("recall-store");
    let store = SqliteSessionStore::open(folder.path().to_owned(), 2).await.unwrap();
    (folder, Arc::new(store))
}

steward_recall_core::session_store_contract!(empty_store);
