//! The conversation as a review is given it, and the table of its spans by which evidence is cited.

use steward_base::{Integrity, Span, SpanOrigin};
use steward_model::Message;

use crate::digest::cut;

/// Spans below this integrity are never shown to a review (`R-3`).
pub(super) const THRESHOLD: Integrity = Integrity::Workspace;

const OPENING_CHARACTERS: usize = 60;

/// One stored message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReviewMessage {
    /// Its stored id, for evidence.
    pub id: String,
    /// What was sent to the model for it, byte for byte.
    pub sent: Message,
    /// What was said: without recalled memory and other additions. The spans refer to it.
    pub said: String,
    /// Where its words come from. A person's or the model's own words when empty; of unknown standing for a tool.
    pub spans: Vec<Span>,
}

/// One span as it can be cited.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SpanRef {
    /// `s1`, `s2`, ... in the order of the conversation.
    pub id: String,
    /// Stored id of its message.
    pub message_id: String,
    /// First byte in the said text.
    pub start: u32,
    /// One past the last byte.
    pub end: u32,
    /// Where the words come from.
    pub origin: SpanOrigin,
    /// How far they may be trusted.
    pub integrity: Integrity,
    /// Whether the review does not see it.
    pub hidden: bool,
    /// Its opening words on one line; empty when hidden.
    pub opening: String,
}

/// All spans of a conversation.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SpanTable(Vec<SpanRef>);

impl SpanTable {
    /// The spans, in order.
    pub fn spans(&self) -> &[SpanRef] {
        &self.0
    }

    /// The span with this id.
    pub fn get(&self, id: &str) -> Option<&SpanRef> {
        self.0.iter().find(|span| span.id == id)
    }

    /// The table of a conversation that is shown as it is.
    pub(super) fn of_shown(messages: &[ReviewMessage]) -> Self {
        let mut table = Self::default();
        for message in messages {
            for span in effective_spans(message) {
                table.show(message, &span);
            }
        }
        table
    }

    pub(super) fn show(&mut self, message: &ReviewMessage, span: &Span) {
        let words = text_of(&message.said, span).unwrap_or_default();
        let mut parts = vec![cut(&words.replace(char::is_control, " "), OPENING_CHARACTERS)];
        if let Message::Assistant { tool_calls, .. } = &message.sent
            && !tool_calls.is_empty()
        {
            let names: Vec<&str> = tool_calls.iter().map(|call| call.name.as_str()).collect();
            parts.push(format!("[calls {}]", names.join(", ")));
        }
        parts.retain(|part| !part.is_empty());
        let opening = parts.join(" ");
        self.push(message, span, false, opening);
    }

    pub(super) fn hide(&mut self, message: &ReviewMessage, span: &Span) {
        self.push(message, span, true, String::new());
    }

    fn push(&mut self, message: &ReviewMessage, span: &Span, hidden: bool, opening: String) {
        self.0.push(SpanRef {
            id: format!("s{}", self.0.len() + 1),
            message_id: message.id.clone(),
            start: span.start,
            end: span.end,
            origin: span.origin.clone(),
            integrity: span.integrity,
            hidden,
            opening,
        });
    }
}

/// The spans of a message, made to cover its whole text: what no label speaks of gets the role's own.
pub(super) fn effective_spans(message: &ReviewMessage) -> Vec<Span> {
    let (origin, integrity) = match &message.sent {
        Message::User { .. } => (SpanOrigin::User("unknown".to_owned()), Integrity::Person),
        Message::Assistant { .. } => (SpanOrigin::Assistant, Integrity::Workspace),
        Message::Tool { name, .. } => (SpanOrigin::Tool(name.clone()), Integrity::UnknownTool),
    };
    cover(&message.said, &message.spans, &origin, integrity)
}

/// `spans` in order, without overlaps, and with fillers where they leave something out.
pub(super) fn cover(text: &str, spans: &[Span], origin: &SpanOrigin, integrity: Integrity) -> Vec<Span> {
    let length = u32::try_from(text.len()).unwrap_or(u32::MAX);
    let filler = |start: u32, end: u32| Span {
        start,
        end,
        origin: origin.clone(),
        integrity,
    };
    let mut labelled: Vec<&Span> = spans.iter().filter(|span| span.start < span.end.min(length)).collect();
    labelled.sort_by_key(|span| (span.start, span.end));
    let (mut covering, mut at) = (Vec::new(), 0);
    for span in labelled {
        if span.start > at {
            covering.push(filler(at, span.start));
        }
        if span.end > at {
            covering.push(Span {
                start: span.start.max(at),
                end: span.end.min(length),
                ..span.clone()
            });
            at = span.end.min(length);
        }
    }
    if at < length || covering.is_empty() {
        covering.push(filler(at, length));
    }
    covering
}

/// The words of a span; `None` when its borders do not lie between characters.
pub(super) fn text_of<'a>(text: &'a str, span: &Span) -> Option<&'a str> {
    text.get(usize::try_from(span.start).ok()?..usize::try_from(span.end).ok()?)
}

/// The label by which the rubric calls an origin.
pub(super) fn label(origin: &SpanOrigin) -> String {
    match origin {
        SpanOrigin::User(name) => format!("user:{name}"),
        SpanOrigin::Assistant => "assistant".to_owned(),
        SpanOrigin::Tool(name) => format!("tool:{name}"),
        SpanOrigin::External(source) => format!("external:{source}"),
        SpanOrigin::System => "steward".to_owned(),
    }
}
