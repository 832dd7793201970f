//! Damaged indexes and damaged files (`Q-11`).

use steward_recall_core::store::contract::World;
use steward_recall_core::store::contract::searches::rows_and_index_agree;

use super::*;

/// A store in which team `red` has three messages, one of them rewound.
async fn filled(folder: &TempDir) -> Arc<SqliteSessionStore> {
    let store = Arc::new(open_store(folder, 4).await.unwrap());
    let shared: Arc<dyn SessionStore> = store.clone();
    rows_and_index_agree(&World::new(shared)).await;
    store
}

async fn run(store: &SqliteSessionStore, statements: &'static [&'static str]) {
    let sqlite = store.team(&team("red")).await.unwrap().unwrap();
    let ran = sqlite.update(move |db| {
        for statement in statements {
            db.execute(*statement, ())?;
        }
        Ok::<_, Failure>(())
    });
    ran.await.unwrap();
}

#[tokio::test]
async fn a_damaged_index_is_noticed_and_rebuilt_from_the_rows() {
    let folder = TempDir::new("recall-damage");
    let store = Arc::new(open_store(&folder, 4).await.unwrap());
    let shared: Arc<dyn SessionStore> = store.clone();
    steward_recall_core::store::contract::searches::rows_and_index_agree(
        &steward_recall_core::store::contract::World::new(shared),
    )
    .await;
    run(&store, DAMAGES[0].1).await;
    let damaged = store.check_integrity(&team("red"), false).await.unwrap();
    assert!(!damaged.problems.is_empty());
    let mended = store.check_integrity(&team("red"), true).await.unwrap();
    assert!(mended.problems.is_empty(), "{:?}", mended.problems);
    assert_eq!(mended.messages, 3);
}

#[tokio::test]
async fn an_index_of_another_tokenizer_is_rebuilt_when_the_file_is_opened() {
    let folder = TempDir::new("recall-version");
    let store = open_store(&folder, 4).await.unwrap();
    let sqlite = store.teams.get(&team("red"), Missing::Create).await.unwrap().unwrap();
    let older = sqlite.update(|db| db.execute("UPDATE meta SET value = '0' WHERE key = 'tokenizer_version'", ()));
    older.await.unwrap();
    drop(sqlite);
    store.close().await;
    let report = store.check_integrity(&team("red"), false).await.unwrap();
    assert_eq!((report.tokenizer_version, report.problems.len()), (words::VERSION, 0));
}

/// What damage does to an index, and whether FTS5 itself notices when it is asked.
const DAMAGES: [(&str, &[&str]); 8] = [
    ("leaves", &["DELETE FROM message_index_data WHERE id > 10"]),
    (
        "structure",
        &["UPDATE message_index_data SET block = zeroblob(4) WHERE id = 10"],
    ),
    ("no structure", &["DELETE FROM message_index_data WHERE id = 10"]),
    ("all data", &["DELETE FROM message_index_data"]),
    ("sizes", &["DELETE FROM message_index_docsize"]),
    ("settings", &["DELETE FROM message_index_config"]),
    ("no data table", &["DROP TABLE message_index_data"]),
    ("no index", &["DROP TABLE message_index"]),
];

/// Whatever happened to the index: the history is there, and a rebuild brings every message back.
#[tokio::test]
async fn a_rebuild_mends_every_damage_of_the_index() {
    for (what, statements) in DAMAGES {
        let folder = TempDir::new("recall-mend");
        let store = filled(&folder).await;
        run(&store, statements).await;
        let damaged = store.check_integrity(&team("red"), false).await.unwrap();
        // Settings are read when a connection is made; whoever has read them goes on.
        assert_eq!(damaged.problems.is_empty(), what == "settings", "{what}");
        let mended = store.check_integrity(&team("red"), true).await.unwrap();
        assert_eq!((mended.problems, mended.messages), (Vec::new(), 3), "{what}");
        assert_eq!(found(&store, "沙鸭").await.unwrap().len(), 1, "{what}");
    }
}

