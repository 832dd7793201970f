//! The store contract on SQLite, and what only files can get wrong.

use std::sync::Arc;

use proptest::prelude::*;
use steward_recall_core::SessionStore;
use steward_recall_core::query::Query;
use steward_recall_core::query::matching::Searchable;
use steward_recall_core::search::Sort;
use steward_testkit::TempDir;

use super::*;

async fn empty_store() -> (TempDir, Arc<dyn SessionStore>) {
    let folder = TempDir::new("recall-store");
    let store = SqliteSessionStore::open(folder.path().to_owned(), 2).await.unwrap();
    (folder, Arc::new(store))
}

steward_recall_core::session_store_contract!(empty_store);

fn team(id: &str) -> TeamId {
    TeamId::parse(id).unwrap()
}

/// A database with one column of text in an index like ours.
async fn scratch_index(folder: &TempDir) -> Sqlite {
    let teams = Teams::new(folder.path().to_owned(), 4);
    let sqlite = teams.get(&team("scratch"), Missing::Create).await.unwrap().unwrap();
    let made = sqlite.write(|connection| {
        Box::pin(async move {
            sqlx::query("CREATE VIRTUAL TABLE probe USING fts5 (said, tokenize = 'steward')")
                .execute(connection)
                .await?;
            Ok::<_, Failure>(())
        })
    });
    made.await.unwrap();
    (*sqlite).clone()
}

async fn probe(sqlite: &Sqlite, text: String, matches: Vec<String>) -> Result<Vec<bool>, Failure> {
    sqlite
        .write(move |connection| {
            Box::pin(async move {
                sqlx::query("DELETE FROM probe").execute(&mut *connection).await?;
                sqlx::query("INSERT INTO probe (said) VALUES (?)")
                    .bind(text)
                    .execute(&mut *connection)
                    .await?;
                let mut found = Vec::new();
                for expression in matches {
                    let rows: Vec<i64> = sqlx::query_scalar("SELECT rowid FROM probe WHERE probe MATCH ?")
                        .bind(expression)
                        .fetch_all(&mut *connection)
                        .await?;
                    found.push(!rows.is_empty());
                }
                Ok(found)
            })
        })
        .await
}

/// The same question to FTS5 and to the matcher of the core, for any text and any query.
#[test]
fn any_query_is_valid_syntax_and_means_the_same_to_fts5_and_to_the_core() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let folder = TempDir::new("recall-fts");
    let sqlite = runtime.block_on(scratch_index(&folder));
    let word =
        "(\\PC{1,4}|[a-d]{1,2}|人工|智能|AND|OR|NOT|NEAR|getUserName|a_b|C\\+\\+|\"|\\(|\\)|\\*|said:|-|\\^|🚀|ที่)";
    let line = prop::collection::vec((word, "( |)"), 0..9)
        .prop_map(|parts| parts.into_iter().map(|(word, blank)| word + &blank).collect::<String>());
    let mut runner = proptest::test_runner::TestRunner::new(ProptestConfig {
        failure_persistence: None,
        ..ProptestConfig::with_cases(400)
    });
    let hits = std::sync::atomic::AtomicUsize::new(0);
    let outcome = runner.run(&(line.clone(), line), |(text, typed)| {
        let Some(query) = Query::parse(&typed) else {
            return Ok(());
        };
        let asked: Vec<Query> = [query.clone()].into_iter().chain(query.widened()).collect();
        let expressions: Vec<String> = asked.iter().map(Query::to_match).collect();
        let found = runtime.block_on(probe(&sqlite, text.clone(), expressions.clone()));
        let found = found.map_err(|failure| TestCaseError::fail(format!("{expressions:?}: {failure:?}")))?;
        let searchable = Searchable::new(&text);
        for (query, found) in asked.iter().zip(found) {
            hits.fetch_add(usize::from(found), std::sync::atomic::Ordering::Relaxed);
            prop_assert_eq!(found, searchable.matches(query), "{} in {:?}", query.to_match(), text);
        }
        Ok(())
    });
    outcome.unwrap();
    assert!(hits.into_inner() > 50, "hardly any of the generated texts matched");
}

