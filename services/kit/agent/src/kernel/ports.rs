//! What the kernel needs from whoever runs it.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use steward_base::{Integrity, Span, SpanOrigin};
use steward_model::{Delta, ModelError, ModelRequest, Provider, Reply, ToolCall, Usage, collect};
use tokio_util::sync::CancellationToken;

use super::outcome::{PortError, Progress};

/// Which model call of a turn this is. The pair is the same when the turn is run again from the same history.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct StepRef {
    /// Number of assistant messages of the turn before this one.
    pub step: u32,
    /// 0, or 1 when an empty answer is asked for again.
    pub attempt: u32,
}

/// Where the pieces of a running answer go.
pub trait DeltaSink: Send {
    /// Takes one piece. Must not block.
    fn take(&mut self, delta: &Delta);
}

/// The model.
#[async_trait]
pub trait ModelPort: Send + Sync {
    /// One call. Each delta goes to `sink` as it comes; retries of the transport happen inside.
    ///
    /// # Errors
    /// Whatever the provider answered, by class.
    async fn call(&self, at: StepRef, request: ModelRequest, sink: &mut dyn DeltaSink) -> Result<Reply, ModelError>;
}

/// A provider used directly as the model.
#[derive(Debug, Clone)]
pub struct ProviderPort<P>(pub P);

#[async_trait]
impl<P: Provider> ModelPort for ProviderPort<P> {
    async fn call(&self, _at: StepRef, request: ModelRequest, sink: &mut dyn DeltaSink) -> Result<Reply, ModelError> {
        collect(self.0.stream(request).await?, |delta| sink.take(delta)).await
    }
}

/// An assistant message that calls tools.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CallingMessage {
    /// Its step.
    pub step: u32,
    /// Text beside the calls; often empty.
    pub content: String,
    /// The calls in a form that any provider takes back: valid JSON arguments, known characters in names.
    pub tool_calls: Vec<ToolCall>,
    /// What the model call consumed.
    pub usage: Usage,
}

/// How the last message of a turn ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AnswerEnd {
    /// The model was done.
    Complete,
    /// The provider's limit cut it.
    Length,
    /// The turn was interrupted while it was being written.
    Interrupted,
    /// The stream broke.
    BrokenOff,
}

/// The message that ends a turn.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FinalMessage {
    /// Its step.
    pub step: u32,
    /// The text that the person saw.
    pub said: String,
    /// The text that later requests carry: the same, or with a note that it broke off.
    pub sent: String,
    /// How it ended.
    pub end: AnswerEnd,
    /// What the model call consumed; unknown when it broke off.
    pub usage: Usage,
}

/// What the person added while the turn ran.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Steering {
    /// The person's words.
    pub said: String,
    /// The message as the model gets it, in the channel that the prompt explains.
    pub sent: String,
}

impl Steering {
    /// Puts a person's words into the channel; a closing tag inside them stays harmless.
    pub fn new(said: impl Into<String>) -> Self {
        let said = said.into();
        let sent = format!(
            "<steering>\n{}\n</steering>",
            said.replace("</steering", "<\\/steering")
        );
        Self { said, sent }
    }
}

/// Where the conversation is kept. Each method returns when the rows are durable.
#[async_trait]
pub trait Transcript: Send + Sync {
    /// Appends an assistant message with calls. None of them runs before this returns.
    async fn append_calls(&self, message: &CallingMessage) -> Result<(), PortError>;

    /// Appends the results of the message before, one per call, in the model's order.
    async fn append_results(&self, step: u32, results: &[ToolResult]) -> Result<(), PortError>;

    /// Appends what the person added.
    async fn append_steering(&self, step: u32, texts: &[Steering]) -> Result<(), PortError>;

    /// Appends the last message; the place for everything that belongs into its transaction (counters, due review).
    async fn append_final(&self, message: &FinalMessage, progress: &Progress) -> Result<(), PortError>;

    /// Texts that have come in for the running turn, oldest first; each is handed out once (`T-7`).
    async fn take_steering(&self) -> Result<Vec<Steering>, PortError>;
}

/// A call, checked and keyed, ready to be run.
#[derive(Debug, Clone, PartialEq)]
pub struct CallRequest {
    /// `prefix/step/index`: the same whenever this call is dispatched again.
    pub key: String,
    /// Step of the assistant message.
    pub step: u32,
    /// Position among its calls.
    pub index: usize,
    /// The call as stored.
    pub call: ToolCall,
    /// Its arguments.
    pub arguments: Map<String, Value>,
}

