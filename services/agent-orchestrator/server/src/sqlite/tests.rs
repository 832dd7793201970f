//! The SQLite store keeps the contract of the core, and keeps what it acknowledged.

use steward_orchestrator_core::access::{AccessStore as _, contract};
use steward_testkit::TempDir;

use super::SqliteAccessStore;

#[tokio::test]
async fn the_sqlite_store_keeps_the_contract() {
    let folder = TempDir::new("access");
    let store = SqliteAccessStore::open(folder.join("access.db"), 2).await.unwrap();
    contract::suite(&store).await.unwrap();
    store.close().await;
}

#[tokio::test]
async fn what_was_written_is_there_after_a_restart() {
    let folder = TempDir::new("access");
    let store = SqliteAccessStore::open(folder.join("access.db"), 2).await.unwrap();
    contract::suite(&store).await.unwrap();
    let (teams, home) = (store.teams(None, 50).await.unwrap(), store.home_team().await.unwrap());
    store.close().await;
    let again = SqliteAccessStore::open(folder.join("access.db"), 2).await.unwrap();
    assert_eq!(again.teams(None, 50).await.unwrap(), teams);
    assert_eq!(again.home_team().await.unwrap(), home);
    again.close().await;
}
