//! `append`: messages one by one, as an agent appends them, each durable and searchable when acknowledged. The floor is a
//! bare insert of the same text in a transaction of its own.

use std::path::Path;

use serde_json::{Value, json};
use steward_client::SessionStoreClient;

use crate::arguments::{Arguments, History};
use crate::corpus::{Corpus, Role};
use crate::floor::Bare;
use crate::history;
use crate::machine::bytes_of;
use crate::measure::{Meter, ratio};
use crate::rig::Rig;

const FLOOR: &str = "CREATE TABLE message (number INTEGER PRIMARY KEY, role TEXT NOT NULL, said TEXT NOT NULL) STRICT";

pub(crate) async fn run(options: &History, arguments: &Arguments) -> anyhow::Result<Value> {
    let corpus = Corpus::of(options, arguments.seed)?;
    let folder = arguments.fresh_folder()?;
    let (ours, bytes) = Box::pin(ours(folder.path(), &corpus)).await?;
    let (floor, floor_bytes) = floor(folder.path(), &corpus).await?;
    let messages = corpus.message_count();
    Ok(json!({
        "messages": messages,
        "sessions": corpus.sessions.len(),
        "per_cpu_second": ours.cpu().per_second(),
        "floor_per_cpu_second": floor.cpu().per_second(),
        "per_second": ours.wall().per_second(),
        "floor_per_second": floor.wall().per_second(),
        "p50_ms": ours.wall().p50(),
        "p99_ms": ours.wall().p99(),
        "floor_p50_ms": floor.wall().p50(),
        "floor_p99_ms": floor.wall().p99(),
        "longest_stall_ms": ours.wall().longest(),
        "floor_longest_stall_ms": floor.wall().longest(),
        "bytes_per_message": ratio(bytes, messages),
        "floor_bytes_per_message": ratio(floor_bytes, messages),
        "text_bytes_per_message": ratio(corpus.text_bytes(), messages),
    }))
}

async fn ours(folder: &Path, corpus: &Corpus) -> anyhow::Result<(Meter, u64)> {
    let rig = Rig::new(folder)?;
    let deps = steward_recall::Deps { auth: rig.auth.clone() };
    let built = steward_recall::build(steward_recall::Config::default(), deps, &rig.boot).await?;
    let store = SessionStoreClient::new(built.local_client().with_credentials(rig.orchestrator()?));
    let mut meter = Meter::default();
    for (place, session) in corpus.sessions.iter().enumerate() {
        let fence = history::begin(&store, place, session).await?;
        let mut last = 0;
        for message in history::messages(session) {
            let append = history::append(&store, place, fence, last, vec![message]);
            last = meter.time(Box::pin(append)).await?;
        }
    }
    drop((store, built));
    rig.stop().await?;
    Ok((meter, bytes_of(&folder.join("recall"), "bench.db")?))
}

async fn floor(folder: &Path, corpus: &Corpus) -> anyhow::Result<(Meter, u64)> {
    let mut bare = Bare::open(folder, FLOOR).await?;
    let mut meter = Meter::default();
    for message in corpus.sessions.iter().flat_map(|session| &session.messages) {
        let role = match message.role {
            Role::User => "user",
            Role::Assistant => "assistant",
            Role::Tool => "tool",
        };
        let text = message.searchable();
        let values = [role, text.as_str()];
        let insert = bare.commit("INSERT INTO message (role, said) VALUES (?, ?)", &values);
        meter.time(insert).await?;
    }
    Ok((meter, bare.close().await?))
}
