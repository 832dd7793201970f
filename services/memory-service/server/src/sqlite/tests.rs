use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use sqlx::Connection as _;
use steward_memory_core::store::contract::{self, adding, frame, person, store};
use steward_memory_core::{Loaded, Target};
use steward_store::Sql;
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

/// `M-8`, D-10.
#[tokio::test]
async fn what_was_answered_is_there_after_the_store_is_opened_again() {
    let folder = TempDir::new("memory-reopen");
    let notes = store("red", person("ann"), Target::Notes);
    let sqlite = open(folder.path()).await;
    for at in 1..=20 {
        let decide = move |loaded: &Loaded| {
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
    let decide = move |_: &Loaded| Ok(adding("e2", &large, "", 2));
    let failed = sqlite.write(frame(&notes), Box::new(decide)).await;
    assert!(matches!(failed, Err(Error::StorageFull { .. })), "{failed:?}");
    let book = sqlite.book(&notes).await.unwrap();
    assert_eq!((book.revision, book.entries.len()), (1, 1));
    assert_eq!(book.entries[0].content, "kept");
}

async fn limit_pages(sqlite: &SqliteMemoryStore, pages: u32) {
    // SQLite never sets it below the present size, which is what a full disk is.
    let pragma = Sql::built(format!("PRAGMA max_page_count = {pages}"));
    let limited = sqlite.sqlite.update(move |db| db.value::<i64>(pragma, ()));
    limited.await.unwrap();
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
    let changed = sqlite
        .sqlite
        .update(|db| db.execute("UPDATE revisions SET content = 'never said'", ()))
        .await;
    assert!(changed.is_err());
    assert_eq!(sqlite.book(&notes).await.unwrap().entries[0].content, "true then");
}

#[tokio::test]
async fn a_row_that_cannot_be_read_hides_no_other_and_is_left_as_it_is() {
    let folder = TempDir::new("memory-damaged");
    let notes = store("red", person("ann"), Target::Notes);
    let sqlite = open(folder.path()).await;
    for (at, id) in ["bytes", "fine", "missing", "origin"].into_iter().enumerate() {
        let decide = move |loaded: &Loaded| Ok(adding(id, id, "", loaded.book.revision + 1));
        sqlite.write(frame(&notes), Box::new(decide)).await.unwrap();
        assert_eq!(sqlite.book(&notes).await.unwrap().entries.len(), at + 1);
    }
    sqlite.close().await;
    by_hand(
        &folder.join("memory.db"),
        &[
            "DROP TRIGGER revisions_are_append_only",
            "UPDATE revisions SET content = CAST(x'636166E9' AS TEXT) WHERE entry = 'bytes'",
            "UPDATE revisions SET origin = 'galaxy' WHERE entry = 'origin'",
            "DELETE FROM revisions WHERE entry = 'missing'",
            "UPDATE books SET refusals = 'not json'",
        ],
    )
    .await;
    let sqlite = open(folder.path()).await;
    let book = sqlite.book(&notes).await.unwrap();
    let good: Vec<&str> = book.entries.iter().map(|entry| entry.content.as_str()).collect();
    assert_eq!(
        (good, book.damaged.clone()),
        (vec!["fine"], ids(&["bytes", "missing", "origin"]))
    );

    let decide = |loaded: &Loaded| Ok(adding("later", "later", "", loaded.book.revision + 1));
    sqlite.write(frame(&notes), Box::new(decide)).await.unwrap();
    let after = sqlite.book(&notes).await.unwrap();
    assert_eq!((after.entries.len(), after.damaged), (2, book.damaged));
    let history = sqlite.history(&notes, &EntryId::parse("origin").unwrap()).await;
    assert!(
        matches!(history, Err(Error::DataDamaged { .. })),
        "nothing is guessed at"
    );
}

#[tokio::test]
async fn a_proposal_that_cannot_be_read_hides_no_other() {
    let folder = TempDir::new("memory-damaged-proposal");
    let sqlite = open(folder.path()).await;
    for id in ["p1", "p2", "p3"] {
        contract::keep(&sqlite, "red", contract::proposal(id, person("ann"), "ann")).await;
    }
    sqlite.close().await;
    by_hand(
        &folder.join("memory.db"),
        &["UPDATE proposals SET operations = '[' WHERE proposal = 'p2'"],
    )
    .await;
    let sqlite = open(folder.path()).await;
    let query = ProposalQuery {
        team: TeamId::parse("red").unwrap(),
        state: steward_memory_core::State::Pending,
        visible: steward_memory_core::Visible {
            user: steward_base::names::UserId::parse("ann").ok(),
            shared: false,
        },
        at: Timestamp::from_secs(1_000),
        after: None,
        limit: 10,
    };
    let page = sqlite.proposals(&query).await.unwrap();
    let listed: Vec<(bool, &str)> = page
        .iter()
        .map(|one| (one.is_ok(), steward_memory_core::listed_id(one)))
        .collect();
    assert_eq!(listed, [(true, "p1"), (false, "p2"), (true, "p3")]);
    let from = ProposalQuery {
        after: Some("p2".to_owned()),
        ..query
    };
    assert_eq!(sqlite.proposals(&from).await.unwrap().len(), 1);
    let p2 = ProposalId::parse("p2").unwrap();
    let one = sqlite.proposal(&from.team, &p2).await;
    assert!(matches!(one, Err(Error::DataDamaged { .. })), "nobody decides on it");
}

fn ids(texts: &[&str]) -> Vec<String> {
    texts.iter().map(|&text| text.to_owned()).collect()
}

/// Changes the file of a stopped service, as an operator could.
async fn by_hand(file: &Path, statements: &[&'static str]) {
    let options = sqlx::sqlite::SqliteConnectOptions::new()
        .filename(file)
        .foreign_keys(false);
    let mut connection = sqlx::SqliteConnection::connect_with(&options).await.unwrap();
    for statement in statements {
        sqlx::query(*statement).execute(&mut connection).await.unwrap();
    }
    connection.close().await.unwrap();
}
