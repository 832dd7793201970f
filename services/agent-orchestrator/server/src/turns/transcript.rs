//! The store as the loop sees it. Each append holds everything that changes with it: messages, the turn's state, the
//! prefix state, and at the end the counters and the due review (`T-3` to `T-5`), so that a crash between two of them
//! leaves a whole state.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use steward_agent::counters::{Due, SessionKind, TurnEnd, TurnFacts, after_turn, may_be_reviewed};
use steward_agent::kernel::{
    AnswerEnd, CallingMessage, FinalMessage, PortError, Progress, Steering, ToolResult, Transcript, close_open_calls,
};
use steward_base::{Integrity, Span, SpanOrigin};
use steward_model::Message as ModelMessage;
use steward_orchestrator_core::Error;
use steward_orchestrator_core::session::{
    Append, DueReview, Message, NewMessage, OpenCall, Said, Session, Turn, TurnState, TurnUpdate, Usage,
};
use steward_orchestrator_core::turn::{Completed, Event, PrefixReport, turn_start};
use steward_runtime::failpoint;
use tracing_opentelemetry::OpenTelemetrySpanExt as _;

use super::close::result_message;
use super::ports::{Context, as_agent_counters, as_call, as_counters, as_model_message, as_model_messages, lock};

/// How the turn ended, as it is stored.
#[derive(Debug, Clone)]
pub(super) enum Stored {
    /// With its answer.
    Completed(Box<Completed>),
    /// Stopped in the middle of an answer; what was said of it.
    Interrupted(String),
    /// With an answer that the provider broke off.
    BrokenOff,
}

struct Position {
    /// Number of the session's last message.
    seq: u64,
    /// The turn's messages, as they are sent.
    own: Vec<ModelMessage>,
    /// Tokens of the turn.
    usage: Usage,
    /// The same for each of its model calls: a price may depend on how large one is.
    calls: Vec<Usage>,
    segments: u32,
    /// The segment begins with results of the client that are not stored yet.
    opens: bool,
    ended: Option<Stored>,
}

/// The transcript of one segment.
pub(super) struct TurnTranscript {
    context: Arc<Context>,
    position: Mutex<Position>,
}

/// What changes beside the messages.
#[derive(Default)]
struct Change {
    messages: Vec<NewMessage>,
    usage: Option<Usage>,
    state: Option<TurnState>,
    error: Option<(String, String)>,
    ends: bool,
    reviewable: bool,
    open_calls: Option<Vec<OpenCall>>,
    /// The turn waits for the client: nobody needs the lease until the results come.
    waits: bool,
}

impl TurnTranscript {
    pub(super) fn new(context: Arc<Context>, turn: &Turn, history: &[Message]) -> Self {
        let own = &history[turn_start(history, &turn.id)..];
        let usage = own.iter().fold(Usage::default(), |sum, message| {
            sum.plus(message.body.usage.unwrap_or_default())
        });
        let calls = own.iter().filter_map(|message| message.body.usage).collect();
        let opens = turn.state == TurnState::RequiresAction;
        let position = Position {
            seq: context.session.last_seq,
            own: as_model_messages(own),
            usage,
            calls,
            segments: turn.segments + u32::from(opens),
            opens,
            ended: None,
        };
        Self {
            context,
            position: Mutex::new(position),
        }
    }

    /// How the turn ended, if its end is stored.
    pub(super) fn ended(&self) -> Option<Stored> {
        lock(&self.position).ended.clone()
    }

    /// The client has calls to run: the turn waits, durably.
    pub(super) async fn wait_for_client(&self, open: Vec<OpenCall>) -> Result<(), Error> {
        let change = Change {
            state: Some(TurnState::RequiresAction),
            open_calls: Some(open),
            waits: true,
            ..Change::default()
        };
        self.append("waits", change).await.map(drop)
    }

    /// The turn was stopped where nothing of an answer was there yet.
    pub(super) async fn end_interrupted(&self) -> Result<(), Error> {
        let change = Change {
            messages: self.unanswered("The turn was stopped before this call had a result."),
            state: Some(TurnState::Interrupted),
            ends: true,
            open_calls: Some(Vec::new()),
            ..Change::default()
        };
        self.append("interrupted", change).await.map(drop)
    }

