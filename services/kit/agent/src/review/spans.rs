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
///
/// Whatever is wrong with a label counts against the text: where labels overlap the lowest holds, and a label that cuts
/// through a character is worth no more than a tool that nobody knows. A label of low standing without any words is kept
/// as a mark of no length: it speaks of words that were sent and not said, such as an attachment's.
pub(super) fn cover(text: &str, spans: &[Span], origin: &SpanOrigin, integrity: Integrity) -> Vec<Span> {
    let length = u32::try_from(text.len()).unwrap_or(u32::MAX);
    let (mut labels, mut marks): (Vec<&Span>, Vec<&Span>) =
        spans.iter().partition(|span| span.start < span.end.min(length));
    labels.sort_by_key(|span| (span.start, span.end));
    marks.retain(|span| span.integrity < THRESHOLD);
    marks.sort_by_key(|span| span.start);
    let ends = labels.iter().flat_map(|span| [span.start, span.end.min(length)]);
    let mut cuts: Vec<u32> = ends
        .chain(marks.iter().map(|span| span.start.min(length)))
        .chain([0, length])
        .collect();
    cuts.sort_unstable();
    cuts.dedup();

    let mut marks = marks.into_iter().peekable();
    let mut covering: Vec<Span> = Vec::new();
    // The label that the last span was made from, so that its pieces come together again.
    let mut last: Option<Option<usize>> = None;
    for (index, start) in cuts.iter().copied().enumerate() {
        while let Some(mark) = marks.next_if(|mark| mark.start.min(length) == start) {
            covering.push(Span {
                start,
                end: start,
                ..mark.clone()
            });
            last = None;
        }
        let Some(end) = cuts.get(index + 1).copied() else { break };
        let holding = labels
            .iter()
            .enumerate()
            .filter(|(_, span)| span.start <= start && span.end >= end);
        let label = holding.min_by_key(|(_, span)| span.integrity).map(|(at, _)| at);
        match covering.last_mut() {
            Some(piece) if last == Some(label) => piece.end = end,
            _ => covering.push(Span {
                start,
                end,
                origin: label
                    .and_then(|at| labels.get(at))
                    .map_or(origin, |span| &span.origin)
                    .clone(),
                integrity: label
                    .and_then(|at| labels.get(at))
                    .map_or(integrity, |span| span.integrity),
            }),
        }
        last = Some(label);
    }
    if covering.is_empty() {
        covering.push(Span {
            start: 0,
            end: 0,
            origin: origin.clone(),
            integrity,
        });
    }
    for span in &mut covering {
        if text_of(text, span).is_none() {
            span.integrity = span.integrity.min(Integrity::UnknownTool);
        }
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
