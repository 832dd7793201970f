//! From the events of a chat completions stream to deltas.
//!
//! The protocol says that call pieces carry an index, the first one an id and a name. Servers differ: some repeat the
//! name on every piece, some number every call 0, some send no ids, some give each answer the same ids. What comes out is
//! always the same: whole calls in order, each with an id that is not empty and not used before in the conversation.

use std::collections::HashSet;

use serde_json::Value;

use crate::assemble::{ARGUMENTS_LIMIT, Assemble, CALLS_LIMIT, CallIds, TEXT_LIMIT, grow, unreadable};
use crate::error::ModelError;
use crate::message::ToolCall;
use crate::provider::{Delta, FinishReason};
use crate::secret::Secret;
use crate::sse::SseEvent;
use crate::usage::Usage;

pub(super) struct Assembler {
    calls: Vec<Building>,
    text_len: usize,
    finish: Option<FinishReason>,
    usage: Usage,
    done: bool,
    ids: CallIds,
    key: Option<Secret>,
}

#[derive(Default)]
struct Building {
    index: Option<u64>,
    id: String,
    name: String,
    arguments: String,
}

impl Building {
    /// Whether the arguments are one whole JSON object, so that more of them can only belong to another call.
    fn is_whole(&self) -> bool {
        self.arguments.trim_end().ends_with('}')
            && serde_json::from_str::<serde_json::Map<String, Value>>(&self.arguments).is_ok()
    }
}

/// One piece of a call, as it came.
struct Piece<'a> {
    index: Option<u64>,
    id: &'a str,
    name: &'a str,
    arguments: String,
}

impl<'a> Piece<'a> {
    fn read(value: &'a Value) -> Self {
        let function = value.get("function").unwrap_or(&Value::Null);
        let text = |value: Option<&'a Value>| value.and_then(Value::as_str).unwrap_or_default();
        let arguments = match function.get("arguments") {
            Some(Value::String(text)) => text.clone(),
            // Some servers send the object itself.
            Some(object @ Value::Object(_)) => object.to_string(),
            _ => String::new(),
        };
        Self {
            index: value.get("index").and_then(Value::as_u64),
            id: text(value.get("id")),
            name: text(function.get("name")),
            arguments,
        }
    }

    /// Whether it opens a new call rather than going on with `call`.
    fn opens_after(&self, call: &Building) -> bool {
        let another_id = !self.id.is_empty() && !call.id.is_empty() && self.id != call.id;
        let whole_again = !self.name.is_empty() && !self.arguments.trim().is_empty() && call.is_whole();
        another_id || whole_again
    }
}

impl Assembler {
    pub(super) fn new(ids: CallIds, key: Option<Secret>) -> Self {
        Self {
            calls: Vec::new(),
            text_len: 0,
            finish: None,
            usage: Usage::default(),
            done: false,
            ids,
            key,
        }
    }

    fn chunk(&mut self, chunk: &Value, body: &str, out: &mut Vec<Delta>) -> Result<(), ModelError> {
        if let Some(error) = chunk.get("error").filter(|error| !error.is_null()) {
            return Err(ModelError::from_stream(error, self.key.as_ref()));
        }
        if let Some(usage) = chunk.get("usage").filter(|usage| usage.is_object()) {
            self.usage = Usage::from_chat_completions(usage);
        }
        let Some(choice) = chunk.pointer("/choices/0") else {
            return Ok(());
        };
        let body = choice.get(body).unwrap_or(&Value::Null);
        self.text(body.get("content").unwrap_or(&Value::Null), out)?;
        for piece in body.get("tool_calls").and_then(Value::as_array).into_iter().flatten() {
            self.piece(&Piece::read(piece), out)?;
        }
        if let Some(reason) = choice.get("finish_reason").and_then(Value::as_str) {
            self.finish = Some(finish_reason(reason));
        }
        Ok(())
    }

    fn text(&mut self, content: &Value, out: &mut Vec<Delta>) -> Result<(), ModelError> {
        let text = match content {
            Value::String(text) => text.clone(),
            Value::Array(parts) => parts.iter().filter_map(|part| part.get("text")?.as_str()).collect(),
            _ => return Ok(()),
        };
        grow(&mut self.text_len, text.len(), "the text", TEXT_LIMIT)?;
        if !text.is_empty() {
            out.push(Delta::Text(text));
        }
        Ok(())
    }

