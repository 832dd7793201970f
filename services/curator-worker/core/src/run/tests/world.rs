//! Services and a model that do as told and remember everything.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use steward_agent::review::ReviewMessage;
use steward_base::names::{ReviewId, SessionId, TeamId, UserId};
use steward_base::{ErrorKind, Fault, Integrity, Span, SpanOrigin, Timestamp};
use steward_model::{Continuation, FinishReason, Message, ModelRequest, NativeBlocks, Reply, ToolCall, Usage};

use crate::error::Error;
use crate::ports::{
    KeptReply, Peers, Present, PresentEntry, Route, SessionView, StagedCorrection, ToolOutcome, ToolUse,
};
use crate::review::{Due, Kinds, Review, Write, WriteResult};

pub(super) const TOOLS: &str = r#"[{"name":"memory","description":"","input_schema":{}},{"name":"session_search","description":"","input_schema":{}},{"name":"shell","description":"","input_schema":{}},{"name":"skill_manage","description":"","input_schema":{}},{"name":"skill_view","description":"","input_schema":{}}]"#;

#[derive(Debug, thiserror::Error)]
#[error("no answer")]
struct Silent(&'static str);

impl Fault for Silent {
    fn kind(&self) -> ErrorKind {
        ErrorKind::Unavailable
    }
    fn reason(&self) -> &'static str {
        self.0
    }
}

type Hook = Box<dyn Fn() + Send>;

#[derive(Default)]
struct Inner {
    replies: VecDeque<Reply>,
    requests: Vec<ModelRequest>,
    beside: Vec<Continuation>,
    /// What the next calls cost; nothing is known of those after them.
    prices: VecDeque<u64>,
    /// Whether the model thinks aloud in its own form.
    thinks: bool,
    calls: Vec<ToolUse>,
    /// What took effect, once per key.
    effects: Vec<(String, String)>,
    lose_next_answer: bool,
    during_call: Option<Hook>,
}

#[derive(Clone)]
pub(super) struct World {
    inner: Arc<Mutex<Inner>>,
    messages: Vec<ReviewMessage>,
    natives: BTreeMap<usize, NativeBlocks>,
    kinds: Kinds,
    undone: bool,
    review_model: String,
    context_window: u64,
}

/// A reply that only speaks.
pub(super) fn says(text: &str) -> Reply {
    reply(text, Vec::new())
}

/// A reply that calls tools.
pub(super) fn calls(calls: &[(&str, &str)]) -> Reply {
    let call = |(index, (name, arguments)): (usize, &(&str, &str))| ToolCall {
        id: format!("c{index}"),
        name: (*name).to_owned(),
        arguments: (*arguments).to_owned(),
    };
    reply("", calls.iter().enumerate().map(call).collect())
}

fn reply(text: &str, tool_calls: Vec<ToolCall>) -> Reply {
    let finish = if tool_calls.is_empty() {
        FinishReason::Stop
    } else {
        FinishReason::ToolCalls
    };
    let usage = Usage {
        input: Some(10),
        ..Usage::default()
    };
    Reply {
        content: text.to_owned(),
        tool_calls,
        finish,
        usage,
    }
}

fn native(blocks: &str) -> NativeBlocks {
    NativeBlocks {
        provider: "vendor".to_owned(),
        model: "parent".to_owned(),
        blocks: blocks.to_owned(),
    }
}

/// The message at `from_end` from the end of a request, 0 for the last.
pub(super) fn message(request: &ModelRequest, from_end: usize) -> &str {
    request.messages[request.messages.len() - 1 - from_end].content()
}

fn said(id: u64, sent: Message, spans: Vec<Span>) -> ReviewMessage {
    let said = sent.content().to_owned();
    ReviewMessage {
        id: id.to_string(),
        sent,
        said,
        spans,
    }
}

/// Length of the stable part of a prompt, and native blocks by the position of their message.
pub(super) type Beside = (Option<usize>, Vec<(usize, String)>);

