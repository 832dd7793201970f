//! Messages: what was said, what was sent in its place, and where the words come from.

use serde::{Deserialize, Serialize};
use steward_base::{FieldViolations, Integrity, Span, SpanOrigin, Timestamp};

use crate::session::{Usage, named_enum};

named_enum! {
    /// Who speaks.
    Role {
        /// The person.
        User = "user",
        /// The model.
        Assistant = "assistant",
        /// The result of one tool call.
        Tool = "tool",
    }
}

/// A call of a tool by the model.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolCall {
    /// Id by which the result refers to it.
    pub id: String,
    /// Name of the tool.
    pub name: String,
    /// Arguments as the text that was received (`P-4`).
    pub arguments_json: String,
    /// What is sent back in their place when they were not valid JSON.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sent_arguments_json: Option<String>,
}

/// The call that a tool message answers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolResult {
    /// Id of the call.
    pub call_id: String,
    /// Name of the tool.
    pub tool_name: String,
    /// Whether the result is an error.
    pub is_error: bool,
}

/// An assistant message in the form in which its provider wants it back. Never indexed, never shown.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Native {
    /// Vendor whose protocol the blocks belong to.
    pub provider: String,
    /// Model that wrote them, as it was asked for.
    pub model: String,
    /// JSON array of blocks, kept as this very text.
    pub blocks_json: String,
}

/// Largest [`Native`] form of a message, in bytes. It counts apart from the message, whose limit is the operator's.
pub const MAX_NATIVE: usize = 4 * 1024 * 1024;

impl Native {
    /// Bytes that it takes.
    pub fn size(&self) -> usize {
        self.provider.len() + self.model.len() + self.blocks_json.len()
    }
}

/// What a span takes beside its name, in bytes.
const SPAN_BYTES: usize = 16;

/// A message before it has a number.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewMessage {
    /// Who speaks.
    pub role: Role,
    /// What was said: shown, indexed, learned from.
    pub text: String,
    /// What was sent to the model in its place, where that differs.
    pub sent_text: Option<String>,
    /// Calls of an assistant message, in the model's order.
    pub tool_calls: Vec<ToolCall>,
    /// For a tool message, and only there.
    pub result: Option<ToolResult>,
    /// Where the words come from: ascending, not overlapping, on character boundaries.
    pub spans: Vec<Span>,
    /// Tokens of the model call that produced it.
    pub usage: Option<Usage>,
    /// Turn that it belongs to.
    pub turn: String,
    /// For an assistant message: its provider's own form of it.
    pub native: Option<Native>,
}

impl NewMessage {
    /// Bytes that the message takes with everything that comes with it.
    pub fn whole_size(&self) -> usize {
        self.size() + self.native.as_ref().map_or(0, Native::size)
    }

    /// Bytes that the message takes: its text, sent bytes, calls and spans. Its native form counts apart.
    pub fn size(&self) -> usize {
        let length = |text: &Option<String>| text.as_deref().map_or(0, str::len);
        let calls = self.tool_calls.iter().map(|call| {
            call.id.len() + call.name.len() + call.arguments_json.len() + length(&call.sent_arguments_json)
        });
        let result = self
            .result
            .iter()
            .map(|result| result.call_id.len() + result.tool_name.len());
        let spans = self.spans.iter().map(|span| {
            SPAN_BYTES
                + match &span.origin {
                    SpanOrigin::User(name) | SpanOrigin::Tool(name) | SpanOrigin::External(name) => name.len(),
                    SpanOrigin::Assistant | SpanOrigin::System => 0,
                }
        });
        let parts: usize = calls.chain(result).chain(spans).sum();
        self.text.len() + length(&self.sent_text) + self.turn.len() + parts
    }

    /// How far its own words may be trusted: the lowest of its spans, or what the role stands for without any. What the
    /// model says is as good as what it was told, so that it has no integrity of its own to lose.
    pub fn own_integrity(&self) -> Integrity {
        let of_role = match self.role {
            Role::User => Integrity::Person,
            Role::Assistant => Integrity::Operator,
            Role::Tool => Integrity::UnknownTool,
        };
        self.spans.iter().map(|span| span.integrity).min().unwrap_or(of_role)
    }

    /// Records what is wrong with it under `field`.
    pub fn check(&self, field: &str, violations: &mut FieldViolations) {
        if self.role != Role::Assistant && !self.tool_calls.is_empty() {
            violations.add(format!("{field}.tool_calls"), "only an assistant message calls tools");
        }
        for (index, call) in self.tool_calls.iter().enumerate() {
            if call.id.is_empty() || call.name.is_empty() {
                violations.add(format!("{field}.tool_calls[{index}]"), "must have an id and a name");
            }
        }
        match (&self.result, self.role) {
            (Some(result), Role::Tool) if result.call_id.is_empty() => {
                violations.add(
                    format!("{field}.tool_call_id"),
                    "must name the call that the result answers",
                );
            }
            (None, Role::Tool) => {
                violations.add(
                    format!("{field}.tool_call_id"),
                    "must name the call that the result answers",
                );
            }
            (Some(_), Role::User | Role::Assistant) => {
                violations.add(format!("{field}.tool_call_id"), "only a tool message answers a call");
            }
            (Some(_), Role::Tool) | (None, Role::User | Role::Assistant) => {}
        }
        if let Some(native) = &self.native {
            if self.role != Role::Assistant {
                violations.add(
                    format!("{field}.native"),
                    "only an assistant message has a provider's form",
                );
            }
            if native.provider.is_empty() {
                violations.add(format!("{field}.native.provider"), "must not be empty");
            }
        }
        self.check_spans(field, violations);
    }

