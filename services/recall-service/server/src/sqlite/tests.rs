//! The store contract on SQLite, and what only files can get wrong.

use std::sync::Arc;

use proptest::prelude::*;
use steward_base::names::UserId;
use steward_recall_core::SessionStore;
use steward_recall_core::append_messages::{OpenCallsChange, RequestKey};
use steward_recall_core::message::{NewMessage, Role};

use steward_recall_core::query::Query;
use steward_recall_core::query::matching::Searchable;
use steward_recall_core::search::{Asker, Hit, HitQuery, Snapshot as _, Sort};
use steward_recall_core::session::{Counters, Frozen, SessionSource};
use steward_store::{Sql, StoreError};
use steward_testkit::TempDir;

use super::*;

mod backups;
mod behind;
mod damage;
mod many;
mod upgrade;

async fn open_store(folder: &TempDir, max_open: usize) -> Result<SqliteSessionStore, Error> {
    let backups = folder.path().join("backups");
    SqliteSessionStore::open(folder.path().to_owned(), backups, max_open).await
}

async fn empty_store() -> (TempDir, Arc<dyn SessionStore>) {
    let folder = TempDir::new("recall-store");
    let store = open_store(&folder, 2).await.unwrap();
    (folder, Arc::new(store))
}

steward_recall_core::session_store_contract!(empty_store);

fn team(id: &str) -> TeamId {
    TeamId::parse(id).unwrap()
}

/// Everything of ann's that holds these words.
fn hits_for(of: &str, words: &str) -> HitQuery {
    HitQuery {
        asker: Asker {
            team: team(of),
            user: UserId::parse("ann").unwrap(),
            current: None,
        },
        query: Query::parse(words).unwrap(),
        roles: Vec::new(),
        sources: SessionSource::visible(),
        after: None,
        before: None,
        sort: Sort::Relevance,
        limit: 10,
        depth: steward_recall_core::search::rank::DEPTH,
    }
}

fn session(id: &str) -> SessionId {
    SessionId::parse(id).unwrap()
}

fn at(seconds: i64) -> Timestamp {
    Timestamp::from_secs(1_790_000_000 + seconds)
}

fn request(id: String) -> RequestKey {
    RequestKey { hash: id.clone(), id }
}

async fn create(store: &SqliteSessionStore, of: &str, id: &str) {
    let new = NewSession {
        team: team(of),
        id: session(id),
        user: UserId::parse("ann").unwrap(),
        source: SessionSource::Chat,
        title: String::new(),
        lineage: None,
        project: String::new(),
        frozen: Frozen::default(),
        skip_review: false,
        skip_memory: false,
        counters: Counters::default(),
        exposures: Vec::new(),
        request: request(format!("create-{id}")),
    };
    store.create_session(new, at(0)).await.unwrap();
}

async fn lease(store: &SqliteSessionStore, of: &str, id: &str) -> u64 {
    let request = LeaseRequest {
        turn: "t1".to_owned(),
        holder: "p1".to_owned(),
        ttl: Duration::from_mins(5),
    };
    store
        .acquire_lease(&team(of), &session(id), request, at(0))
        .await
        .unwrap()
        .fence
}

fn append(of: &str, id: &str, fence: u64, expected_seq: u64, text: &str) -> Append {
    let said = NewMessage {
        role: Role::User,
        text: text.to_owned(),
        sent_text: None,
        tool_calls: Vec::new(),
        result: None,
        spans: Vec::new(),
        usage: None,
        turn: "t1".to_owned(),
        native: None,
    };
    Append {
        team: team(of),
        session: session(id),
        fence,
        acquire: None,
        release: false,
        expected_seq,
        expected_etag: String::new(),
        request: request(format!("{id}-{expected_seq}-{text}")),
        messages: vec![said],
        turn: None,
        counters: None,
        prefix: None,
        usage: None,
        open_calls: OpenCallsChange::Add(Vec::new()),
        due_review: None,
        title: None,
        exposures: Vec::new(),
    }
}

