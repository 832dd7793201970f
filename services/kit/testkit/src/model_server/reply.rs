//! What the server answers, and how it cuts, stalls and spoils it. One script serves every protocol: the wire form is made
//! when the request is there and shows which one its client speaks.

use super::{chat_completions, messages};

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

/// A part of an answer, in the order in which the scripted model produces it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ScriptedBlock {
    /// Text for the person.
    Text(String),
    /// A tool call.
    Call(ScriptedCall),
    /// Reasoning with its signature. Only the messages protocol sends it.
    Thinking {
        /// The reasoning's text; may be empty.
        text: String,
        /// What the provider signs it with.
        signature: String,
    },
    /// Reasoning that the provider keeps to itself. Only the messages protocol sends it.
    RedactedThinking(String),
}

/// Token counts; each protocol puts them into its own form.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ScriptedUsage {
    /// All prompt tokens, those read from or written to a cache included.
    pub prompt: u64,
    /// Prompt tokens read from the provider's cache.
    pub cached: u64,
    /// Prompt tokens written to the provider's cache.
    pub cache_write: u64,
    /// Tokens of the answer.
    pub completion: u64,
}

/// An answer of the model, streamed or whole as the request asks.
#[derive(Debug, Clone, Default)]
pub(super) struct Answer {
    pub(super) blocks: Vec<ScriptedBlock>,
    pub(super) finish: Option<String>,
    pub(super) usage: Option<ScriptedUsage>,
    pub(super) without_done: bool,
    /// Class and message of an error that takes the place of the end.
    pub(super) error: Option<(String, String)>,
}

impl Answer {
    pub(super) fn text(&self) -> String {
        let text = |block: &ScriptedBlock| match block {
            ScriptedBlock::Text(text) => Some(text.clone()),
            _ => None,
        };
        self.blocks.iter().filter_map(text).collect()
    }

    pub(super) fn calls(&self) -> Vec<&ScriptedCall> {
        fn call(block: &ScriptedBlock) -> Option<&ScriptedCall> {
            match block {
                ScriptedBlock::Call(call) => Some(call),
                _ => None,
            }
        }
        self.blocks.iter().filter_map(call).collect()
    }

    /// The finish reason in the words of chat completions.
    pub(super) fn finish(&self) -> &str {
        match &self.finish {
            Some(finish) => finish,
            None if self.calls().is_empty() => "stop",
            None => "tool_calls",
        }
    }
}

#[derive(Debug, Clone)]
pub(super) enum Body {
    /// An answer of the model.
    Answer(Answer),
    /// An error document: its class and message.
    Failure { kind: String, message: String },
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
    pub(super) cut_before: Option<String>,
    pub(super) hang_after: Option<usize>,
}

/// The protocol of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Protocol {
    ChatCompletions,
    Messages,
}

impl Reply {
    fn with_body(status: u16, body: Body) -> Self {
        Self {
            status,
            headers: Vec::new(),
            body,
            piece: None,
            cut_after: None,
            cut_before: None,
            hang_after: None,
        }
    }

    /// A final answer of text, finish reason `stop`.
    pub fn text(text: impl Into<String>) -> Self {
        Self::blocks([ScriptedBlock::Text(text.into())])
    }

    /// An answer that calls tools, all in one message, finish reason `tool_calls`.
    pub fn calls(calls: impl IntoIterator<Item = ScriptedCall>) -> Self {
        Self::blocks(calls.into_iter().map(ScriptedBlock::Call))
    }

    /// Text followed by tool calls.
    pub fn text_and_calls(text: impl Into<String>, calls: impl IntoIterator<Item = ScriptedCall>) -> Self {
        let text = ScriptedBlock::Text(text.into());
        Self::blocks(std::iter::once(text).chain(calls.into_iter().map(ScriptedBlock::Call)))
    }

    /// An answer of these parts in this order. The finish reason follows from whether it calls tools.
    pub fn blocks(blocks: impl IntoIterator<Item = ScriptedBlock>) -> Self {
        let answer = Answer {
            blocks: blocks.into_iter().collect(),
            ..Answer::default()
        };
        Self::with_body(200, Body::Answer(answer))
    }

    /// One tool call with the id `call_1`.
    pub fn call(name: &str, arguments: impl Into<String>) -> Self {
        Self::calls([ScriptedCall::new("call_1", name, arguments)])
    }

    /// An HTTP error with this body.
    pub fn error(status: u16, body: impl Into<String>) -> Self {
        Self::with_body(status, Body::Raw(body.into().into_bytes()))
    }

