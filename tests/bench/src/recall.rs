//! `recall`: word-for-word search in a history that was loaded through recall-service.
//!
//! Time is that of the whole call in this process: request and answer encoded, access decided, query understood, index
//! asked, conversations shown. The floor is one statement on the same index, and one on the least index of the same texts
//! ([`floor`]). What is found is compared with what a look at every message finds.

mod floor;

use std::collections::BTreeSet;

use anyhow::Context as _;
use serde_json::{Map, Value, json};
use steward_client::{RecallClient, SessionStoreClient};
use steward_proto::recall::v1 as pb;

use crate::arguments::{Arguments, Recall};
use crate::corpus::{Class, Corpus, Query, queries, truth};
use crate::history;
use crate::machine::bytes_of;
use crate::measure::{Meter, Watch, per_second, ratio, rounded};
use crate::rig::{PERSON, Rig};
use crate::settle;

use floor::{Least, Same};

/// Conversations of an answer when time is taken: what the agent's tool asks for.
const SHOWN: i32 = 3;
/// Conversations of an answer when it is compared with the truth: the most that can be asked for.
const COMPARED: usize = 10;
/// Queries of each class that are run before time is taken.
const WARM_UP: usize = 3;

/// What a search is measured beside.
struct Floors {
    same: Same,
    least: Least,
}

/// What is known of a class so far.
#[derive(Debug, Default)]
struct Tally {
    ours: Meter,
    same: Meter,
    least: Meter,
    found: usize,
    expected: usize,
    queries_with_all: usize,
}

pub(crate) async fn run(options: &Recall, arguments: &Arguments) -> anyhow::Result<Value> {
    let corpus = Corpus::of(&options.history, arguments.seed)?;
    let count = usize::try_from(options.queries)?;
    let queries = queries(
        &corpus,
        options.history.queries_file().as_deref(),
        arguments.seed,
        count,
    )?;
    let truth = truth(&corpus, &queries);
    let folder = arguments.fresh_folder()?;

    let rig = Rig::new(folder.path())?;
    let deps = steward_recall::Deps { auth: rig.auth.clone() };
    let mut built = steward_recall::build(steward_recall::Config::default(), deps, &rig.boot).await?;
    built.start_background(&rig.boot.tasks);
    let store = SessionStoreClient::new(built.local_client().with_credentials(rig.orchestrator()?));
    let loading = Watch::start();
    history::load(&store, &corpus).await?;
    let search = RecallClient::new(built.local_client().with_credentials(rig.person()?));
    let load_wall = settle::indexed(&search, &loading).await?;
    let load_cpu = loading.cpu();
    let floors = Floors {
        same: Same::open(&folder.path().join("recall/bench.db"))?,
        least: Least::load(folder.path(), &corpus)?,
    };

    let mut classes = Map::new();
    for class in Class::ALL {
        let of_class: Vec<(&Query, &BTreeSet<usize>)> = queries
            .iter()
            .zip(&truth)
            .filter(|(query, _)| query.class == class)
            .collect();
        let tally = measure(&search, &floors, &of_class).await?;
        classes.insert(class.name().to_owned(), figures(&tally));
    }
    let Floors { same, least } = floors;
    drop((search, store, built, same));
    rig.stop().await?;
    let messages = corpus.message_count();
    Ok(json!({
        "messages": messages,
        "sessions": corpus.sessions.len(),
        "load_s": rounded(load_wall.as_secs_f64()),
        "load_per_cpu_second": per_second(messages, load_cpu),
        "bytes_per_message": ratio(bytes_of(&folder.path().join("recall"), "bench.db")?, messages),
        "least_bytes_per_message": ratio(least.close()?, messages),
        "classes": classes,
    }))
}

async fn measure(
    search: &RecallClient,
    floors: &Floors,
    queries: &[(&Query, &BTreeSet<usize>)],
) -> anyhow::Result<Tally> {
    for (query, _) in queries.iter().take(WARM_UP) {
        discover(search, query, SHOWN).await?;
        floors.same.top(query)?;
        floors.least.top(query)?;
    }
    let mut tally = Tally::default();
    for (query, truth) in queries {
        tally.ours.time(discover(search, query, SHOWN)).await?;
        tally.same.time_blocking(|| floors.same.top(query))?;
        tally.least.time_blocking(|| floors.least.top(query))?;
        let answer = discover(search, query, i32::try_from(COMPARED)?).await?;
        let found = answer
            .iter()
            .filter_map(|conversation| history::place(&conversation.root_session))
            .filter(|root| truth.contains(root))
            .count();
        let expected = truth.len().min(COMPARED);
        tally.found += found;
        tally.expected += expected;
        tally.queries_with_all += usize::from(found == expected);
    }
    Ok(tally)
}

async fn discover(search: &RecallClient, query: &Query, limit: i32) -> anyhow::Result<Vec<pb::Conversation>> {
    let discover = pb::Discover {
        query: query.text.clone(),
        limit,
        ..pb::Discover::default()
    };
    let request = pb::SearchRequest {
        parent: PERSON.to_owned(),
        shape: Some(pb::search_request::Shape::Discover(discover)),
        current_session: String::new(),
    };
    let answer = search.search(request).await;
    Ok(answer
        .with_context(|| format!("search for {:?}", query.text))?
        .conversations)
}

fn figures(tally: &Tally) -> Value {
    let (ours, floor, least) = (&tally.ours, &tally.same, &tally.least);
    json!({
        "queries": ours.wall().count(),
        "p50_cpu_ms": ours.cpu().p50(),
        "p99_cpu_ms": ours.cpu().p99(),
        "floor_p50_cpu_ms": floor.cpu().p50(),
        "floor_p99_cpu_ms": floor.cpu().p99(),
        "least_p50_cpu_ms": least.cpu().p50(),
        "least_p99_cpu_ms": least.cpu().p99(),
        "p50_ms": ours.wall().p50(),
        "p99_ms": ours.wall().p99(),
        "floor_p50_ms": floor.wall().p50(),
        "found": tally.found,
        "expected": tally.expected,
        "complete": tally.queries_with_all,
    })
}