/// What came of a call.
#[derive(Debug, Clone, PartialEq)]
pub enum Dispatched {
    /// It ran, well or not.
    Done(ToolOutput),
    /// The client has to run it; the segment ends with this call open.
    Client,
    /// It is not permitted here; the text tells the model so.
    Denied(String),
}

/// Runs calls.
#[async_trait]
pub trait Dispatch: Send + Sync {
    /// Runs one call. A tool's own failure is a [`Dispatched::Done`] that says so.
    ///
    /// # Errors
    /// Only what must end the run: a lost lease, a stopping process. The call counts as not answered.
    async fn dispatch(&self, call: &CallRequest) -> Result<Dispatched, PortError>;

    /// Calls of one answer that share a lane run one after the other, in the model's order; all others at once.
    fn lane(&self, call: &CallRequest) -> Option<String> {
        let _ = call;
        None
    }
}

/// What a tool returned.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolOutput {
    /// Text for the model.
    pub content: String,
    /// Whether it reports a failure.
    pub is_error: bool,
    /// Where the words of `content` come from; covers all of it.
    pub spans: Vec<Span>,
}

impl ToolOutput {
    /// An output of one origin.
    pub fn of(content: impl Into<String>, origin: SpanOrigin, integrity: Integrity) -> Self {
        let content = content.into();
        let spans = vec![whole_span(&content, origin, integrity)];
        Self {
            content,
            is_error: false,
            spans,
        }
    }

    /// The same output as a failure.
    #[must_use]
    pub fn failed(mut self) -> Self {
        self.is_error = true;
        self
    }
}

pub(super) fn whole_span(content: &str, origin: SpanOrigin, integrity: Integrity) -> Span {
    Span {
        start: 0,
        end: u32::try_from(content.len()).unwrap_or(u32::MAX),
        origin,
        integrity,
    }
}

/// What kind of result a call got.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ResultKind {
    /// The tool ran.
    Done,
    /// The call was refused.
    Denied,
    /// Its arguments could not be read; nothing ran.
    Malformed,
    /// No such tool is offered.
    Unknown,
    /// The turn ended while it ran; whether it had an effect is not known.
    Interrupted,
    /// It was closed without being run.
    Cancelled,
}

/// The one result of a call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolResult {
    /// Id of the call.
    pub call_id: String,
    /// Name of the tool.
    pub name: String,
    /// Text for the model.
    pub content: String,
    /// Whether it reports a failure.
    pub is_error: bool,
    /// Where its words come from.
    pub spans: Vec<Span>,
    /// What kind of result it is.
    pub kind: ResultKind,
}

impl ToolResult {
    /// A result in Steward's own words.
    pub fn ours(call: &ToolCall, kind: ResultKind, content: impl Into<String>) -> Self {
        let content = content.into();
        Self {
            call_id: call.id.clone(),
            name: call.name.clone(),
            spans: vec![whole_span(&content, SpanOrigin::System, Integrity::Workspace)],
            content,
            is_error: true,
            kind,
        }
    }
}

/// What is worth showing while a turn runs.
#[derive(Debug, Clone, PartialEq)]
pub enum Event {
    /// The model is asked.
    StepStarted(StepRef),
    /// More text.
    Text(String),
    /// The model begins a call.
    CallStarted {
        /// Position among the calls of this answer.
        position: usize,
        /// The tool's name.
        name: String,
    },
    /// A model call failed and is tried again (`T-10`).
    Retrying {
        /// Number of the failed attempt.
        attempt: u32,
        /// How long the next is held back.
        wait: Duration,
        /// Why.
        error: ModelError,
    },
    /// The model said nothing and is asked once more.
    EmptyAnswer,
    /// What the person added has been taken up.
    Steered(Vec<Steering>),
    /// Calls are stored and begin to run.
    CallsStored(Vec<ToolCall>),
    /// A call has its result.
    CallFinished(ToolResult),
}

/// Where events go. Must not block: a slow listener is the listener's problem (`T-8`).
pub trait Events: Send + Sync {
    /// Shows one event.
    fn emit(&self, event: Event);
}

/// All ports of a run.
#[derive(Clone)]
pub struct Ports {
    /// The model.
    pub model: Arc<dyn ModelPort>,
    /// The store of the conversation.
    pub transcript: Arc<dyn Transcript>,
    /// The tools.
    pub dispatch: Arc<dyn Dispatch>,
    /// The listeners.
    pub events: Arc<dyn Events>,
    /// Cancelled when the run should stop at its next safe point.
    pub interrupt: CancellationToken,
}

impl fmt::Debug for Ports {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Ports")
            .field("interrupted", &self.interrupt.is_cancelled())
            .finish_non_exhaustive()
    }
}
