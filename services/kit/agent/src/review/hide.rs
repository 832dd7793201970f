//! A conversation without what came from outside (`R-3`).
//!
//! Hidden are: spans below integrity 2, wherever they stand (search results too), what was sent with a person's words and
//! not said by them (attachments), and from the first of them on everything that the assistant said or called and what those calls returned, since any of it may carry the outside text on. What a
//! person typed stays visible. A row of hidden assistant steps becomes one placeholder, so that not even their number shows.

use steward_base::{Integrity, Span, SpanOrigin};
use steward_model::Message;

use crate::kernel::ToolOutput;

use super::spans::{ReviewMessage, SpanTable, THRESHOLD, cover, effective_spans, text_of};

const EXTERNAL: &str = "[hidden: text from outside]";
const UNKNOWN_TOOL: &str = "[hidden: output of a tool of unknown standing]";
const INFLUENCED: &str = "[hidden: what was said and done after text from outside had been read]";

/// Whether anything of the conversation has to be hidden.
pub(super) fn needs_hiding(messages: &[ReviewMessage]) -> bool {
    messages
        .iter()
        .any(|message| effective_spans(message).iter().any(is_hidden))
}

/// The conversation with placeholders, and the table of its spans.
pub(super) fn hide(messages: &[ReviewMessage]) -> (Vec<Message>, SpanTable) {
    let mut hiding = Hiding::default();
    for message in messages {
        hiding.take(message);
    }
    (hiding.messages, hiding.spans)
}

fn is_hidden(span: &Span) -> bool {
    span.integrity < THRESHOLD
}

#[derive(Default)]
struct Hiding {
    messages: Vec<Message>,
    spans: SpanTable,
    influenced: bool,
    /// Whether the last message is a placeholder that further hidden steps go into.
    in_row: bool,
}

impl Hiding {
    fn take(&mut self, message: &ReviewMessage) {
        match &message.sent {
            Message::User { .. } => {
                self.in_row = false;
                let content = self.mask(message);
                self.messages.push(Message::User { content });
            }
            Message::Assistant { .. } if self.influenced || effective_spans(message).iter().any(is_hidden) => {
                self.influenced = true;
                self.hide_step(message);
            }
            Message::Assistant { .. } => {
                for span in effective_spans(message) {
                    self.spans.show(message, &span);
                }
                self.messages.push(message.sent.clone());
            }
            // The result of a hidden call goes with its call.
            Message::Tool { .. } if self.in_row => {}
            Message::Tool { call_id, name, .. } => {
                let content = self.mask(message);
                self.messages.push(Message::Tool {
                    call_id: call_id.clone(),
                    name: name.clone(),
                    content,
                });
            }
        }
    }

    fn hide_step(&mut self, message: &ReviewMessage) {
        if self.in_row {
            return;
        }
        self.in_row = true;
        let nothing = Span {
            start: 0,
            end: 0,
            origin: SpanOrigin::Assistant,
            integrity: Integrity::External,
        };
        self.spans.hide(message, &nothing);
        self.messages.push(Message::assistant(INFLUENCED));
    }

    /// The said text with each row of hidden spans replaced by one placeholder.
    fn mask(&mut self, message: &ReviewMessage) -> String {
        let mut text = String::new();
        for part in parts(&message.said, effective_spans(message)) {
            match part {
                Part::Shown(span, words) => {
                    self.spans.show(message, &span);
                    text.push_str(words);
                }
                Part::Hidden(row) => {
                    self.influenced = true;
                    self.spans.hide(message, &row);
                    text.push_str(placeholder(&row));
                }
            }
        }
        text
    }
}

/// A tool's output during a review, with what came from outside hidden in the same way: a search finds old pages too.
pub fn hide_output(output: ToolOutput) -> ToolOutput {
    let unknown = SpanOrigin::Tool("unknown".to_owned());
    let covering = cover(&output.content, &output.spans, &unknown, Integrity::UnknownTool);
    if (output.content.is_empty() && output.spans.is_empty()) || !covering.iter().any(is_hidden) {
        return output;
    }
    let (mut content, mut spans) = (String::new(), Vec::new());
    for part in parts(&output.content, covering) {
        let (span, words) = match part {
            Part::Shown(span, words) => (span, words),
            Part::Hidden(row) => {
                let words = placeholder(&row);
                (row, words)
            }
        };
        let start = u32::try_from(content.len()).unwrap_or(u32::MAX);
        content.push_str(words);
        let end = u32::try_from(content.len()).unwrap_or(u32::MAX);
        spans.push(Span { start, end, ..span });
    }
    ToolOutput {
        content,
        is_error: output.is_error,
        spans,
    }
}

enum Part<'a> {
    Shown(Span, &'a str),
    Hidden(Span),
}

/// Cuts a text into what is shown and rows of what is not.
fn parts(text: &str, spans: Vec<Span>) -> Vec<Part<'_>> {
    let mut parts: Vec<Part<'_>> = Vec::new();
    for span in spans {
        match text_of(text, &span) {
            Some(words) if !is_hidden(&span) => parts.push(Part::Shown(span, words)),
            Some(_) | None => match parts.last_mut() {
                Some(Part::Hidden(row)) => {
                    row.end = span.end;
                    row.integrity = row.integrity.min(span.integrity);
                }
                _ => parts.push(Part::Hidden(span)),
            },
        }
    }
    parts
}

fn placeholder(row: &Span) -> &'static str {
    if row.integrity == Integrity::UnknownTool {
        UNKNOWN_TOOL
    } else {
        EXTERNAL
    }
}
