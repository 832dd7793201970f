use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use steward_memory_core::store::contract::{self, adding, frame, person, store};
use steward_memory_core::{Decision, Target};
use steward_testkit::TempDir;

use super::*;

async fn open(folder: &Path) -> SqliteMemoryStore {
    SqliteMemoryStore::open(folder.join("memory.db"), 2).await.unwrap()
}

#[tokio::test]
async fn the_sqlite_store_keeps_the_contract() {
    let folder = TempDir::new("memory-contract");
    let count = AtomicUsize::new(0);
    contract::all(|| {
        let place = folder.join(count.fetch_add(1, Ordering::SeqCst).to_string());
        async move { Arc::new(open(&place).await) as Arc<dyn MemoryStore> }
    })
    .await;
}

#[tokio::test]
async fn what_was_answered_is_there_after_the_store_is_opened_again() {
    let folder = TempDir::new("memory-reopen");
    let notes = store("red", person("ann"), Target::Notes);
    let sqlite = open(folder.path()).await;
    for at in 1..=20 {
        let decide = move |loaded: &steward_memory_core::Loaded| {
            Ok(adding(
                &format!("e{at}"),
                &format!("fact {at}"),
                "",
                loaded.book.revision + 1,
            ))
        };
        sqlite.write(frame(&notes), Box::new(decide)).await.unwrap();
    }
    let before = sqlite.book(&notes).await.unwrap();
    sqlite.close().await;
    let after = open(folder.path()).await.book(&notes).await.unwrap();
    assert_eq!(after.entries.len(), 20);
    assert_eq!(before, after);
}

#[tokio::test]
async fn a_second_opening_is_refused() {
    let folder = TempDir::new("memory-twice");
    let _first = open(folder.path()).await;
    let second = SqliteMemoryStore::open(folder.join("memory.db"), 2).await;
    assert!(matches!(second, Err(StoreError::InUse { .. })));
}

#[tokio::test]
async fn a_full_disk_refuses_the_write_and_keeps_what_was_there() {
    let folder = TempDir::new("memory-full");
    let notes = store("red", person("ann"), Target::Notes);
    let sqlite = open(folder.path()).await;
    sqlite
        .write(frame(&notes), Box::new(|_| Ok(adding("e1", "kept", "", 1))))
        .await
        .unwrap();
    // The limit belongs to the writer's connection, of which there is one.
    limit_pages(&sqlite, 1).await;
    let large = "x".repeat(500_000);
    let decide = move |_: &steward_memory_core::Loaded| Ok(adding("e2", &large, "", 2));
    let failed = sqlite.write(frame(&notes), Box::new(decide)).await;
    assert!(matches!(failed, Err(Error::StorageFull { .. })), "{failed:?}");
    let book = sqlite.book(&notes).await.unwrap();
    assert_eq!((book.revision, book.entries.len()), (1, 1));
    assert_eq!(book.entries[0].content, "kept");
}

async fn limit_pages(sqlite: &SqliteMemoryStore, pages: u32) {
    let pragma = format!("PRAGMA max_page_count = {pages}");
    sqlite
        .sqlite
        .write(move |connection| {
            Box::pin(async move {
                // SQLite never sets it below the present size, which is what a full disk is.
                sqlx::query(sqlx::AssertSqlSafe(pragma)).execute(connection).await?;
                Ok::<_, StoreError>(())
            })
        })
        .await
        .unwrap();
}

#[tokio::test]
async fn a_revision_is_never_changed() {
    let folder = TempDir::new("memory-append-only");
    let notes = store("red", person("ann"), Target::Notes);
    let sqlite = open(folder.path()).await;
    sqlite
        .write(frame(&notes), Box::new(|_| Ok(adding("e1", "true then", "", 1))))
        .await
        .unwrap();
    let changed: Result<(), StoreError> = sqlite
        .sqlite
        .write(|connection| {
            Box::pin(async move {
                sqlx::query("UPDATE revisions SET content = 'never said'")
                    .execute(connection)
                    .await?;
                Ok(())
            })
        })
        .await;
    assert!(changed.is_err());
    assert_eq!(sqlite.book(&notes).await.unwrap().entries[0].content, "true then");
}

#[tokio::test]
async fn a_damaged_row_is_reported_and_never_guessed_at() {
    let folder = TempDir::new("memory-damaged");
    let notes = store("red", person("ann"), Target::Notes);
    let sqlite = open(folder.path()).await;
    sqlite
        .write(frame(&notes), Box::new(|_| Ok(adding("e1", "fine", "", 1))))
        .await
        .unwrap();
    sqlite
        .sqlite
        .write(|connection| {
            Box::pin(async move {
                sqlx::query("UPDATE books SET refusals = 'not json'")
                    .execute(connection)
                    .await?;
                Ok::<_, StoreError>(())
            })
        })
        .await
        .unwrap();
    assert!(matches!(sqlite.book(&notes).await, Err(Error::DataDamaged { .. })));
    let write = sqlite.write(frame(&notes), Box::new(|_| Ok(Decision::default()))).await;
    assert!(matches!(write, Err(Error::DataDamaged { .. })));
}
