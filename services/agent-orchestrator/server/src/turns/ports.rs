//! What the loop is given in a turn: the model with its prefix check, the tools with the turn's credential, and the log of
//! events. The transcript has a file of its own.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use steward_agent::counters;
use steward_agent::kernel::{
    CallRequest, DeltaSink, Dispatch, Dispatched, Event as LoopEvent, Events, ModelPort, PortError, ResultKind,
    StepRef, ToolOutput,
};
use steward_base::names::TeamId;
use steward_base::{ErrorKind, Fault, Integrity, SpanOrigin};
use steward_client::Credentials;
use steward_guard::fence::scrub;
use steward_model::{
    Continuation, Message as ModelMessage, ModelError, ModelRequest, PrefixJudge, PrefixState, PrefixVerdict, Prepared,
    Reply, ToolCall as ModelCall, collect_answer,
};
use steward_orchestrator_core::Error;
use steward_orchestrator_core::session::{
    Counters, KeptSetup, Message, Native, NewMessage, Prefix, Said, Session, ToolCall,
};
use steward_orchestrator_core::turn::{Event, SecretRequest, SecretVariable};
use steward_runtime::failpoint;
use steward_tools::{EffectResult, MEMORY, Needed, SKILL_MANAGE, SKILL_VIEW, SKILLS_LIST, ToolAnswer, ToolContext};

use super::beside::{at, has_provider};
use super::clean::Clean;
use super::live::LiveTurn;
use super::natives::Natives;
use super::ready::Ready;
use super::{ToolRunner, Turns};
use crate::model::{Chosen, model_error};
use crate::peers::{Happened, ProviderCall};
use crate::signer::Person;

/// What all ports of a segment share.
pub(super) struct Context {
    pub(super) turns: Turns,
    pub(super) live: Arc<LiveTurn>,
    pub(super) person: Person,
    pub(super) session: Arc<Session>,
    pub(super) model: Chosen,
    /// Lease under which everything is appended.
    pub(super) fence: u64,
    /// The session's prefix state with the requests of this segment; stored with each append.
    pub(super) prefix: Mutex<Prefix>,
    /// Compares each request with the one before.
    pub(super) judge: Mutex<PrefixJudge>,
    /// The session's assistant messages in their provider's own form, where that says more.
    pub(super) natives: Mutex<Natives>,
    /// The error for which a port stopped the loop: the loop itself only knows that one did.
    pub(super) failure: Mutex<Option<Error>>,
    /// Lines for people on calls that ran here, by call id.
    pub(super) summaries: Mutex<HashMap<String, String>>,
    /// The first request, until it is asked for.
    pub(super) ready: Mutex<Option<Ready>>,
}

/// Stands in the loop for the error that is kept in the context.
#[derive(Debug, thiserror::Error)]
#[error("a port of the turn cannot go on")]
struct Stopped;

impl Fault for Stopped {
    fn kind(&self) -> ErrorKind {
        ErrorKind::Internal
    }

    fn reason(&self) -> &'static str {
        "INTERNAL"
    }
}

impl Context {
    /// Keeps the error and stops the loop.
    pub(super) fn stop(&self, error: Error) -> PortError {
        lock(&self.failure).get_or_insert(error);
        PortError::from(Stopped)
    }

    pub(super) fn is_client_tool(&self, name: &str) -> bool {
        self.session.client_tool(name).is_some()
    }

    /// The request in its provider's form, judged: as it was made ready, or made now.
    fn prepare(&self, request: ModelRequest) -> Result<Prepared, ModelError> {
        let continuation = continuation_of(&self.session, &mut lock(&self.natives), request.messages.len());
        let ready = lock(&self.ready).take();
        if let Some(ready) = ready.filter(|ready| ready.is(&request, &continuation)) {
            let (prepared, judged) = ready.into_parts();
            *lock(&self.judge) = judged.judge;
            self.note_prefix(judged.verdict, judged.state);
            return Ok(prepared);
        }
        let prepared = self.model.provider.prepare(request, continuation)?;
        let (verdict, now) = lock(&self.judge).judge(prepared.rendered.clone());
        self.note_prefix(verdict, now);
        Ok(prepared)
    }

    /// The provider's own form of the answer that is about to be stored.
    pub(super) fn native_of_answer(&self) -> Option<Native> {
        lock(&self.natives).take_answer()
    }

    /// Whether the request extends the one before it (`P-4`). A break that nobody planned is a fault: it is counted with
    /// the session, and logged.
    fn note_prefix(&self, verdict: PrefixVerdict, now: PrefixState) {
        let mut prefix = lock(&self.prefix);
        if let PrefixVerdict::Broken(segments) = verdict {
            prefix.unplanned_breaks += 1;
            tracing::error!(session.id = %self.session.key.id, turn.id = self.live.id(), ?segments, "a request does not extend the one before it");
        }
        prefix.tools_sha256 = now.tools_sha;
        prefix.system_sha256 = now.system_sha;
        prefix.messages_bytes = now.messages_len;
        prefix.messages_sha256 = now.messages_sha;
        prefix.requests += 1;
    }
}