    /// The turn failed; what was said stays.
    pub(super) async fn end_failed(&self, reason: String, message: String) -> Result<(), Error> {
        let change = Change {
            messages: self
                .unanswered("The turn failed before this call had a result. Whether it had an effect is not known."),
            state: Some(TurnState::Failed),
            error: Some((reason, message)),
            ends: true,
            open_calls: Some(Vec::new()),
            ..Change::default()
        };
        self.append("failed", change).await.map(drop)
    }

    /// A result for every call that has none yet: an end leaves no call open (`T-11`).
    fn unanswered(&self, why: &str) -> Vec<NewMessage> {
        let turn = self.context.live.id();
        let closed = close_open_calls(&lock(&self.position).own, why);
        closed.iter().map(|result| result_message(result, turn)).collect()
    }

    /// One transaction; the number of the session's last message after it, and what became due.
    async fn append(&self, name: &str, change: Change) -> Result<(u64, Due), Error> {
        let context = &self.context;
        let turn = context.live.id();
        let messages = change.messages.clone();
        let (append, due) = {
            let position = lock(&self.position);
            self.prepare(&position, format!("{turn}/{}/{name}", position.seq), change)
        };
        let seq = context
            .turns
            .store()
            .append(&context.session.key, append)
            .await?
            .last_seq;
        let mut position = lock(&self.position);
        position.seq = seq;
        position.own.extend(messages.iter().map(as_model_message));
        Ok((seq, due))
    }

    fn prepare(&self, position: &Position, request_id: String, change: Change) -> (Append, Due) {
        let context = &self.context;
        let mut own = position.own.clone();
        own.extend(change.messages.iter().map(as_model_message));
        let facts = TurnFacts {
            corrected: context.live.is_corrected(),
            ..TurnFacts::of_turn(&own, change.reviewable)
        };
        let (error_reason, error_message) = change.error.unwrap_or_default();
        let mut append = Append {
            fence: context.fence,
            expected_seq: position.seq,
            request_id,
            messages: change.messages,
            turn: Some(TurnUpdate {
                id: context.live.id().to_owned(),
                state: change.state.unwrap_or(TurnState::Running),
                iterations: facts.iterations,
                segments: position.segments,
                error_reason,
                error_message,
            }),
            prefix: Some(lock(&context.prefix).clone()),
            usage: change.usage,
            open_calls: change.open_calls.or_else(|| position.opens.then(Vec::new)),
            release: change.ends || change.waits,
            ..Append::default()
        };
        let mut due = Due::default();
        if change.ends {
            let before = context.session.counters;
            let nudges = *context.turns.parts().limits.nudges.of(&context.session.key.team);
            let (after, became) = after_turn(as_agent_counters(before), facts, nudges);
            due = became;
            append.counters = Some(as_counters(after, before.user_turns.saturating_add(1)));
            append.due_review = due.any().then(|| DueReview {
                memory: due.memory,
                skills: due.skills,
                turn: context.live.id().to_owned(),
                traceparent: traceparent(),
            });
        }
        (append, due)
    }

    async fn append_or_stop(&self, name: &str, change: Change) -> Result<(u64, Due), PortError> {
        self.append(name, change)
            .await
            .map_err(|error| self.context.stop(error))
    }

    fn message(&self, said: Said, text: String) -> NewMessage {
        NewMessage {
            said,
            text,
            sent_text: None,
            spans: Vec::new(),
            usage: None,
            turn: self.context.live.id().to_owned(),
            native: None,
        }
    }

    /// The results of the client are durable: its segment has begun.
    fn opened(&self) {
        let mut position = lock(&self.position);
        if std::mem::take(&mut position.opens) {
            let segment = position.segments;
            self.context.live.log().push(Event::Started { segment });
        }
    }
}

#[async_trait]
impl Transcript for TurnTranscript {
    async fn append_calls(&self, message: &CallingMessage) -> Result<(), PortError> {
        let calls = message.tool_calls.iter().map(as_call).collect();
        let usage = as_usage(message.usage);
        let stored = NewMessage {
            usage: Some(usage),
            native: self.context.native_of_answer(),
            ..self.message(Said::Assistant { calls }, message.content.clone())
        };
        failpoint::hit("turn.model_reply.before");
        let change = Change {
            messages: vec![stored],
            usage: Some(usage),
            ..Change::default()
        };
        self.append_or_stop("calls", change).await?;
        failpoint::hit("turn.model_reply.after");
        let mut position = lock(&self.position);
        position.usage = position.usage.plus(usage);
        position.calls.push(usage);
        Ok(())
    }

