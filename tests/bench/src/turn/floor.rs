//! The floor of a turn: two durable inserts into one SQLite table and one request to the same model server, by as many
//! sessions at the same pace. No session, no prompt, no lease, no events: what nobody who keeps a conversation can save.

use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use anyhow::{Context as _, ensure};
use serde_json::json;
use tokio::task::JoinSet;

use super::{Pace, pace};
use crate::arguments::Turn;
use crate::floor::Bare;
use crate::model::{Model, NAME, marked};

const TABLE: &str = "CREATE TABLE said (number INTEGER PRIMARY KEY, session TEXT NOT NULL, text TEXT NOT NULL) STRICT";
const INSERT: &str = "INSERT INTO said (session, text) VALUES (?, ?)";

/// The times of all turns, without the model's.
pub(super) async fn run(
    folder: &Path,
    options: &Turn,
    model: &Arc<Model>,
    texts: &Arc<Vec<String>>,
) -> anyhow::Result<Vec<Duration>> {
    let bare = Arc::new(Mutex::new(Bare::open(folder, TABLE)?));
    let http = reqwest::Client::builder().tcp_nodelay(true).build()?;
    let mut talking = JoinSet::new();
    for number in 0..options.sessions {
        let (bare, http, model, texts) = (Arc::clone(&bare), http.clone(), Arc::clone(model), Arc::clone(texts));
        let pace = pace(options, number);
        talking.spawn(async move { talk(bare, &http, &model, &texts, number, pace).await });
    }
    let mut added = Vec::new();
    while let Some(talk) = talking.join_next().await {
        added.extend(talk??);
    }
    Ok(added)
}

async fn talk(
    bare: Arc<Mutex<Bare>>,
    http: &reqwest::Client,
    model: &Model,
    texts: &[String],
    number: u32,
    pace: Pace,
) -> anyhow::Result<Vec<Duration>> {
    let url = format!("{}/chat/completions", model.base_url());
    let session = format!("s{number}");
    let mut added = Vec::new();
    tokio::time::sleep(pace.offset).await;
    for turn in 0..pace.turns {
        let mark = format!("f{number}t{turn}");
        let text = marked(&mark, &texts[usize::try_from(number + turn)? % texts.len()]);
        let began = Instant::now();
        insert(&bare, &session, &text).await?;
        let body = json!({"model": NAME, "stream": true, "messages": [{"role": "user", "content": text}]});
        let answer = http.post(&url).body(body.to_string()).send().await?.text().await?;
        ensure!(answer.contains("[DONE]"), "the model's answer has no end");
        insert(&bare, &session, &answer).await?;
        let whole = began.elapsed();
        let models = model.time(&mark).context("the model was not asked")?;
        added.push(whole.saturating_sub(models));
        tokio::time::sleep(pace.pause).await;
    }
    Ok(added)
}

/// On a blocking thread: the others talk on while it is flushed.
async fn insert(bare: &Arc<Mutex<Bare>>, session: &str, text: &str) -> anyhow::Result<()> {
    let (bare, values) = (Arc::clone(bare), [session.to_owned(), text.to_owned()]);
    let inserting = tokio::task::spawn_blocking(move || {
        let bare = bare.lock().unwrap_or_else(PoisonError::into_inner);
        bare.commit(INSERT, values)
    });
    inserting.await?
}
