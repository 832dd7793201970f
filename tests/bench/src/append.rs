//! `append`: messages one by one, as an agent appends them, each durable and searchable when acknowledged. The index follows in
//! the background; what that costs is counted, until nothing is left to do. The floor is a bare insert of the same text in a
//! transaction of its own, without any index.

use std::path::Path;
use std::time::Duration;

use serde_json::{Value, json};
use steward_client::{RecallClient, SessionStoreClient};

use crate::arguments::{Arguments, History};
use crate::corpus::{Corpus, Role};
use crate::floor::Bare;
use crate::history;
use crate::machine::bytes_of;
use crate::measure::{Meter, Watch, millis, per_second, ratio, rounded};
use crate::rig::Rig;
use crate::settle;

const FLOOR: &str = "CREATE TABLE message (number INTEGER PRIMARY KEY, role TEXT NOT NULL, said TEXT NOT NULL) STRICT";

pub(crate) async fn run(options: &History, arguments: &Arguments) -> anyhow::Result<Value> {
    let corpus = Corpus::of(options, arguments.seed)?;
    let folder = arguments.fresh_folder()?;
    let ours = Box::pin(ours(folder.path(), &corpus)).await?;
    let (floor, floor_bytes) = floor(folder.path(), &corpus)?;
    let messages = corpus.message_count();
    Ok(json!({
        "messages": messages,
        "sessions": corpus.sessions.len(),
        "per_cpu_second": per_second(messages, ours.cpu),
        "appending_per_cpu_second": ours.meter.cpu().per_second(),
        "followed_s": rounded(ours.followed.as_secs_f64()),
        "first_search_ms": millis(ours.first_search),
        "floor_per_cpu_second": floor.cpu().per_second(),
        "per_second": ours.meter.wall().per_second(),
        "floor_per_second": floor.wall().per_second(),
        "p50_ms": ours.meter.wall().p50(),
        "p99_ms": ours.meter.wall().p99(),
        "floor_p50_ms": floor.wall().p50(),
        "floor_p99_ms": floor.wall().p99(),
        "longest_stall_ms": ours.meter.wall().longest(),
        "floor_longest_stall_ms": floor.wall().longest(),
        "bytes_per_message": ratio(ours.bytes, messages),
        "floor_bytes_per_message": ratio(floor_bytes, messages),
        "text_bytes_per_message": ratio(corpus.text_bytes(), messages),
    }))
}

/// What our side of a run was.
struct Ours {
    meter: Meter,
    /// CPU of all of it: appends, leases, the index that follows.
    cpu: Duration,
    /// How long the index took to be there after the last append.
    followed: Duration,
    /// A search right after the last append, which brings in what is not in the index yet.
    first_search: Duration,
    bytes: u64,
}

async fn ours(folder: &Path, corpus: &Corpus) -> anyhow::Result<Ours> {
    let rig = Rig::new(folder)?;
    let deps = steward_recall::Deps { auth: rig.auth.clone() };
    let mut built = steward_recall::build(steward_recall::Config::default(), deps, &rig.boot).await?;
    built.start_background(&rig.boot.tasks);
    let store = SessionStoreClient::new(built.local_client().with_credentials(rig.orchestrator()?));
    let recall = RecallClient::new(built.local_client().with_credentials(rig.person()?));
    let mut meter = Meter::default();
    let watch = Watch::start();
    for (place, session) in corpus.sessions.iter().enumerate() {
        let fence = history::begin(&store, place, session).await?;
        let mut last = 0;
        for message in history::messages(session) {
            let append = history::append(&store, place, fence, last, vec![message]);
            last = meter.time(Box::pin(append)).await?;
        }
    }
    let ended = Watch::start();
    let missed = settle::search(&recall).await?;
    anyhow::ensure!(missed.is_empty(), "the search missed something: {missed}");
    let first_search = ended.wall();
    let followed = settle::until_idle(&ended).await;
    let cpu = watch.cpu();
    drop((store, recall, built));
    rig.stop().await?;
    Ok(Ours {
        meter,
        cpu,
        followed,
        first_search,
        bytes: bytes_of(&folder.join("recall"), "bench.db")?,
    })
}

fn floor(folder: &Path, corpus: &Corpus) -> anyhow::Result<(Meter, u64)> {
    let bare = Bare::open(folder, FLOOR)?;
    let mut meter = Meter::default();
    for message in corpus.sessions.iter().flat_map(|session| &session.messages) {
        let role = match message.role {
            Role::User => "user",
            Role::Assistant => "assistant",
            Role::Tool => "tool",
        };
        let text = message.searchable();
        meter.time_blocking(|| bare.commit("INSERT INTO message (role, said) VALUES (?, ?)", (role, &text)))?;
    }
    Ok((meter, bare.close()?))
}