    /// An HTTP error with a body in the protocol's form: the error's class and message.
    pub fn failure(status: u16, kind: &str, message: &str) -> Self {
        let (kind, message) = (kind.to_owned(), message.to_owned());
        Self::with_body(status, Body::Failure { kind, message })
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

    fn answer(mut self, change: impl FnOnce(&mut Answer)) -> Self {
        if let Body::Answer(answer) = &mut self.body {
            change(answer);
        }
        self
    }

    /// Reports these token counts.
    #[must_use]
    pub fn usage(self, prompt: u64, cached: u64, completion: u64) -> Self {
        self.answer(|answer| {
            let usage = answer.usage.get_or_insert_default();
            (usage.prompt, usage.cached, usage.completion) = (prompt, cached, completion);
        })
    }

    /// Reports that this many of the prompt's tokens were written to a cache.
    #[must_use]
    pub fn cache_write(self, tokens: u64) -> Self {
        self.answer(|answer| answer.usage.get_or_insert_default().cache_write = tokens)
    }

    /// Overrides the finish reason, in the words of chat completions; the messages protocol translates those it knows.
    #[must_use]
    pub fn finish(self, reason: &str) -> Self {
        self.answer(|answer| answer.finish = Some(reason.to_owned()))
    }

    /// Leaves the closing event out (`[DONE]`, `message_stop`).
    #[must_use]
    pub fn without_done(self) -> Self {
        self.answer(|answer| answer.without_done = true)
    }

    /// Ends the stream with an error event instead of a finish.
    #[must_use]
    pub fn then_error(self, kind: &str, message: &str) -> Self {
        self.answer(|answer| answer.error = Some((kind.to_owned(), message.to_owned())))
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

    /// Closes the connection right before the first place where the body says `text`, without an orderly end. Texts are
    /// streamed in pieces of 12 characters, so `text` should lie within one.
    #[must_use]
    pub fn cut_before(mut self, text: &str) -> Self {
        self.cut_before = Some(text.to_owned());
        self
    }

    /// Stalls after this many bytes of the body until [`super::ModelServer::release`] is called.
    #[must_use]
    pub fn hang_after(mut self, bytes: usize) -> Self {
        self.hang_after = Some(bytes);
        self
    }

    /// Content type and bytes of the body for a request of this protocol that did, or did not, ask for a stream.
    pub(super) fn render(&self, protocol: Protocol, streamed: bool) -> Option<(&'static str, Vec<u8>)> {
        const STREAM: &str = "text/event-stream";
        const DOCUMENT: &str = "application/json";
        let rendered = match &self.body {
            Body::Nothing => return None,
            Body::Raw(bytes) => (if self.status == 200 { STREAM } else { DOCUMENT }, bytes.clone()),
            Body::Events(events) => (STREAM, as_stream(events.iter().map(|data| (None, data.clone())))),
            Body::Failure { kind, message } => {
                let document = match protocol {
                    Protocol::ChatCompletions => chat_completions::failure(kind, message),
                    Protocol::Messages => messages::failure(kind, message),
                };
                (DOCUMENT, document.to_string().into_bytes())
            }
            Body::Answer(answer) if streamed => {
                let events = match protocol {
                    Protocol::ChatCompletions => chat_completions::stream(answer),
                    Protocol::Messages => messages::stream(answer),
                };
                (STREAM, as_stream(events))
            }
            Body::Answer(answer) => {
                let document = match protocol {
                    Protocol::ChatCompletions => chat_completions::document(answer),
                    Protocol::Messages => messages::document(answer),
                };
                (DOCUMENT, document.to_string().into_bytes())
            }
        };
        Some(rendered)
    }

    /// Where the connection closes, if it does so early.
    pub(super) fn cut(&self, body: &[u8]) -> Option<usize> {
        let needle = self.cut_before.as_ref().map(|text| {
            let at = body.windows(text.len()).position(|window| window == text.as_bytes());
            at.expect("the text before which the answer is cut is in the answer")
        });
        needle.or(self.cut_after)
    }
}

/// An event of a stream: its name where it has one, and its data.
pub(super) type StreamEvent = (Option<&'static str>, String);

fn as_stream(events: impl IntoIterator<Item = StreamEvent>) -> Vec<u8> {
    let mut stream = String::new();
    for (name, data) in events {
        if let Some(name) = name {
            stream.extend(["event: ", name, "\n"]);
        }
        stream.extend(["data: ", &data, "\n\n"]);
    }
    stream.into_bytes()
}

/// Pieces of a few characters, as a model streams them.
pub(super) fn pieces(text: &str) -> Vec<String> {
    let characters: Vec<char> = text.chars().collect();
    characters.chunks(12).map(|piece| piece.iter().collect()).collect()
}
