//! `turn`: what Steward adds to a turn. Many sessions talk at the same time over a real port to a whole installation, whose
//! model is a server with a time of its own ([`crate::model`]). A turn's figure is the client's time, from sending the
//! message to reading the final answer, less the model's.
//!
//! The floor is the least that a durable turn can be ([`floor`]): the message committed, the model asked, the answer
//! committed, by as many sessions at the same time.

mod floor;

use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail, ensure};
use serde_json::{Value, json};
use steward_client::Client;
use steward_proto::agent::v1 as pb;
use steward_proto::agent::v1::run_turn_request::Input;
use steward_proto::agent::v1::turn_event::Event;
use tokio::task::JoinSet;

use crate::arguments::{Arguments, Turn};
use crate::corpus::{Language, Lexicon};
use crate::measure::{Spread, Watch, millis_each, per_second};
use crate::model::{Model, marked};
use crate::random::Random;
use crate::rig::Whole;

/// What was measured of many turns.
#[derive(Debug, Default)]
struct Measured {
    /// Without the model's time.
    added: Vec<Duration>,
    /// From sending the message to the first text, the model's first piece being due after a tenth of its time.
    first_text: Vec<Duration>,
    reviews_due: usize,
}

/// A pace that every session keeps.
#[derive(Debug, Clone, Copy)]
struct Pace {
    turns: u32,
    pause: Duration,
    /// Sessions begin one after the other over one round, as people do.
    offset: Duration,
}

pub(crate) async fn run(options: &Turn, arguments: &Arguments) -> anyhow::Result<Value> {
    let folder = arguments.fresh_folder()?;
    let model = Arc::new(Model::start(Duration::from_millis(options.model_ms)).await?);
    let texts = Arc::new(texts(arguments.seed));
    let whole = Whole::start(folder.path(), Some(model.base_url())).await?;

    let mut sessions = Vec::new();
    for number in 0..options.sessions {
        sessions.push(begin(&whole.client, &whole.owner, number).await?);
    }
    let watch = Watch::start();
    let mut talking = JoinSet::new();
    for (number, session) in (0_u32..).zip(sessions) {
        let (client, model, texts) = (whole.client.clone(), Arc::clone(&model), Arc::clone(&texts));
        let pace = pace(options, number);
        talking.spawn(async move { talk(&client, &model, &texts, &session, number, pace).await });
    }
    let mut ours = Measured::default();
    while let Some(talk) = talking.join_next().await {
        let talk = talk??;
        ours.added.extend(talk.added);
        ours.first_text.extend(talk.first_text);
        ours.reviews_due += talk.reviews_due;
    }
    let (wall, cpu) = (watch.wall(), watch.cpu());
    whole.stop().await?;

    let watch = Watch::start();
    let floor = floor::run(folder.path(), options, &model, &texts).await?;
    let floor_cpu = watch.cpu();
    let turns = ours.added.len();
    let (added, first_text, floor) = (
        Spread::new(ours.added),
        Spread::new(ours.first_text),
        Spread::new(floor),
    );
    Ok(json!({
        "sessions": options.sessions,
        "turns": turns,
        "model_ms": options.model_ms,
        "pause_ms": options.pause_ms,
        "p50_ms": added.p50(),
        "p99_ms": added.p99(),
        "longest_ms": added.longest(),
        "floor_p50_ms": floor.p50(),
        "floor_p99_ms": floor.p99(),
        "first_text_p50_ms": first_text.p50(),
        "turns_per_s": per_second(turns, wall),
        "cpu_ms_per_turn": millis_each(cpu, turns),
        "floor_cpu_ms_per_turn": millis_each(floor_cpu, turns),
        "reviews_due": ours.reviews_due,
    }))
}

fn pace(options: &Turn, number: u32) -> Pace {
    let round = Duration::from_millis(options.model_ms + options.pause_ms);
    Pace {
        turns: options.turns,
        pause: Duration::from_millis(options.pause_ms),
        offset: round * number / options.sessions,
    }
}

/// What people say.
fn texts(seed: u64) -> Vec<String> {
    let lexicon = Lexicon::new(seed);
    let mut random = Random::new(seed, "turn");
    let languages = [Language::English, Language::Chinese, Language::Mixed, Language::Code];
    (0..64)
        .map(|number: usize| {
            let words = random.length(13.0, 0.6, 3);
            lexicon.text(&mut random, languages[number % languages.len()], words)
        })
        .collect()
}

async fn begin(client: &Client, owner: &str, number: u32) -> anyhow::Result<String> {
    let request = pb::CreateSessionRequest {
        parent: owner.to_owned(),
        session: None,
        setup: Some(pb::SessionSetup::default()),
        request_id: format!("session-{number}"),
    };
    let answer = client
        .sessions
        .create_session(request)
        .await
        .context("create a session")?;
    Ok(answer.session.context("an answer without a session")?.name)
}

async fn talk(
    client: &Client,
    model: &Model,
    texts: &[String],
    session: &str,
    number: u32,
    pace: Pace,
) -> anyhow::Result<Measured> {
    let mut measured = Measured::default();
    tokio::time::sleep(pace.offset).await;
    for turn in 0..pace.turns {
        let mark = format!("s{number}t{turn}");
        let text = &texts[usize::try_from(number + turn)? % texts.len()];
        let began = Instant::now();
        let (completed, first_text) = say(client, session, &marked(&mark, text), &mark, began).await?;
        let whole = began.elapsed();
        let models = model
            .time(&mark)
            .with_context(|| format!("the model was not asked in turn {mark}"))?;
        ensure!(
            completed.text.contains("of an answer"),
            "the answer is another: {}",
            completed.text
        );
        measured.added.push(whole.saturating_sub(models));
        measured.first_text.push(first_text);
        measured.reviews_due += usize::from(completed.review_due.is_some_and(|due| due.memory || due.skills));
        tokio::time::sleep(pace.pause).await;
    }
    Ok(measured)
}

/// One turn, read to its end. Gives its last event and when the first text came.
async fn say(
    client: &Client,
    session: &str,
    text: &str,
    request_id: &str,
    began: Instant,
) -> anyhow::Result<(pb::TurnCompleted, Duration)> {
    let message = pb::UserMessage {
        text: text.to_owned(),
        attachments: Vec::new(),
    };
    let request = pb::RunTurnRequest {
        session: session.to_owned(),
        request_id: request_id.to_owned(),
        input: Some(Input::UserMessage(message)),
        steer: false,
    };
    let mut events = client.agent.run_turn(request).await.context("run a turn")?;
    let mut first_text = None;
    while let Some(item) = events.message().await.context("read a turn")? {
        match item.event.and_then(|event| event.event) {
            Some(Event::TextDelta(_)) => {
                first_text.get_or_insert_with(|| began.elapsed());
            }
            Some(Event::Completed(completed)) => {
                return Ok((completed, first_text.unwrap_or_else(|| began.elapsed())));
            }
            Some(Event::Failed(failed)) => bail!("a turn failed: {} {}", failed.reason, failed.message),
            _ => {}
        }
    }
    bail!("a turn's stream ended before the turn")
}
