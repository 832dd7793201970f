//! How the statements of a search are run: what SQLite plans decides whether they are fast.

use steward_base::names::TeamId;
use steward_testkit::TempDir;

use super::super::SqliteSessionStore;
use super::super::teams::Missing;
use super::super::tests::plan;
use super::{COUNT, SEEN};

/// Neither reads a table from its beginning to its end.
#[tokio::test]
async fn words_are_counted_and_messages_seen_by_way_of_an_index() {
    let folder = TempDir::new("recall-plans");
    let store = SqliteSessionStore::open(folder.path().to_owned(), folder.path().join("backups"), 4)
        .await
        .unwrap();
    let team = TeamId::parse("red").unwrap();
    let sqlite = store.teams.get(&team, Missing::Create).await.unwrap().unwrap();
    for (sql, least) in [(COUNT, 1), (SEEN, 4)] {
        let steps = plan(&sqlite, sql).await;
        let searched = steps
            .iter()
            .filter(|step| step.starts_with("SEARCH") || step.contains("VIRTUAL TABLE INDEX 0:M"));
        assert!(searched.count() >= least, "{steps:#?}");
        for whole in ["SCAN message ", "SCAN m ", "SCAN s ", "SCAN session "] {
            assert!(
                steps.iter().all(|step| !format!("{step} ").starts_with(whole)),
                "{steps:#?}"
            );
        }
    }
}