impl SqliteSessionStore {
    async fn hits(&self, query: &HitQuery) -> Result<Vec<Hit>, Error> {
        Ok(self.hits_with_trouble(query).await?.0)
    }

    /// With why there may be more.
    async fn hits_with_trouble(&self, query: &HitQuery) -> Result<(Vec<Hit>, Option<String>), Error> {
        let (team, query) = (query.asker.team.clone(), query.clone());
        self.search(&team, move |moment| moment.hits(&query)).await
    }
}

/// How SQLite goes about a statement.
pub(super) async fn plan(sqlite: &Sqlite, sql: &str) -> Vec<String> {
    let explain = Sql::built(format!("EXPLAIN QUERY PLAN {sql}"));
    let steps = sqlite.view(|db| {
        let mut statement = db.prepare(explain)?;
        let mut rows = statement.raw_query();
        let mut steps = Vec::new();
        while let Some(row) = rows.next()? {
            steps.push(row.get(3)?);
        }
        Ok::<_, StoreError>(steps)
    });
    steps.await.unwrap()
}

/// A database with one column of text in an index like ours.
async fn scratch_index(folder: &TempDir) -> Sqlite {
    let teams = Teams::new(folder.path().to_owned(), 4);
    let sqlite = teams.get(&team("scratch"), Missing::Create).await.unwrap().unwrap();
    let made = sqlite.update(|db| db.execute("CREATE VIRTUAL TABLE probe USING fts5 (said, tokenize = 'steward')", ()));
    made.await.unwrap();
    (*sqlite).clone()
}

async fn probe(sqlite: &Sqlite, text: String, matches: Vec<String>) -> Result<Vec<bool>, StoreError> {
    let probed = sqlite.update(move |db| {
        db.execute("DELETE FROM probe", ())?;
        db.execute("INSERT INTO probe (said) VALUES (?)", [text])?;
        let found = matches
            .iter()
            .map(|expression| db.exists("SELECT rowid FROM probe WHERE probe MATCH ?", [expression]));
        found.collect()
    });
    probed.await
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
        let asked: Vec<Query> = std::iter::once(query.clone()).chain(query.widened()).collect();
        let expressions: Vec<String> = asked.iter().map(Query::to_match).collect();
        let found = runtime.block_on(probe(&sqlite, text.clone(), expressions.clone()));
        let found = found.map_err(|failure| TestCaseError::fail(format!("{expressions:?}: {failure:?}")))?;
        for (query, found) in asked.iter().zip(found) {
            hits.fetch_add(usize::from(found), std::sync::atomic::Ordering::Relaxed);
            prop_assert_eq!(
                found,
                Searchable::new(&text, query).matches(),
                "{} in {:?}",
                query.to_match(),
                text
            );
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

/// The planner once asked the index anew for every message of the team: a thousand times as slow.
#[tokio::test]
async fn a_search_asks_the_index_once_and_looks_its_matches_up() {
    let folder = TempDir::new("recall-plan");
    let store = open_store(&folder, 4).await.unwrap();
    let sqlite = store.teams.get(&team("red"), Missing::Create).await.unwrap().unwrap();
    let sorts = [Sort::Relevance, Sort::Newest, Sort::Oldest];
    for step in sorts.into_iter().flat_map(search::steps) {
        let steps = plan(&sqlite, step.sql).await;
        let tables: Vec<&str> = steps
            .iter()
            .map(String::as_str)
            .filter(|step| {
                [" message_index ", " m ", " s "]
                    .iter()
                    .any(|table| step.contains(table))
            })
            .collect();
        assert_eq!(tables.len(), 3, "{steps:#?}");
        assert!(tables[0].starts_with("SCAN message_index VIRTUAL TABLE"), "{steps:#?}");
        assert!(
            tables[1].starts_with("SEARCH m USING INTEGER PRIMARY KEY"),
            "{steps:#?}"
        );
        assert!(
            tables[2].starts_with("SEARCH s USING INTEGER PRIMARY KEY"),
            "{steps:#?}"
        );
    }
}
