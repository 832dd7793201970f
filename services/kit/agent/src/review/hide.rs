//! A conversation without what came from outside (`R-3`).
//!
//! Hidden are: spans below integrity 2, wherever they stand (search results too), and from the first of them on everything
//! that the assistant said or called and what those calls returned, since any of it may carry the outside text on. What a
//! person typed stays visible. A row of hidden assistant steps becomes one placeholder, so that not even their number shows.

use steward_base::{Integrity, Span, SpanOrigin};
use steward_model::Message;

use super::spans::{ReviewMessage, SpanTable, THRESHOLD, effective_spans, text_of};

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
        let mut row: Option<Span> = None;
        for span in effective_spans(message) {
            match text_of(message, &span) {
                Some(words) if !is_hidden(&span) => {
                    self.end_row(message, row.take(), &mut text);
                    self.spans.show(message, &span);
                    text.push_str(words);
                }
                // A label that cuts through a character is no label: its text stays hidden.
                _ => {
                    let merged = match row.take() {
                        Some(before) => Span {
                            end: span.end,
                            integrity: before.integrity.min(span.integrity),
                            ..before
                        },
                        None => span,
                    };
                    row = Some(merged);
                }
            }
        }
        self.end_row(message, row, &mut text);
        text
    }

    fn end_row(&mut self, message: &ReviewMessage, row: Option<Span>, text: &mut String) {
        let Some(row) = row else { return };
        self.influenced = true;
        self.spans.hide(message, &row);
        text.push_str(if row.integrity == Integrity::UnknownTool {
            UNKNOWN_TOOL
        } else {
            EXTERNAL
        });
    }
}