/// The next process looks at the index before anybody asks it, so that nothing is silently missing.
#[tokio::test]
async fn a_damaged_index_is_mended_when_its_file_is_opened() {
    for (what, statements) in DAMAGES {
        let folder = TempDir::new("recall-reopen");
        let store = filled(&folder).await;
        run(&store, statements).await;
        store.close().await;
        drop(store);
        let store = open_store(&folder, 4).await.unwrap();
        if what != "leaves" {
            assert_eq!(found(&store, "沙鸭").await.unwrap().len(), 1, "{what}");
        }
        assert_eq!(
            store.check_integrity(&team("red"), true).await.unwrap().messages,
            3,
            "{what}"
        );
    }
}

/// A turn is not lost because of the index, and a search that meets the damage is not empty.
#[tokio::test]
async fn appends_and_searches_mend_the_index_that_they_meet() {
    let structure = DAMAGES[2].1;
    let folder = TempDir::new("recall-heal");
    let store = filled(&folder).await;
    run(&store, structure).await;
    assert_eq!(found(&store, "沙鸭").await.unwrap().len(), 1);

    let folder = TempDir::new("recall-heal");
    let store = filled(&folder).await;
    run(&store, structure).await;
    create(&store, "red", "s9").await;
    let fence = lease(&store, "red", "s9").await;
    store
        .append(append("red", "s9", fence, 0, "a goosander"), at(1))
        .await
        .unwrap();
    assert_eq!(found(&store, "goosander").await.unwrap().len(), 1);
    let report = store.check_integrity(&team("red"), false).await.unwrap();
    assert_eq!((report.problems, report.messages), (Vec::new(), 4));
}

/// The others go on; the damage is an error and not an empty answer.
#[tokio::test]
async fn a_damaged_file_keeps_its_own_team_from_working_and_no_other() {
    let folder = TempDir::new("recall-one-bad");
    let store = filled(&folder).await;
    store.close().await;
    drop(store);
    std::fs::write(folder.path().join("blue.db"), [b'x'; 8192]).unwrap();
    let store = open_store(&folder, 4).await.unwrap();
    assert_eq!(found(&store, "沙鸭").await.unwrap().len(), 1);
    let broken = store.session(&team("blue"), &SessionId::parse("s1").unwrap()).await;
    assert!(matches!(broken, Err(Error::Damaged { .. })));
    assert!(matches!(
        store.due_reviews(Some(&team("blue")), 5).await,
        Err(Error::Damaged { .. })
    ));
    assert!(store.due_reviews(Some(&team("red")), 5).await.unwrap().is_empty());
}

async fn found(store: &SqliteSessionStore, words: &str) -> Result<Vec<Hit>, Error> {
    store.hits(&hits_for("red", words)).await
}

/// What stands where messages were is an error and not an empty conversation, and it stays what it is.
#[tokio::test]
async fn an_empty_or_foreign_file_is_refused_and_not_replaced() {
    let folder = TempDir::new("recall-foreign");
    let foreign = folder.path().join("foreign.db");
    let other = rusqlite::Connection::open(&foreign).unwrap();
    other.execute("CREATE TABLE birds (name TEXT)", ()).unwrap();
    drop(other);
    std::fs::write(folder.path().join("empty.db"), b"").unwrap();
    std::fs::write(folder.path().join("text.db"), b"once upon a time").unwrap();
    let files = ["empty", "text", "foreign"];
    let before = files.map(|of| std::fs::read(folder.path().join(format!("{of}.db"))).unwrap());
    let store = open_store(&folder, 4).await.unwrap();
    for of in files {
        let read = store.session(&team(of), &session("s1")).await;
        assert!(matches!(read, Err(Error::Damaged { .. })), "{of}");
        let written = store.teams.get(&team(of), Missing::Create).await;
        assert!(matches!(written, Err(Failure(Error::Damaged { .. }))), "{of}");
    }
    store.close().await;
    let after = files.map(|of| std::fs::read(folder.path().join(format!("{of}.db"))).unwrap());
    assert!(before == after, "a refused file is not touched");
    create(&open_store(&folder, 4).await.unwrap(), "red", "s1").await;
}

