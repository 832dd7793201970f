//! A model server that takes its time and says how much of it: OpenAI chat completions over real HTTP, an answer in pieces
//! at even distances. Its own time, from the request that it has read to the last byte that it hands over, is what is taken
//! out of a turn.

use std::collections::HashMap;
use std::convert::Infallible;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use anyhow::Context as _;
use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::State;
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse as _, Response};
use axum::routing::post;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::task::JoinSet;

/// The model's name.
pub(crate) const NAME: &str = "scripted";

/// Pieces of an answer.
const PIECES: u32 = 10;
/// What opens and closes the mark of a message, by which its model call is known again.
const MARK: (&str, &str) = ("[[", "]]");
/// Stands in every review's request and in nobody's message.
const REVIEW: &[u8] = b"</review_data>";

/// The running server. Dropping it closes its port.
#[derive(Debug)]
pub(crate) struct Model {
    base_url: String,
    times: Arc<Times>,
    _tasks: JoinSet<()>,
}

/// How long the model took for each marked message.
#[derive(Debug)]
struct Times {
    answer: Duration,
    by_mark: Mutex<HashMap<String, Duration>>,
}

/// A message that the server can tell from all others.
pub(crate) fn marked(mark: &str, text: &str) -> String {
    format!("{}{mark}{} {text}", MARK.0, MARK.1)
}

impl Model {
    /// Takes `answer` for each answer.
    pub(crate) async fn start(answer: Duration) -> anyhow::Result<Self> {
        let times = Arc::new(Times {
            answer,
            by_mark: Mutex::default(),
        });
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.context("a free port")?;
        let base_url = format!("http://{}/v1", listener.local_addr()?);
        let router = Router::new()
            .route("/v1/chat/completions", post(complete))
            .with_state(Arc::clone(&times));
        let mut tasks = JoinSet::new();
        tasks.spawn(async move {
            // It is dropped rather than asked to end.
            let _ = axum::serve(listener, router).await;
        });
        Ok(Self {
            base_url,
            times,
            _tasks: tasks,
        })
    }

    /// The base URL to configure.
    pub(crate) fn base_url(&self) -> &str {
        &self.base_url
    }

    /// How long the model took for this message.
    pub(crate) fn time(&self, mark: &str) -> Option<Duration> {
        self.times.lock().get(mark).copied()
    }
}

impl Times {
    fn lock(&self) -> std::sync::MutexGuard<'_, HashMap<String, Duration>> {
        self.by_mark.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

async fn complete(State(times): State<Arc<Times>>, body: Bytes) -> Response {
    let began = Instant::now();
    if contains(&body, REVIEW) {
        return stream(vec![verdict()], Duration::ZERO, |()| {}, ());
    }
    let mark = last_mark(&body);
    let pieces = (1..=PIECES).map(|number| format!("piece {number} of an answer. ")).collect();
    let done = move |()| {
        if let Some(mark) = mark {
            *times.lock().entry(mark).or_default() += began.elapsed();
        }
    };
    stream(pieces, Duration::ZERO, done, ())
}