    async fn append_results(&self, _step: u32, results: &[ToolResult]) -> Result<(), PortError> {
        let turn = self.context.live.id();
        let change = Change {
            messages: results.iter().map(|result| result_message(result, turn)).collect(),
            ..Change::default()
        };
        self.append_or_stop("results", change).await?;
        self.opened();
        Ok(())
    }

    async fn append_steering(&self, _step: u32, texts: &[Steering]) -> Result<(), PortError> {
        let messages = texts.iter().map(|text| {
            let words = Span {
                start: 0,
                end: u32::try_from(text.said.len()).unwrap_or(u32::MAX),
                origin: SpanOrigin::User(self.context.person.user.to_string()),
                integrity: Integrity::Person,
            };
            NewMessage {
                sent_text: Some(text.sent.clone()),
                spans: vec![words],
                ..self.message(Said::User, text.said.clone())
            }
        });
        let change = Change {
            messages: messages.collect(),
            ..Change::default()
        };
        let (last, _) = self.append_or_stop("steering", change).await?;
        // A person who steers corrects more often than not.
        let Context {
            turns,
            person,
            session,
            live,
            ..
        } = &*self.context;
        for (seq, text) in (1..=last).rev().zip(texts.iter().rev()) {
            turns.stage_corrections(person, session, live, seq, &text.said);
        }
        Ok(())
    }

    async fn append_final(&self, message: &FinalMessage, _progress: &Progress) -> Result<(), PortError> {
        let delivered = matches!(message.end, AnswerEnd::Complete | AnswerEnd::Length);
        let usage = as_usage(message.usage);
        let stored = NewMessage {
            sent_text: (message.sent != message.said).then(|| message.sent.clone()),
            usage: delivered.then_some(usage),
            native: self.context.native_of_answer().filter(|_| delivered),
            ..self.message(Said::Assistant { calls: Vec::new() }, message.said.clone())
        };
        let (state, error) = match message.end {
            AnswerEnd::Complete | AnswerEnd::Length => (TurnState::Completed, None),
            AnswerEnd::Interrupted => (TurnState::Interrupted, None),
            AnswerEnd::BrokenOff => (TurnState::Failed, Some(self.context.broken_off())),
        };
        let change = Change {
            messages: vec![stored],
            usage: delivered.then_some(usage),
            state: Some(state),
            error,
            ends: true,
            reviewable: delivered && may_be_reviewed(TurnEnd::Delivered, session_kind(&self.context.session)),
            open_calls: Some(Vec::new()),
            waits: false,
        };
        failpoint::hit("turn.final_append.before");
        let (seq, due) = self.append_or_stop("final", change).await?;
        failpoint::hit("turn.final_append.after");
        let prefix = PrefixReport::from(&*lock(&self.context.prefix));
        let mut position = lock(&self.position);
        position.ended = Some(match message.end {
            AnswerEnd::Complete | AnswerEnd::Length => Stored::Completed(Box::new(Completed {
                text: message.said.clone(),
                seq,
                iterations: iterations(&position.own),
                usage: position.usage.plus(usage),
                review_due: (due.memory, due.skills),
                prefix,
                cost: self.context.model.cost_of(position.calls.iter().chain([&usage])),
            })),
            AnswerEnd::Interrupted => Stored::Interrupted(message.said.clone()),
            AnswerEnd::BrokenOff => Stored::BrokenOff,
        });
        Ok(())
    }

    async fn take_steering(&self) -> Result<Vec<Steering>, PortError> {
        Ok(self.context.live.take_steering())
    }
}

/// What a review cares about (`T-5`).
const fn session_kind(session: &Session) -> SessionKind {
    match (session.foreground, session.skip_review) {
        (true, false) => SessionKind::Foreground,
        (true, true) => SessionKind::SkipsReview,
        (false, _) => SessionKind::Automatic,
    }
}

fn iterations(own: &[ModelMessage]) -> u32 {
    TurnFacts::of_turn(own, false).iterations
}

const fn as_usage(usage: steward_model::Usage) -> Usage {
    Usage {
        input: usage.input,
        cached_input: usage.cached_input,
        cache_write: usage.cache_write,
        output: usage.output,
    }
}

/// The trace of the turn, for the review that follows it.
fn traceparent() -> String {
    let mut carrier = HashMap::new();
    let context = tracing::Span::current().context();
    opentelemetry::global::get_text_map_propagator(|propagator| propagator.inject_context(&context, &mut carrier));
    carrier.remove("traceparent").unwrap_or_default()
}
