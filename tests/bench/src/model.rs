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
use axum::extract::{DefaultBodyLimit, State};
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse as _, Response};
use axum::routing::post;
use axum::serve::ListenerExt as _;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::task::JoinSet;

/// The model's name.
pub(crate) const NAME: &str = "scripted";

/// Pieces of an answer.
const PIECES: u32 = 10;
/// What opens and closes the mark of a message, by which its model call is known again.
const MARK: (&str, &str) = ("[[bench ", "]]");
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
            .layer(DefaultBodyLimit::disable())
            .with_state(Arc::clone(&times));
        let mut tasks = JoinSet::new();
        tasks.spawn(async move {
            // Small pieces must not wait for one another. A connection that is gone already needs no setting.
            let listener = listener.tap_io(|connection| drop(connection.set_nodelay(true)));
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

/// Answers a person in pieces over the whole time; a review at once, with nothing to save.
async fn complete(State(times): State<Arc<Times>>, body: Bytes) -> Response {
    let began = Instant::now();
    let is_review = find_last(&body, REVIEW).is_some();
    let (pieces, pause) = if is_review {
        (vec![verdict()], Duration::ZERO)
    } else {
        let pieces = (1..=PIECES).map(|number| format!("This is piece {number} of an answer. "));
        (pieces.collect(), times.answer / PIECES)
    };
    let mark = last_mark(&body).filter(|_| !is_review);
    let events = async_stream::stream! {
        for (number, piece) in (1_u32..).zip(&pieces) {
            tokio::time::sleep_until((began + pause * number).into()).await;
            yield chunk(&json!({ "content": piece }), &Value::Null);
        }
        yield chunk(&json!({}), &json!("stop"));
        if let Some(mark) = mark {
            *times.lock().entry(mark).or_default() += began.elapsed();
        }
        yield end();
    };
    let events = tokio_stream::StreamExt::map(events, Ok::<_, Infallible>);
    ([(CONTENT_TYPE, "text/event-stream")], Body::from_stream(events)).into_response()
}

fn chunk(delta: &Value, finish: &Value) -> String {
    let choice = json!({ "index": 0, "delta": delta, "finish_reason": finish });
    let chunk = json!({ "id": "c", "object": "chat.completion.chunk", "model": NAME, "choices": [choice] });
    format!("data: {chunk}\n\n")
}

/// What was used, and that nothing follows.
fn end() -> String {
    let usage = json!({ "prompt_tokens": 100, "completion_tokens": 20, "total_tokens": 120 });
    let chunk = json!({ "object": "chat.completion.chunk", "choices": [], "usage": usage });
    format!("data: {chunk}\n\ndata: [DONE]\n\n")
}

fn verdict() -> String {
    let rejected = json!([{ "candidate": "the talk of a benchmark", "reason": "nothing that lasts" }]);
    json!({ "result": "no_change", "writes": [], "used_skills": [], "rejected": rejected }).to_string()
}

/// The mark of the last message: earlier ones stand in the request as well.
fn last_mark(body: &[u8]) -> Option<String> {
    let start = find_last(body, MARK.0.as_bytes())? + MARK.0.len();
    let rest = body.get(start..)?;
    let end = rest.windows(MARK.1.len()).position(|part| part == MARK.1.as_bytes())?;
    String::from_utf8(rest.get(..end)?.to_vec()).ok()
}

fn find_last(body: &[u8], what: &[u8]) -> Option<usize> {
    body.windows(what.len()).rposition(|part| part == what)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_mark_of_a_request_is_the_present_messages() {
        let body = format!("{} … {} …", marked("s1t1", "hello"), marked("s1t2", "again"));
        assert_eq!(last_mark(body.as_bytes()).as_deref(), Some("s1t2"));
        assert_eq!(last_mark(b"[[bench s1"), None);
        assert_eq!(last_mark(b"nothing"), None);
    }

    #[tokio::test]
    async fn an_answer_takes_its_time_and_the_time_is_known() {
        steward_runtime::tls::install_provider();
        let model = Model::start(Duration::from_millis(20)).await.unwrap();
        let client = reqwest::Client::builder().build().unwrap();
        let body = marked("s1t1", "hello");
        let url = format!("{}/chat/completions", model.base_url());
        let answer = client.post(&url).body(body).send().await.unwrap();
        let text = answer.text().await.unwrap();
        assert!(text.contains("piece 10 of") && text.ends_with("[DONE]\n\n"), "{text}");
        assert!(model.time("s1t1").unwrap() >= Duration::from_millis(20));
        let review = client.post(&url).body("</review_data>").send().await.unwrap();
        assert!(review.text().await.unwrap().contains("no_change"));
    }
}