    fn check_spans(&self, field: &str, violations: &mut FieldViolations) {
        let mut before = 0;
        for (index, span) in self.spans.iter().enumerate() {
            let (start, end) = (span.start as usize, span.end as usize);
            if start < before || end < start || !self.text.is_char_boundary(start) || !self.text.is_char_boundary(end) {
                violations.add(
                    format!("{field}.spans[{index}]"),
                    "must lie in the text on character boundaries, after the span before it",
                );
            }
            before = end;
        }
    }
}

/// A stored message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Message {
    /// Number in the session, gapless from 1.
    pub seq: u64,
    /// What it holds.
    pub body: NewMessage,
    /// Model of the session when it was appended.
    pub model: String,
    /// How far its words may be trusted: of the model's, as far as the worst that stood in its context by then.
    pub integrity: Integrity,
    /// Undone by the person: invisible everywhere but in a review's history (`Q-9`).
    pub rewound: bool,
    /// Taken out of the context by compression; still searchable (`Z-4`).
    pub compacted: bool,
    /// For a summary: what it stands for in the context (`Z-4`).
    pub replaces: Option<Replaced>,
    /// When it was appended.
    pub created: Timestamp,
}

/// The messages that a summary stands for, by their places in the context.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Replaced {
    /// First place, inclusive.
    pub from: u64,
    /// Last place, inclusive.
    pub to: u64,
}

impl Replaced {
    /// Whether the message at this place is one of them.
    pub const fn covers(self, place: u64) -> bool {
        self.from <= place && place <= self.to
    }
}

impl Message {
    /// Where it stands in the context: a summary stands where what it replaces began.
    pub fn place(&self) -> u64 {
        self.replaces.map_or(self.seq, |replaced| replaced.from)
    }

    /// The tools that it calls, or the one that it is the result of.
    pub fn tools(&self) -> impl Iterator<Item = &str> {
        let calls = self.body.tool_calls.iter().map(|call| call.name.as_str());
        calls.chain(self.body.result.iter().map(|result| result.tool_name.as_str()))
    }

    /// What the index holds of it as said: words of people and the model.
    pub fn said_text(&self) -> &str {
        if self.body.role == Role::Tool {
            ""
        } else {
            &self.body.text
        }
    }

    /// What the index holds of it as tool text: results, and the names and arguments of calls.
    pub fn tool_text(&self) -> String {
        match self.body.role {
            Role::Tool => self.body.text.clone(),
            Role::User | Role::Assistant => {
                let calls = self
                    .body
                    .tool_calls
                    .iter()
                    .map(|call| format!("{} {}", call.name, call.arguments_json));
                calls.collect::<Vec<_>>().join("\n")
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(text: &str) -> NewMessage {
        NewMessage {
            role: Role::User,
            text: text.to_owned(),
            sent_text: None,
            tool_calls: Vec::new(),
            result: None,
            spans: Vec::new(),
            usage: None,
            turn: "t1".to_owned(),
            native: None,
        }
    }

    #[test]
    fn without_spans_the_role_speaks_for_the_words() {
        assert_eq!(said("x").own_integrity(), Integrity::Person);
        let outside = Span {
            integrity: Integrity::External,
            ..span(0, 1)
        };
        assert_eq!(
            NewMessage {
                spans: vec![span(0, 1), outside],
                ..said("xy")
            }
            .own_integrity(),
            Integrity::External
        );
    }

    fn span(start: u32, end: u32) -> Span {
        Span {
            start,
            end,
            origin: SpanOrigin::Assistant,
            integrity: Integrity::Person,
        }
    }

    fn problems(message: &NewMessage) -> usize {
        let mut violations = FieldViolations::new();
        message.check("messages[0]", &mut violations);
        violations.as_slice().len()
    }

    #[test]
    fn spans_lie_on_characters_and_in_order() {
        let good = NewMessage {
            spans: vec![span(0, 2), span(2, 3)],
            ..said("éa")
        };
        assert_eq!(problems(&good), 0);
        for bad in [
            vec![span(0, 1)],
            vec![span(0, 4)],
            vec![span(2, 3), span(0, 2)],
            vec![span(3, 2)],
        ] {
            assert!(
                problems(&NewMessage {
                    spans: bad,
                    ..said("éa")
                }) > 0
            );
        }
    }

    #[test]
    fn a_tool_message_names_the_call_that_it_answers() {
        assert_eq!(
            problems(&NewMessage {
                role: Role::Tool,
                ..said("42")
            }),
            1
        );
        let result = ToolResult {
            call_id: "c1".to_owned(),
            tool_name: "sum".to_owned(),
            is_error: false,
        };
        assert_eq!(
            problems(&NewMessage {
                role: Role::Tool,
                result: Some(result.clone()),
                ..said("42")
            }),
            0
        );
        assert_eq!(
            problems(&NewMessage {
                result: Some(result),
                ..said("42")
            }),
            1
        );
    }

    #[test]
    fn only_the_models_words_have_a_providers_form() {
        let native = Some(Native {
            provider: "anthropic".to_owned(),
            model: "m".to_owned(),
            blocks_json: "[]".to_owned(),
        });
        let by = |role, native| NewMessage {
            role,
            native,
            ..said("hm")
        };
        assert_eq!(problems(&by(Role::Assistant, native.clone())), 0);
        assert_eq!(problems(&by(Role::User, native.clone())), 1);
        let nobodys = native.map(|native| Native {
            provider: String::new(),
            ..native
        });
        assert_eq!(problems(&by(Role::Assistant, nobodys)), 1);
    }
}