#[tokio::test]
async fn few_files_are_open_and_each_once_however_many_ask() {
    let folder = TempDir::new("recall-teams");
    let teams = Arc::new(Teams::new(folder.path().to_owned(), 2));
    let ids = ["one", "two", "three", "four"];
    for _ in 0..3 {
        let asked = ids.iter().cycle().take(32).map(|id| {
            let teams = Arc::clone(&teams);
            async move { teams.get(&team(id), Missing::Create).await.unwrap().unwrap() }
        });
        // All are held at once, so all are open; none is opened twice, which the lock of the file would refuse.
        let held = futures::future::join_all(asked).await;
        drop(held);
        teams.get(&team("one"), Missing::Leave).await.unwrap();
    }
    let last = teams.get(&team("five"), Missing::Create).await.unwrap();
    assert!(teams.open_count() <= 2, "{} files are open", teams.open_count());
    drop(last);
    assert_eq!(teams.known().await.unwrap().len(), 5);
    assert!(teams.get(&team("never-seen"), Missing::Leave).await.unwrap().is_none());
    teams.close().await;
    assert_eq!(teams.open_count(), 0);
}

#[tokio::test]
async fn a_damaged_index_is_noticed_and_rebuilt_from_the_rows() {
    let folder = TempDir::new("recall-damage");
    let store = Arc::new(SqliteSessionStore::open(folder.path().to_owned(), 4).await.unwrap());
    let shared: Arc<dyn SessionStore> = store.clone();
    steward_recall_core::store::contract::searches::rows_and_index_agree(
        &steward_recall_core::store::contract::World::new(shared),
    )
    .await;
    let sqlite = store.team(&team("red")).await.unwrap().unwrap();
    let emptied = sqlite.write(|connection| {
        Box::pin(async move {
            sqlx::query("DELETE FROM message_index_data WHERE id > 10")
                .execute(connection)
                .await?;
            Ok::<_, Failure>(())
        })
    });
    emptied.await.unwrap();
    let damaged = store.check_integrity(&team("red"), false).await.unwrap();
    assert!(!damaged.problems.is_empty());
    let mended = store.check_integrity(&team("red"), true).await.unwrap();
    assert!(mended.problems.is_empty(), "{:?}", mended.problems);
    assert_eq!(mended.messages, 3);
}

#[tokio::test]
async fn an_index_of_another_tokenizer_is_rebuilt_when_the_file_is_opened() {
    let folder = TempDir::new("recall-version");
    let store = SqliteSessionStore::open(folder.path().to_owned(), 4).await.unwrap();
    let sqlite = store.teams.get(&team("red"), Missing::Create).await.unwrap().unwrap();
    let older = sqlite.write(|connection| {
        Box::pin(async move {
            sqlx::query("UPDATE meta SET value = '0' WHERE key = 'tokenizer_version'")
                .execute(connection)
                .await?;
            Ok::<_, Failure>(())
        })
    });
    older.await.unwrap();
    drop(sqlite);
    store.close().await;
    let report = store.check_integrity(&team("red"), false).await.unwrap();
    assert_eq!((report.tokenizer_version, report.problems.len()), (words::VERSION, 0));
}

/// The planner once asked the index anew for every message of the team: a thousand times as slow.
#[tokio::test]
async fn a_search_asks_the_index_once_and_looks_its_matches_up() {
    let folder = TempDir::new("recall-plan");
    let store = SqliteSessionStore::open(folder.path().to_owned(), 4).await.unwrap();
    let sqlite = store.teams.get(&team("red"), Missing::Create).await.unwrap().unwrap();
    let mut reader = sqlite.read().await.unwrap();
    for sort in [Sort::Relevance, Sort::Newest, Sort::Oldest] {
        let explain = sqlx::AssertSqlSafe(format!("EXPLAIN QUERY PLAN {}", search::hits_sql(sort)));
        let steps: Vec<(i64, i64, i64, String)> = sqlx::query_as(explain).fetch_all(&mut *reader).await.unwrap();
        let steps: Vec<&str> = steps.iter().map(|(.., step)| step.as_str()).collect();
        let tables: Vec<&str> = steps
            .iter()
            .copied()
            .filter(|step| {
                [" message_index ", " m ", " s "]
                    .iter()
                    .any(|table| step.contains(table))
            })
            .collect();
        assert_eq!(tables.len(), 3, "{steps:#?}");
        assert!(tables[0].starts_with("SCAN message_index VIRTUAL TABLE"), "{steps:#?}");
        assert!(tables[1].starts_with("SEARCH m USING INDEX message_doc"), "{steps:#?}");
        assert!(tables[2].starts_with("SEARCH s USING INDEX"), "{steps:#?}");
    }
}
