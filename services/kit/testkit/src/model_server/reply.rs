//! What the server answers, and how it cuts, stalls and spoils it.

use serde_json::{Value, json};

/// A tool call that the scripted model makes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ScriptedCall {
    /// The call's id on the wire; `None` leaves it out, as some servers do.
    pub id: Option<String>,
    /// Tool name.
    pub name: String,
    /// Arguments, as the text that goes over the wire (it need not be JSON).
    pub arguments: String,
}

impl ScriptedCall {
    /// A call with an id.
    pub fn new(id: &str, name: &str, arguments: impl Into<String>) -> Self {
        Self {
            id: Some(id.to_owned()),
            name: name.to_owned(),
            arguments: arguments.into(),
        }
    }
}

/// Token counts in the form of the wire.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ScriptedUsage {
    /// All prompt tokens, cached ones included.
    pub prompt: u64,
    /// Prompt tokens read from the provider's cache.
    pub cached: u64,
    /// Tokens of the answer.
    pub completion: u64,
}

#[derive(Debug, Clone)]
pub(super) enum Body {
    /// A chat completion, streamed or whole as the request asks.
    Completion {
        text: String,
        calls: Vec<ScriptedCall>,
        finish: Option<String>,
        usage: Option<ScriptedUsage>,
        done: bool,
    },
    /// These events, each already JSON (or not), as `data:` lines.
    Events(Vec<String>),
    /// These bytes and nothing else.
    Raw(Vec<u8>),
    /// No byte at all: the connection closes.
    Nothing,
}

/// One scripted answer.
#[derive(Debug, Clone)]
pub struct Reply {
    pub(super) status: u16,
    pub(super) headers: Vec<(String, String)>,
    pub(super) body: Body,
    pub(super) piece: Option<usize>,
    pub(super) cut_after: Option<usize>,
    pub(super) hang_after: Option<usize>,
}

impl Reply {
    fn with_body(status: u16, body: Body) -> Self {
        Self {
            status,
            headers: Vec::new(),
            body,
            piece: None,
            cut_after: None,
            hang_after: None,
        }
    }

    /// A final answer of text, finish reason `stop`.
    pub fn text(text: impl Into<String>) -> Self {
        let body = Body::Completion {
            text: text.into(),
            calls: Vec::new(),
            finish: None,
            usage: None,
            done: true,
        };
        Self::with_body(200, body)
    }

    /// An answer that calls tools, all in one message, finish reason `tool_calls`.
    pub fn calls(calls: impl IntoIterator<Item = ScriptedCall>) -> Self {
        Self::text_and_calls("", calls)
    }

    /// Text followed by tool calls.
    pub fn text_and_calls(text: impl Into<String>, calls: impl IntoIterator<Item = ScriptedCall>) -> Self {
        let calls = calls.into_iter().collect();
        let body = Body::Completion {
            text: text.into(),
            calls,
            finish: None,
            usage: None,
            done: true,
        };
        Self::with_body(200, body)
    }

    /// One tool call with the id `call_1`.
    pub fn call(name: &str, arguments: impl Into<String>) -> Self {
        Self::calls([ScriptedCall::new("call_1", name, arguments)])
    }

    /// An HTTP error with this body.
    pub fn error(status: u16, body: impl Into<String>) -> Self {
        Self::with_body(status, Body::Raw(body.into().into_bytes()))
    }

    /// A stream of exactly these events; each is sent as the data of one event.
    pub fn events(events: impl IntoIterator<Item = impl Into<String>>) -> Self {
        Self::with_body(200, Body::Events(events.into_iter().map(Into::into).collect()))
    }

    /// Status 200 with bytes that are no answer.
    pub fn garbage(bytes: impl Into<Vec<u8>>) -> Self {
        Self::with_body(200, Body::Raw(bytes.into()))
    }

    /// The connection closes before the first byte of the answer.
    pub fn dropped() -> Self {
        Self::with_body(200, Body::Nothing)
    }

    /// Adds a response header; a `content-type` replaces the usual one.
    #[must_use]
    pub fn header(mut self, name: &str, value: &str) -> Self {
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }

    /// Reports these token counts.
    #[must_use]
    pub fn usage(mut self, prompt: u64, cached: u64, completion: u64) -> Self {
        if let Body::Completion { usage, .. } = &mut self.body {
            *usage = Some(ScriptedUsage {
                prompt,
                cached,
                completion,
            });
        }
        self
    }

    /// Overrides the finish reason.
    #[must_use]
    pub fn finish(mut self, reason: &str) -> Self {
        if let Body::Completion { finish, .. } = &mut self.body {
            *finish = Some(reason.to_owned());
        }
        self
    }

    /// Leaves the closing `[DONE]` out.
    #[must_use]
    pub fn without_done(mut self) -> Self {
        if let Body::Completion { done, .. } = &mut self.body {
            *done = false;
        }
        self
    }