/// What goes with a request beside its messages (`P-5`).
pub(super) fn continuation_of(session: &Session, natives: &mut Natives, messages: usize) -> Continuation {
    let stable = usize::try_from(session.stable_prompt_bytes).unwrap_or(0);
    Continuation {
        stable_len: (stable > 0).then_some(stable),
        natives: natives.for_request(messages),
    }
}

/// From where a session's prefix goes on. There is nothing before the first request and right after a planned break.
pub(super) fn judge_of(prefix: &Prefix) -> PrefixJudge {
    PrefixJudge::new((!prefix.messages_sha256.is_empty()).then(|| PrefixState {
        tools_sha: prefix.tools_sha256.clone(),
        system_sha: prefix.system_sha256.clone(),
        messages_len: prefix.messages_bytes,
        messages_sha: prefix.messages_sha256.clone(),
    }))
}

pub(super) fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The model of the session.
pub(super) struct TurnModel(pub(super) Arc<Context>);

#[async_trait]
impl ModelPort for TurnModel {
    async fn call(&self, _at: StepRef, request: ModelRequest, sink: &mut dyn DeltaSink) -> Result<Reply, ModelError> {
        let (context, messages) = (&self.0, request.messages.len());
        let prepared = context.prepare(request)?;
        let stream = context.model.provider.send(prepared).await?;
        let mut clean = Clean::new(sink);
        let answer = collect_answer(stream, |delta| clean.take(delta)).await;
        clean.finish();
        let mut answer = answer?;
        let clean = scrub(&answer.reply.content);
        if clean != answer.reply.content {
            // The provider's own form would carry the fence on.
            answer.native = None;
            answer.reply.content = clean;
        }
        lock(&context.natives).answered(messages, answer.native);
        Ok(answer.reply)
    }
}

/// The built-in tools; what runs at the client is left to the client.
pub(super) struct TurnDispatch {
    pub(super) context: Arc<Context>,
    pub(super) tools: Arc<dyn ToolRunner>,
    pub(super) credentials: Credentials,
}

#[async_trait]
impl Dispatch for TurnDispatch {
    async fn dispatch(&self, request: &CallRequest) -> Result<Dispatched, PortError> {
        let (context, call) = (&self.context, &request.call);
        if context.is_client_tool(&call.name) {
            return Ok(Dispatched::Client);
        }
        context.live.log().push(Event::ToolStarted {
            call_id: call.id.clone(),
            tool: call.name.clone(),
        });
        if !steward_tools::is_builtin(&call.name) {
            return Ok(self.ask_provider(request).await);
        }
        let around = self.around(request);
        let writes = call.name == MEMORY || call.name == SKILL_MANAGE;
        if writes {
            failpoint::hit("turn.tool_write.before");
        }
        let answer = self.tools.call(&around, &call.name, &call.arguments).await;
        if writes {
            failpoint::hit("turn.tool_write.after");
        }
        self.tell_of_write(request, &answer);
        if let Some(needed) = answer.needed {
            context.live.log().push(Event::SecretRequest(secret_request(needed)));
        }
        lock(&context.summaries).insert(call.id.clone(), answer.summary);
        Ok(Dispatched::Done(ToolOutput {
            content: answer.content,
            is_error: answer.is_error,
            spans: answer.spans,
        }))
    }

    /// Calls on one store keep the model's order: the second may rest on what the first did.
    fn lane(&self, request: &CallRequest) -> Option<String> {
        match request.call.name.as_str() {
            MEMORY => Some(MEMORY.to_owned()),
            SKILL_MANAGE | SKILL_VIEW | SKILLS_LIST => Some("skills".to_owned()),
            _ => None,
        }
    }
}

impl TurnDispatch {
    fn around(&self, request: &CallRequest) -> ToolContext {
        let context = &self.context;
        ToolContext {
            team: context.person.team.clone(),
            user: context.person.user.clone(),
            session: Some(context.session.key.id.clone()),
            project: TeamId::parse(context.session.project.as_str()).ok(),
            work: context.live.id().to_owned(),
            credentials: self.credentials.clone(),
            key: request.key.clone(),
            evidence: None,
            variables: (request.call.name == SKILL_VIEW)
                .then(|| KeptSetup::variables(&context.session.setup))
                .flatten(),
        }
    }

