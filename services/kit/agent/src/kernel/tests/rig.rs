//! Ports in memory, with a log of what happened in which order.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use steward_base::{ErrorKind, Fault, Integrity, SpanOrigin};
use steward_model::{Message, OpenAiConfig, OpenAiProvider, ToolChoice};
use steward_testkit::{ModelServer, RecordedRequest, Reply};
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;

use super::super::*;

const TOOLS: &str = concat!(
    r#"[{"name":"client","input_schema":{}},{"name":"forbidden","input_schema":{}},{"name":"look","input_schema":{}},"#,
    r#"{"name":"slow","input_schema":{}},{"name":"write","input_schema":{"required":["n"]}}]"#
);

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Stored {
    Calls(u32, usize),
    Results(u32, Vec<String>),
    Steering(u32, String),
    Final(u32, AnswerEnd),
}

#[derive(Debug, thiserror::Error)]
#[error("the lease is gone")]
pub(super) struct LeaseLost;

impl Fault for LeaseLost {
    fn kind(&self) -> ErrorKind {
        ErrorKind::Conflict
    }

    fn reason(&self) -> &'static str {
        "STALE_FENCE"
    }
}

#[derive(Default)]
pub(super) struct Record {
    stored: Mutex<Vec<Stored>>,
    log: Mutex<Vec<String>>,
    text: Mutex<String>,
    steering: Mutex<Vec<Steering>>,
    steer_later: Mutex<Option<String>>,
    lease_lost: AtomicBool,
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Record {
    fn note(&self, line: String) {
        lock(&self.log).push(line);
    }

    fn store(&self, entry: Stored) -> Result<(), PortError> {
        if self.lease_lost.load(Ordering::SeqCst) {
            return Err(LeaseLost.into());
        }
        lock(&self.stored).push(entry);
        Ok(())
    }
}

#[async_trait]
impl Transcript for Record {
    async fn append_calls(&self, message: &CallingMessage) -> Result<(), PortError> {
        self.store(Stored::Calls(message.step, message.tool_calls.len()))?;
        self.note(format!("stored calls {}", message.step));
        if let Some(text) = lock(&self.steer_later).take() {
            lock(&self.steering).push(Steering::new(text));
        }
        Ok(())
    }

    async fn append_results(&self, step: u32, results: &[ToolResult]) -> Result<(), PortError> {
        self.store(Stored::Results(
            step,
            results.iter().map(|result| result.call_id.clone()).collect(),
        ))
    }

    async fn append_steering(&self, step: u32, texts: &[Steering]) -> Result<(), PortError> {
        self.store(Stored::Steering(
            step,
            texts.iter().map(|text| text.said.clone()).collect(),
        ))
    }

    async fn append_final(&self, message: &FinalMessage, progress: &Progress) -> Result<(), PortError> {
        assert_eq!(progress.iterations, message.step + 1);
        self.store(Stored::Final(message.step, message.end))
    }

    async fn take_steering(&self) -> Result<Vec<Steering>, PortError> {
        Ok(std::mem::take(&mut *lock(&self.steering)))
    }
}

impl Events for Record {
    fn emit(&self, event: Event) {
        if let Event::Text(text) = event {
            lock(&self.text).push_str(&text);
        }
    }
}

pub(super) struct Tools {
    record: Arc<Record>,
    gate: Semaphore,
}

impl Tools {
    pub(super) fn release(&self) {
        self.gate.add_permits(1);
    }
}

#[async_trait]
impl Dispatch for Tools {
    async fn dispatch(&self, call: &CallRequest) -> Result<Dispatched, PortError> {
        let name = call.call.name.as_str();
        self.record.note(format!("began {name} {}", call.key));
        match name {
            "client" => return Ok(Dispatched::Client),
            "slow" => drop(self.gate.acquire().await),
            // Lets every other ready future run first.
            _ => tokio::task::yield_now().await,
        }
        self.record.note(format!("ran {name} {}", call.key));
        if name == "forbidden" {
            return Ok(Dispatched::Denied("This is refused; do not retry.".to_owned()));
        }
        let origin = SpanOrigin::Tool(name.to_owned());
        Ok(Dispatched::Done(ToolOutput::of(
            format!("result of {}", call.key),
            origin,
            Integrity::Workspace,
        )))
    }

    fn lane(&self, call: &CallRequest) -> Option<String> {
        (call.call.name == "write").then(|| "write".to_owned())
    }
}

pub(super) fn conversation(text: &str) -> Conversation {
    Conversation {
        model: "scripted".to_owned(),
        system: "You help.".into(),
        tools_json: TOOLS.into(),
        messages: vec![Message::user(text)],
        turn_start: 0,
        key_prefix: "s/t".to_owned(),
        known_results: Vec::new(),
        tool_choice: ToolChoice::Auto,
        max_output_tokens: None,
    }
}

pub(super) struct Rig {
    pub(super) server: ModelServer,
    pub(super) tools: Arc<Tools>,
    pub(super) interrupt: CancellationToken,
    pub(super) settings: Settings,
    record: Arc<Record>,
}

impl Rig {
    pub(super) async fn with(replies: impl IntoIterator<Item = Reply>) -> Self {
        Self::on(ModelServer::with_replies(replies).await)
    }

    pub(super) async fn scripted(script: impl Fn(&RecordedRequest) -> Reply + Send + Sync + 'static) -> Self {
        Self::on(ModelServer::scripted(script).await)
    }

    fn on(server: ModelServer) -> Self {
        let record = Arc::new(Record::default());
        let tools = Arc::new(Tools {
            record: Arc::clone(&record),
            gate: Semaphore::new(0),
        });
        Self {
            server,
            tools,
            interrupt: CancellationToken::new(),
            settings: Settings::default(),
            record,
        }
    }

    pub(super) fn ports(&self) -> Ports {
        let provider = OpenAiProvider::new(OpenAiConfig::new(self.server.base_url(), None)).expect("a provider");
        Ports {
            model: Arc::new(ProviderPort(provider)),
            transcript: Arc::clone(&self.record) as Arc<dyn Transcript>,
            dispatch: Arc::clone(&self.tools) as Arc<dyn Dispatch>,
            events: Arc::clone(&self.record) as Arc<dyn Events>,
            interrupt: self.interrupt.clone(),
        }
    }

    pub(super) async fn run(&self, conversation: Conversation) -> Ended {
        super::super::run(&self.ports(), &self.settings, conversation).await
    }

    pub(super) fn stored(&self) -> Vec<Stored> {
        lock(&self.record.stored).clone()
    }

    pub(super) fn log(&self) -> Vec<String> {
        lock(&self.record.log).clone()
    }

    /// Keys of the calls that ran to their end, in that order.
    pub(super) fn dispatched(&self) -> Vec<String> {
        let ran = self.log().into_iter().filter(|line| line.starts_with("ran "));
        ran.filter_map(|line| line.rsplit(' ').next().map(str::to_owned))
            .collect()
    }

    pub(super) fn text(&self) -> String {
        lock(&self.record.text).clone()
    }

    pub(super) fn steer_after_calls(&self, text: &str) {
        *lock(&self.record.steer_later) = Some(text.to_owned());
    }

    pub(super) fn lose_lease(&self) {
        self.record.lease_lost.store(true, Ordering::SeqCst);
    }
}