impl World {
    pub(super) fn new(replies: impl IntoIterator<Item = Reply>) -> Self {
        let inner = Inner {
            replies: replies.into_iter().collect(),
            ..Inner::default()
        };
        let messages = vec![
            said(1, Message::user("Use metric units from now on."), Vec::new()),
            said(2, Message::assistant("I will."), Vec::new()),
        ];
        Self {
            inner: Arc::new(Mutex::new(inner)),
            messages,
            natives: BTreeMap::new(),
            kinds: Kinds {
                memory: true,
                skills: true,
            },
            undone: false,
            review_model: "parent".to_owned(),
            context_window: 128_000,
        }
    }

    pub(super) fn with_a_window(mut self, tokens: u64) -> Self {
        self.context_window = tokens;
        self
    }

    /// The person has said about so many tokens more.
    pub(super) fn with_history_of(mut self, tokens: usize) -> Self {
        let words = "lorem ".repeat(tokens * 4 / 6);
        self.messages.push(said(3, Message::user(words), Vec::new()));
        self.messages.push(said(4, Message::assistant("Noted."), Vec::new()));
        self
    }

    /// The same world with another script for the model.
    pub(super) fn again(&self, replies: impl IntoIterator<Item = Reply>) -> Self {
        self.inner.lock().unwrap().replies = replies.into_iter().collect();
        self.clone()
    }

    pub(super) fn about(mut self, kinds: Kinds) -> Self {
        self.kinds = kinds;
        self
    }

    pub(super) fn undone(mut self) -> Self {
        self.undone = true;
        self
    }

    pub(super) fn reviewed_by(mut self, model: &str) -> Self {
        self.review_model = model.to_owned();
        self
    }

    /// A page is fetched after the first exchange, and the assistant acts on it.
    pub(super) fn with_external(mut self, text: &str) -> Self {
        let call = ToolCall {
            id: "w".to_owned(),
            name: "shell".to_owned(),
            arguments: "{}".to_owned(),
        };
        let calling = Message::Assistant {
            content: String::new(),
            tool_calls: vec![call],
        };
        let page = Message::Tool {
            call_id: "w".to_owned(),
            name: "shell".to_owned(),
            content: text.to_owned(),
        };
        let span = Span {
            start: 0,
            end: u32::try_from(text.len()).unwrap(),
            origin: SpanOrigin::External("https://example.org".to_owned()),
            integrity: Integrity::External,
        };
        self.messages.push(said(3, calling, Vec::new()));
        self.messages.push(said(4, page, vec![span]));
        self.messages
            .push(said(5, Message::assistant(format!("It says {text}.")), Vec::new()));
        self
    }

    /// The model thinks aloud: each message of the assistant and each reply has a form of its own.
    pub(super) fn with_a_model_that_thinks(mut self) -> Self {
        self.inner.lock().unwrap().thinks = true;
        for (at, message) in self.messages.iter().enumerate() {
            if matches!(message.sent, Message::Assistant { .. }) {
                self.natives.insert(at, native(&format!("of {}", message.id)));
            }
        }
        self
    }

    /// The first calls cost so much; the price of the others is not known.
    pub(super) fn priced(self, prices: impl IntoIterator<Item = u64>) -> Self {
        self.inner.lock().unwrap().prices = prices.into_iter().collect();
        self
    }

    /// What went beside each request: where the stable part of the prompt ends, and what the provider wants back, by
    /// position.
    pub(super) fn beside(&self) -> Vec<Beside> {
        let inner = self.inner.lock().unwrap();
        let told = |beside: &Continuation| {
            let natives = beside.natives.iter().map(|(at, native)| (*at, native.blocks.clone()));
            (beside.stable_len, natives.collect())
        };
        inner.beside.iter().map(told).collect()
    }

    /// The next call takes effect, but its answer does not arrive.
    pub(super) fn lose_next_answer(&self) {
        self.inner.lock().unwrap().lose_next_answer = true;
    }

    /// Runs in the middle of the next call.
    pub(super) fn during_call(&self, hook: impl Fn() + Send + 'static) {
        self.inner.lock().unwrap().during_call = Some(Box::new(hook));
    }

    pub(super) fn requests(&self) -> Vec<ModelRequest> {
        self.inner.lock().unwrap().requests.clone()
    }

    pub(super) fn keys(&self) -> Vec<String> {
        self.inner
            .lock()
            .unwrap()
            .calls
            .iter()
            .map(|call| call.key.clone())
            .collect()
    }

