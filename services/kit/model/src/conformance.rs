//! One suite that every provider passes, over real HTTP against one script: what the rest of the product sees must not
//! depend on the protocol (`T-10`).

mod answers;
mod faults;

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use steward_testkit::{MockClock, ModelServer, Reply as Scripted};

use crate::config::{ProviderConfig, ProviderKind};
use crate::error::ModelError;
use crate::message::{Message, ModelRequest, ToolChoice};
use crate::native::Continuation;
use crate::provider::{Delta, Provider, Reply, collect};
use crate::retry::{RetryPolicy, Retrying, Sleeper};
use crate::secret::Secret;

/// Makes a test of each case for each protocol.
macro_rules! for_each_protocol {
    ($($case:ident),+ $(,)?) => {
        mod chat_completions {
            $(#[tokio::test]
            async fn $case() {
                super::$case(crate::config::ProviderKind::OpenAi).await;
            })+
        }
        mod messages {
            $(#[tokio::test]
            async fn $case() {
                super::$case(crate::config::ProviderKind::Anthropic).await;
            })+
        }
    };
}
use for_each_protocol;

const KEY: &str = "hush-hush";

/// A provider of one protocol and the server that it talks to.
struct Rig {
    server: ModelServer,
    provider: Arc<dyn Provider>,
}

impl Rig {
    async fn new(kind: ProviderKind, replies: impl IntoIterator<Item = Scripted>) -> Self {
        Self::on(kind, ModelServer::with_replies(replies).await)
    }

    fn on(kind: ProviderKind, server: ModelServer) -> Self {
        let provider = config(kind, &server).build().expect("a provider");
        Self { server, provider }
    }

    async fn ask(&self, messages: &[Message]) -> Result<Reply, ModelError> {
        let stream = self
            .provider
            .stream_with(request(messages), Continuation::default())
            .await?;
        collect(stream, |_| {}).await
    }

    async fn ask_anything(&self) -> Result<Reply, ModelError> {
        self.ask(&[Message::user("hi")]).await
    }

    /// Asks with retries; time passes at once.
    async fn ask_patiently(&self) -> Patient {
        let waits = Arc::new(Waits::default());
        let clock = Arc::new(waits.clock.clone());
        let sleeper = Arc::clone(&waits) as Arc<dyn Sleeper>;
        let provider = Retrying::new(Arc::clone(&self.provider), RetryPolicy::default(), clock, sleeper);
        let stream = provider
            .without_spread()
            .stream(request(&[Message::user("hi")]))
            .await
            .expect("the stream itself always begins");
        let mut visible = 0;
        let outcome = collect(stream, |delta| {
            visible += usize::from(matches!(delta, Delta::Retrying { .. }));
        })
        .await;
        let slept = waits.slept.lock().unwrap_or_else(PoisonError::into_inner).clone();
        Patient {
            outcome,
            slept,
            visible,
        }
    }
}

struct Patient {
    outcome: Result<Reply, ModelError>,
    slept: Vec<Duration>,
    visible: usize,
}

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

fn config(kind: ProviderKind, server: &ModelServer) -> ProviderConfig {
    ProviderConfig::new(kind, server.base_url(), Some(Secret::new(KEY)))
}

fn request(messages: &[Message]) -> ModelRequest {
    ModelRequest {
        model: "scripted".to_owned(),
        system: "You help.".into(),
        tools_json: r#"[{"name":"look","description":"Looks.","input_schema":{"type":"object"}}]"#.into(),
        messages: messages.to_vec(),
        tool_choice: ToolChoice::Auto,
        max_output_tokens: None,
    }
}

/// The message that an answer becomes.
fn said(reply: Reply) -> Message {
    Message::Assistant {
        content: reply.content,
        tool_calls: reply.tool_calls,
    }
}

fn result(call_id: &str, content: &str) -> Message {
    Message::Tool {
        call_id: call_id.to_owned(),
        name: "look".to_owned(),
        content: content.to_owned(),
    }
}