/// A crash may tear the log. What was written back is there, rows and index agree, and the service goes on.
#[tokio::test]
async fn a_torn_log_leaves_rows_and_index_that_agree() {
    for keep in [0, 32, 1_000, 5_000] {
        let folder = TempDir::new("recall-torn");
        let store = filled(&folder).await;
        let sqlite = store.team(&team("red")).await.unwrap().unwrap();
        sqlite.checkpoint().await.unwrap();
        create(&store, "red", "s8").await;
        let fence = lease(&store, "red", "s8").await;
        store
            .append(append("red", "s8", fence, 0, "a goosander"), at(1))
            .await
            .unwrap();
        // As a killed process leaves them: the file and what is left of its log.
        let copy = TempDir::new("recall-torn-copy");
        for end in ["db", "db-wal"] {
            let bytes = std::fs::read(folder.path().join(format!("red.{end}"))).unwrap();
            let left = if end == "db" {
                bytes.len()
            } else {
                keep.min(bytes.len())
            };
            std::fs::write(copy.path().join(format!("red.{end}")), &bytes[..left]).unwrap();
        }
        let store = open_store(&copy, 4).await.unwrap();
        let report = store.check_integrity(&team("red"), false).await.unwrap();
        assert_eq!(report.problems, Vec::<String>::new(), "{keep} bytes of the log");
        assert!(report.messages >= 3);
        assert_eq!(found(&store, "沙鸭").await.unwrap().len(), 1);
    }
}

/// As long as the index is known to be damaged, searches say that they may miss something; mended, they no longer do.
#[tokio::test]
async fn a_damage_that_was_found_is_told_until_it_is_mended() {
    let folder = TempDir::new("recall-told");
    let store = filled(&folder).await;
    assert_eq!(store.index_trouble(&team("red")), None);
    // Searches do not meet this one: they only find less.
    run(&store, DAMAGES[4].1).await;
    assert!(
        !store
            .check_integrity(&team("red"), false)
            .await
            .unwrap()
            .problems
            .is_empty()
    );
    assert!(store.index_trouble(&team("red")).unwrap().contains("damaged"));
    assert_eq!(store.index_trouble(&team("blue")), None);
    store.check_integrity(&team("red"), true).await.unwrap();
    assert_eq!(store.index_trouble(&team("red")), None);
}

/// One bad row hides neither its conversation nor any other, and the index can be made of it.
#[tokio::test]
async fn bad_bytes_in_one_row_hide_no_other() {
    let folder = TempDir::new("recall-bad-row");
    let store = filled(&folder).await;
    create(&store, "red", "s7").await;
    let fence = lease(&store, "red", "s7").await;
    for (seq, text) in [(0, "a goosander"), (1, "a smew"), (2, "a garganey")] {
        store
            .append(append("red", "s7", fence, seq, text), at(1))
            .await
            .unwrap();
    }
    run(
        &store,
        &[
            "UPDATE message SET said = CAST(x'61ff62' AS TEXT), spans = 'torn', tool_calls = '[{'
             WHERE seq = 2 AND session = (SELECT number FROM session WHERE id = 's7')",
        ],
    )
    .await;
    store.close().await;
    drop(store);
    let store = open_store(&folder, 4).await.unwrap();
    let range = MessageRange::in_context(1, 9, 9);
    let read = store.messages(&team("red"), &session("s7"), &range).await.unwrap();
    let texts: Vec<&str> = read.iter().map(|message| message.body.text.as_str()).collect();
    assert_eq!(texts, ["a goosander", "a\u{fffd}b", "a garganey"]);
    store.check_integrity(&team("red"), true).await.unwrap();
    for bird in ["goosander", "garganey", "沙鸭"] {
        assert_eq!(found(&store, bird).await.unwrap().len(), 1, "{bird}");
    }
}