    pub(super) fn tools(&self) -> Vec<String> {
        self.inner
            .lock()
            .unwrap()
            .calls
            .iter()
            .map(|call| call.name.clone())
            .collect()
    }

    pub(super) fn effects(&self) -> Vec<(String, String)> {
        self.inner.lock().unwrap().effects.clone()
    }

    pub(super) fn review(&self) -> Review {
        Review::queued(Due {
            team: TeamId::parse("red").unwrap(),
            id: ReviewId::parse("r1").unwrap(),
            name: "teams/red/sessions/s/dueReviews/r1".to_owned(),
            user: UserId::parse("ann").unwrap(),
            session: SessionId::parse("s").unwrap(),
            turn: "t".to_owned(),
            to_seq: 2,
            kinds: self.kinds,
            created_at: Timestamp::from_secs(0),
            traceparent: String::new(),
        })
    }
}

#[async_trait]
impl Peers for World {
    async fn session(&self) -> Result<SessionView, Error> {
        Ok(SessionView {
            model: "parent".to_owned(),
            system: "the parent's prompt".into(),
            stable_len: Some(10),
            tools_json: TOOLS.into(),
            messages: self.messages.clone(),
            natives: self.natives.clone(),
            undone: self.undone,
            memory_on: true,
        })
    }

    async fn present(&self) -> Result<Present, Error> {
        let entry = PresentEntry {
            target: "profile".to_owned(),
            text: "Prefers short answers".to_owned(),
        };
        let correction = |id: &str, text: &str| StagedCorrection {
            proposal: format!("teams/red/memoryProposals/{id}"),
            target: "profile".to_owned(),
            text: text.to_owned(),
            span: "s1".to_owned(),
        };
        Ok(Present {
            memory: vec![entry],
            corrections: vec![
                correction("p7", "From now on, answer in German."),
                correction("p8", "别再用表格"),
            ],
            skills: Vec::new(),
        })
    }

    async fn route(&self) -> Result<Route, Error> {
        Ok(Route {
            review_model: self.review_model.clone(),
            context_window: self.context_window,
        })
    }

    async fn generate(&self, request: ModelRequest, beside: Continuation) -> Result<KeptReply, Error> {
        let mut inner = self.inner.lock().unwrap();
        inner.requests.push(request);
        inner.beside.push(beside);
        let reply = inner.replies.pop_front();
        let reply = reply.ok_or_else(|| Error::peer("agent-orchestrator", Silent("MODEL_UNAVAILABLE")))?;
        let native = inner.thinks.then(|| native(&format!("reply {}", inner.requests.len())));
        let cost = inner.prices.pop_front();
        Ok(KeptReply { reply, native, cost })
    }

    async fn call(&self, call: ToolUse) -> Result<ToolOutcome, Error> {
        let mut inner = self.inner.lock().unwrap();
        let hook = inner.during_call.take();
        inner.calls.push(call.clone());
        let writes = call.evidence.is_some();
        if writes && !inner.effects.iter().any(|(key, _)| *key == call.key) {
            inner.effects.push((call.key.clone(), call.arguments.clone()));
        }
        let lost = std::mem::take(&mut inner.lose_next_answer);
        drop(inner);
        if let Some(hook) = hook {
            hook();
        }
        if lost {
            return Err(Error::peer("memory-service", Silent("UNAVAILABLE")));
        }
        let content = if writes {
            "Saved.".to_owned()
        } else {
            "deploy-notes as it is now".to_owned()
        };
        let write = writes.then(|| Write {
            tool: call.name.clone(),
            action: "add".to_owned(),
            target: "x".to_owned(),
            result: WriteResult::Accepted,
            reason: String::new(),
            gate: String::new(),
            preview: String::new(),
            revision: "1".to_owned(),
            evidence: None,
            why: String::new(),
            line: "Profile updated".to_owned(),
        });
        let end = u32::try_from(content.len()).unwrap();
        let origin = SpanOrigin::Tool(call.name);
        let spans = vec![Span {
            start: 0,
            end,
            origin,
            integrity: Integrity::Workspace,
        }];
        Ok(ToolOutcome {
            content,
            is_error: false,
            spans,
            write,
        })
    }
}