    /// A tool that is neither built in nor the client's is the external memory's: nothing else is in the list. What it
    /// says is text from outside.
    async fn ask_provider(&self, request: &CallRequest) -> Dispatched {
        let (context, call) = (&self.context, &request.call);
        let at = at(&context.person, &context.session.key, context.live.id());
        let asked = ProviderCall {
            tool: &call.name,
            arguments: &call.arguments,
            id: &request.key,
        };
        let reply = context.turns.parts().beside.call(&at, asked).await;
        let origin = SpanOrigin::External(format!("tool {}", call.name));
        let output = ToolOutput::of(reply.content, origin, Integrity::External);
        Dispatched::Done(if reply.is_error { output.failed() } else { output })
    }

    /// The external memory hears what was written into the built-in one.
    fn tell_of_write(&self, request: &CallRequest, answer: &ToolAnswer) {
        let context = &self.context;
        let accepted = answer
            .effect
            .as_ref()
            .is_some_and(|effect| effect.tool == MEMORY && effect.result == EffectResult::Accepted);
        if !accepted || !has_provider(&context.session) {
            return;
        }
        let written = written(&request.arguments);
        if !written.is_empty() {
            let (person, session, turn) = (&context.person, &context.session, context.live.id());
            context
                .turns
                .tell(person, session, turn, Happened::MemoryWrite, written);
        }
    }
}

fn secret_request(needed: Needed) -> SecretRequest {
    let variables = needed.variables.into_iter().map(|variable| SecretVariable {
        name: variable.name,
        prompt: variable.prompt,
        help: variable.help,
    });
    SecretRequest {
        skill: needed.skill,
        variables: variables.collect(),
        team_store: needed.team_store,
    }
}

/// The texts that a call of the memory tool writes, one a line.
fn written(arguments: &serde_json::Map<String, serde_json::Value>) -> String {
    let operations = arguments.get("operations").and_then(serde_json::Value::as_array);
    let parts = operations
        .into_iter()
        .flatten()
        .filter_map(serde_json::Value::as_object);
    let texts: Vec<&str> = std::iter::once(arguments)
        .chain(parts)
        .filter_map(|part| part.get("content")?.as_str())
        .collect();
    texts.join("\n")
}

/// The log of the turn.
pub(super) struct TurnEvents(pub(super) Arc<Context>);

impl Events for TurnEvents {
    fn emit(&self, event: LoopEvent) {
        let log = self.0.live.log();
        match event {
            LoopEvent::Text(text) => log.push(Event::Text(text)),
            LoopEvent::Retrying { attempt, wait, error } => log.push(Event::ModelRetry {
                attempt,
                reason: model_error(&self.0.model.name, &error).reason(),
                delay_ms: u32::try_from(wait.as_millis()).unwrap_or(u32::MAX),
            }),
            LoopEvent::Steered(texts) => {
                for text in texts {
                    log.push(Event::Steered(text.said));
                }
            }
            LoopEvent::CallFinished(result)
                if !self.0.is_client_tool(&result.name) || result.kind != ResultKind::Done =>
            {
                let summary = lock(&self.0.summaries).remove(&result.call_id).unwrap_or_default();
                log.push(Event::ToolFinished {
                    call_id: result.call_id,
                    tool: result.name,
                    is_error: result.is_error,
                    summary,
                });
            }
            LoopEvent::StepStarted(_)
            | LoopEvent::CallStarted { .. }
            | LoopEvent::EmptyAnswer
            | LoopEvent::CallsStored(_)
            | LoopEvent::CallFinished(_) => {}
        }
    }
}

/// The stored history as it is sent.
pub(super) fn as_model_messages(history: &[Message]) -> Vec<ModelMessage> {
    history.iter().map(|message| as_model_message(&message.body)).collect()
}

/// A message as it is sent.
pub(super) fn as_model_message(message: &NewMessage) -> ModelMessage {
    let content = message.sent().to_owned();
    match &message.said {
        Said::User => ModelMessage::User { content },
        Said::Assistant { calls } => ModelMessage::Assistant {
            content,
            tool_calls: calls.iter().map(as_model_call).collect(),
        },
        Said::Tool { call_id, tool, .. } => ModelMessage::Tool {
            call_id: call_id.clone(),
            name: tool.clone(),
            content,
        },
    }
}

fn as_model_call(call: &ToolCall) -> ModelCall {
    ModelCall {
        id: call.id.clone(),
        name: call.name.clone(),
        arguments: call.arguments.clone(),
    }
}

pub(super) fn as_call(call: &ModelCall) -> ToolCall {
    ToolCall {
        id: call.id.clone(),
        name: call.name.clone(),
        arguments: call.arguments.clone(),
    }
}

pub(super) const fn as_agent_counters(counters: Counters) -> counters::Counters {
    counters::Counters {
        turns_since_memory: counters.turns_since_memory,
        iterations_since_skill: counters.iterations_since_skill,
    }
}

pub(super) const fn as_counters(counters: counters::Counters, user_turns: u32) -> Counters {
    Counters {
        turns_since_memory: counters.turns_since_memory,
        iterations_since_skill: counters.iterations_since_skill,
        user_turns,
    }
}