    /// Sends the body in pieces of this many bytes, whatever they cut through.
    #[must_use]
    pub fn in_pieces(mut self, bytes: usize) -> Self {
        self.piece = Some(bytes.max(1));
        self
    }

    /// Closes the connection after this many bytes of the body, without an orderly end.
    #[must_use]
    pub fn cut_after(mut self, bytes: usize) -> Self {
        self.cut_after = Some(bytes);
        self
    }

    /// Stalls after this many bytes of the body until [`super::ModelServer::release`] is called.
    #[must_use]
    pub fn hang_after(mut self, bytes: usize) -> Self {
        self.hang_after = Some(bytes);
        self
    }

    /// Content type and bytes of the body for a request that did, or did not, ask for a stream.
    pub(super) fn render(&self, streamed: bool) -> Option<(&'static str, Vec<u8>)> {
        const STREAM: &str = "text/event-stream";
        match &self.body {
            Body::Nothing => None,
            Body::Raw(bytes) => Some((
                if self.status == 200 { STREAM } else { "application/json" },
                bytes.clone(),
            )),
            Body::Events(events) => Some((STREAM, as_stream(events))),
            Body::Completion {
                text,
                calls,
                finish,
                usage,
                done,
            } => {
                let finish = finish.clone().unwrap_or_else(|| default_finish(calls).to_owned());
                if streamed {
                    Some((STREAM, as_stream(&stream_events(text, calls, &finish, *usage, *done))))
                } else {
                    let whole = whole_answer(text, calls, &finish, *usage);
                    Some(("application/json", whole.to_string().into_bytes()))
                }
            }
        }
    }
}

fn default_finish(calls: &[ScriptedCall]) -> &'static str {
    if calls.is_empty() { "stop" } else { "tool_calls" }
}

fn as_stream(events: &[String]) -> Vec<u8> {
    events
        .iter()
        .flat_map(|event| format!("data: {event}\n\n").into_bytes())
        .collect()
}

fn usage_json(usage: ScriptedUsage) -> Value {
    json!({
        "prompt_tokens": usage.prompt,
        "completion_tokens": usage.completion,
        "total_tokens": usage.prompt + usage.completion,
        "prompt_tokens_details": { "cached_tokens": usage.cached },
    })
}

fn call_json(call: &ScriptedCall, arguments: &str) -> Value {
    let mut value = json!({ "type": "function", "function": { "name": call.name, "arguments": arguments } });
    if let Some(id) = &call.id {
        value["id"] = json!(id);
    }
    value
}

fn stream_events(
    text: &str,
    calls: &[ScriptedCall],
    finish: &str,
    usage: Option<ScriptedUsage>,
    done: bool,
) -> Vec<String> {
    let chunk = |delta: Value, finish: Value| {
        json!({
            "id": "chatcmpl-1", "object": "chat.completion.chunk", "model": "scripted",
            "choices": [{ "index": 0, "delta": delta, "finish_reason": finish }],
        })
        .to_string()
    };
    let mut events = vec![chunk(json!({ "role": "assistant", "content": "" }), Value::Null)];
    for piece in pieces(text) {
        events.push(chunk(json!({ "content": piece }), Value::Null));
    }
    for (index, call) in calls.iter().enumerate() {
        let mut start = call_json(call, "");
        start["index"] = json!(index);
        events.push(chunk(json!({ "tool_calls": [start] }), Value::Null));
        for piece in pieces(&call.arguments) {
            let more = json!({ "tool_calls": [{ "index": index, "function": { "arguments": piece } }] });
            events.push(chunk(more, Value::Null));
        }
    }
    events.push(chunk(json!({}), json!(finish)));
    if let Some(usage) = usage {
        events
            .push(json!({ "object": "chat.completion.chunk", "choices": [], "usage": usage_json(usage) }).to_string());
    }
    if done {
        events.push("[DONE]".to_owned());
    }
    events
}

/// Pieces of a few characters, as a model streams them.
fn pieces(text: &str) -> Vec<String> {
    let characters: Vec<char> = text.chars().collect();
    characters.chunks(12).map(|piece| piece.iter().collect()).collect()
}

fn whole_answer(text: &str, calls: &[ScriptedCall], finish: &str, usage: Option<ScriptedUsage>) -> Value {
    let mut message = json!({ "role": "assistant", "content": text });
    if !calls.is_empty() {
        message["tool_calls"] = calls.iter().map(|call| call_json(call, &call.arguments)).collect();
    }
    json!({
        "id": "chatcmpl-1", "object": "chat.completion", "model": "scripted",
        "choices": [{ "index": 0, "message": message, "finish_reason": finish }],
        "usage": usage.map(usage_json),
    })
}