    fn piece(&mut self, piece: &Piece<'_>, out: &mut Vec<Delta>) -> Result<(), ModelError> {
        let position = match self.find(piece) {
            Some(position) => position,
            None if self.calls.len() == CALLS_LIMIT => {
                return Err(ModelError::TooLarge {
                    what: "the list of calls",
                    limit: CALLS_LIMIT,
                });
            }
            None => {
                self.calls.push(Building {
                    index: piece.index,
                    ..Building::default()
                });
                self.calls.len() - 1
            }
        };
        let call = &mut self.calls[position];
        if call.id.is_empty() {
            piece.id.clone_into(&mut call.id);
        }
        let unnamed = call.name.is_empty();
        if unnamed {
            piece.name.clone_into(&mut call.name);
        } else if call.name != piece.name && call.arguments.is_empty() {
            // A name in pieces; a repeated one is left alone.
            call.name.push_str(piece.name);
        }
        call.arguments.push_str(&piece.arguments);
        if call.arguments.len() > ARGUMENTS_LIMIT {
            return Err(ModelError::TooLarge {
                what: "the arguments of a call",
                limit: ARGUMENTS_LIMIT,
            });
        }
        if unnamed && !call.name.is_empty() {
            out.push(Delta::ToolCallStarted {
                position,
                name: call.name.clone(),
            });
        }
        Ok(())
    }

    /// The call that a piece goes on with; `None` when it opens one.
    fn find(&self, piece: &Piece<'_>) -> Option<usize> {
        let latest = |fits: &dyn Fn(&Building) -> bool| self.calls.iter().rposition(fits);
        let by_id = || {
            if piece.id.is_empty() {
                None
            } else {
                latest(&|call| call.id == piece.id)
            }
        };
        let candidate = match piece.index {
            Some(index) => {
                let same_index = latest(&|call| call.index == Some(index))?;
                if piece.opens_after(&self.calls[same_index]) {
                    latest(&|call| call.index == Some(index) && !piece.id.is_empty() && call.id == piece.id)
                } else {
                    Some(same_index)
                }
            }
            None if piece.id.is_empty() => self.calls.len().checked_sub(1),
            None => by_id(),
        }?;
        let call = &self.calls[candidate];
        let other_name =
            piece.index.is_none() && piece.id.is_empty() && !piece.name.is_empty() && call.name != piece.name;
        if piece.opens_after(call) || other_name {
            None
        } else {
            Some(candidate)
        }
    }
}

impl Assemble for Assembler {
    fn event(&mut self, event: &SseEvent, out: &mut Vec<Delta>) -> Result<(), ModelError> {
        if event.data.trim() == "[DONE]" {
            self.done = true;
            return Ok(());
        }
        let chunk: Value = serde_json::from_str(&event.data).map_err(|_| unreadable("an event is not JSON"))?;
        self.chunk(&chunk, "delta", out)
    }

    fn is_done(&self) -> bool {
        self.done
    }

    fn has_finish(&self) -> bool {
        self.finish.is_some()
    }

    fn finish(mut self) -> Result<Vec<Delta>, ModelError> {
        let began = self.text_len > 0 || !self.calls.is_empty();
        let reason = match self.finish {
            Some(reason) => reason,
            None if self.done && began && self.calls.is_empty() => FinishReason::Stop,
            None if self.done && began => FinishReason::ToolCalls,
            None => return Err(ModelError::BrokenOff),
        };
        let mut calls = std::mem::take(&mut self.calls);
        let indices: HashSet<u64> = calls.iter().filter_map(|call| call.index).collect();
        if indices.len() == calls.len() {
            calls.sort_by_key(|call| call.index);
        }
        let mut deltas = Vec::with_capacity(calls.len() + 1);
        for (position, call) in calls.into_iter().enumerate() {
            deltas.push(Delta::ToolCall(ToolCall {
                id: self.ids.unused(&call.id, position),
                name: call.name,
                arguments: call.arguments,
            }));
        }
        deltas.push(Delta::Finish {
            reason,
            usage: self.usage,
            native: None,
        });
        Ok(deltas)
    }

    fn whole(mut self, document: &[u8]) -> Result<Vec<Delta>, ModelError> {
        let chunk: Value = serde_json::from_slice(document).map_err(|_| unreadable("the document is not JSON"))?;
        let mut deltas = Vec::new();
        self.chunk(&chunk, "message", &mut deltas)?;
        deltas.extend(self.finish()?);
        Ok(deltas)
    }
}

fn finish_reason(reason: &str) -> FinishReason {
    match reason {
        "stop" | "end_turn" => FinishReason::Stop,
        "tool_calls" | "function_call" => FinishReason::ToolCalls,
        "length" | "max_tokens" => FinishReason::Length,
        "content_filter" => FinishReason::Filtered,
        _ => FinishReason::Other,
    }
}

#[cfg(test)]
mod tests;
