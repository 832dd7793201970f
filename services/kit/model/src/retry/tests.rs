//! Retries against a scripted server, with time that passes at once.

use std::sync::{Mutex, PoisonError};

use steward_testkit::{MockClock, ModelServer, Reply as Scripted};

use super::*;
use crate::message::{Message, ToolChoice};
use crate::openai::{OpenAiConfig, OpenAiProvider};
use crate::provider::{Reply, collect};

#[derive(Default)]
struct Waits {
    clock: MockClock,
    slept: Mutex<Vec<Duration>>,
}

#[async_trait]
impl Sleeper for Waits {
    async fn sleep(&self, duration: Duration) {
        self.clock.advance(duration);
        self.slept.lock().unwrap_or_else(PoisonError::into_inner).push(duration);
    }
}

async fn ask(server: &ModelServer) -> (Result<Reply, ModelError>, Vec<Duration>, usize) {
    let inner = OpenAiProvider::new(OpenAiConfig::new(server.base_url(), None)).expect("a provider");
    let waits = Arc::new(Waits::default());
    let clock = Arc::new(waits.clock.clone());
    let mut provider = Retrying::new(
        inner,
        RetryPolicy::default(),
        clock,
        Arc::clone(&waits) as Arc<dyn Sleeper>,
    );
    provider.spread = || 1.0;
    let request = ModelRequest {
        model: "m".to_owned(),
        system: "".into(),
        tools_json: "".into(),
        messages: vec![Message::user("hi")],
        tool_choice: ToolChoice::Auto,
        max_output_tokens: None,
    };
    let mut seen = 0;
    let stream = provider.stream(request).await.expect("the stream itself always begins");
    let outcome = collect(stream, |delta| {
        seen += usize::from(matches!(delta, Delta::Retrying { .. }));
    })
    .await;
    let slept = waits.slept.lock().unwrap_or_else(PoisonError::into_inner).clone();
    (outcome, slept, seen)
}

#[tokio::test]
async fn retry_after_is_honoured_and_each_retry_is_visible() {
    let limited = Scripted::error(429, "slow").header("retry-after", "2");
    let server = ModelServer::with_replies([
        limited,
        Scripted::error(529, "busy"),
        Scripted::dropped(),
        Scripted::text("ok"),
    ])
    .await;
    let (outcome, slept, seen) = ask(&server).await;
    assert_eq!(outcome.expect("the fourth attempt works").content, "ok");
    assert_eq!(slept, [2, 2, 4].map(Duration::from_secs));
    assert_eq!(seen, 3);
}

#[tokio::test]
async fn what_does_not_heal_ends_at_once() {
    for reply in [
        Scripted::error(401, "no"),
        Scripted::error(429, "quota used up, resets tomorrow"),
        Scripted::error(400, "prompt too long"),
        Scripted::error(429, "slow").header("retry-after", "3600"),
    ] {
        let server = ModelServer::with_replies([reply]).await;
        let (outcome, slept, _) = ask(&server).await;
        assert!(outcome.is_err() && slept.is_empty());
        assert_eq!(server.requests().len(), 1);
    }
}

#[tokio::test]
async fn attempts_are_bounded() {
    let server = ModelServer::scripted(|_| Scripted::error(503, "<html>down</html>")).await;
    let (outcome, slept, _) = ask(&server).await;
    assert!(matches!(outcome, Err(ModelError::Overloaded { status: 503, .. })));
    assert_eq!((server.requests().len(), slept.len()), (4, 3));
}

#[tokio::test]
async fn nothing_is_retried_once_a_word_was_passed_on() {
    let server = ModelServer::with_replies([Scripted::text("half a sentence, then silence").cut_after(400)]).await;
    let (outcome, slept, _) = ask(&server).await;
    assert_eq!((outcome, slept.len()), (Err(ModelError::BrokenOff), 0));
}

#[test]
fn waits_grow_are_spread_and_stay_within_the_total() {
    let policy = RetryPolicy::default();
    let busy = ModelError::Overloaded {
        status: 503,
        message: String::new(),
        retry_after: None,
    };
    assert_eq!(
        policy.wait(1, &busy, Duration::ZERO, 0.0),
        Some(Duration::from_millis(500))
    );
    assert_eq!(policy.wait(3, &busy, Duration::ZERO, 1.0), Some(Duration::from_secs(4)));
    assert_eq!(policy.wait(4, &busy, Duration::ZERO, 1.0), None);
    assert_eq!(policy.wait(1, &busy, Duration::from_mins(3), 0.0), None);
}
