//! From the events of a messages stream to deltas, and to the blocks that have to go back.
//!
//! An answer is a list of blocks; each opens, grows and closes under an index. Servers that imitate the protocol use one
//! index for several blocks or leave it out, so that an opening always begins a new block and a piece goes to the latest
//! block of its index. Kinds of events, blocks and pieces that are not known here are passed over, as the protocol asks.

use serde_json::value::RawValue;
use serde_json::{Map, Value};

use super::AnthropicOptions;
use super::blocks::{call_block, neutral_blocks, text_block};
use super::wire::{Document, Event, Opening};
use crate::assemble::{ARGUMENTS_LIMIT, Assemble, CALLS_LIMIT, CallIds, TEXT_LIMIT, grow, unreadable};
use crate::body::Body;
use crate::error::ModelError;
use crate::message::{ModelRequest, ToolCall};
use crate::native::NativeBlocks;
use crate::provider::{Delta, FinishReason};
use crate::secret::Secret;
use crate::sse::SseEvent;
use crate::usage::Usage;

/// Most bytes of reasoning, signatures and foreign blocks together.
const KEPT_LIMIT: usize = 8 << 20;

pub(super) struct Assembler {
    vendor: String,
    model: String,
    blocks: Vec<Block>,
    text_len: usize,
    kept_len: usize,
    usage: Map<String, Value>,
    finish: Option<FinishReason>,
    done: bool,
    ids: CallIds,
    key: Option<Secret>,
}

struct Block {
    index: Option<u64>,
    closed: bool,
    part: Part,
}

enum Part {
    Text(String),
    Call(Call),
    /// A `thinking` block: its fields, the two that grow among them.
    Thinking(Map<String, Value>),
    /// A block that comes whole (`redacted_thinking`, kinds unknown here), as its very text.
    Whole(String),
}

struct Call {
    id: String,
    name: String,
    arguments: String,
    /// Arguments that came with the opening.
    opening: String,
}

impl Assembler {
    pub(super) fn new(request: &ModelRequest, options: &AnthropicOptions, key: Option<Secret>) -> Self {
        Self {
            vendor: options.vendor.clone(),
            model: request.model.clone(),
            blocks: Vec::new(),
            text_len: 0,
            kept_len: 0,
            usage: Map::new(),
            finish: None,
            done: false,
            ids: CallIds::of(request),
            key,
        }
    }

    /// Later counts replace earlier ones; what is left out stays.
    fn count(&mut self, usage: &Value) {
        for (name, value) in usage.as_object().into_iter().flatten() {
            if !value.is_null() {
                self.usage.insert(name.clone(), value.clone());
            }
        }
    }

    fn open(&mut self, index: Option<u64>, raw: &RawValue, out: &mut Vec<Delta>) -> Result<(), ModelError> {
        let Ok(opening) = serde_json::from_str::<Opening<'_>>(raw.get()) else {
            return Err(unreadable("a content block has no type"));
        };
        let part = match &*opening.kind {
            "text" => {
                let text = opening.text.unwrap_or_default().into_owned();
                grow(&mut self.text_len, text.len(), "the text", TEXT_LIMIT)?;
                if !text.is_empty() {
                    out.push(Delta::Text(text.clone()));
                }
                Part::Text(text)
            }
            "tool_use" => Part::Call(self.open_call(opening, out)?),
            "thinking" => {
                grow(&mut self.kept_len, raw.get().len(), "the reasoning", KEPT_LIMIT)?;
                Part::Thinking(serde_json::from_str(raw.get()).unwrap_or_default())
            }
            _ => {
                grow(&mut self.kept_len, raw.get().len(), "the reasoning", KEPT_LIMIT)?;
                Part::Whole(raw.get().to_owned())
            }
        };
        self.blocks.push(Block {
            index,
            closed: false,
            part,
        });
        Ok(())
    }

    fn open_call(&self, opening: Opening<'_>, out: &mut Vec<Delta>) -> Result<Call, ModelError> {
        let position = self.calls().count();
        if position == CALLS_LIMIT {
            return Err(ModelError::TooLarge {
                what: "the list of calls",
                limit: CALLS_LIMIT,
            });
        }
        let given = opening.input.map_or("", RawValue::get);
        if given.len() > ARGUMENTS_LIMIT {
            return Err(too_many_arguments());
        }
        let name = opening.name.unwrap_or_default().into_owned();
        out.push(Delta::ToolCallStarted {
            position,
            name: name.clone(),
        });
        Ok(Call {
            id: opening.id.unwrap_or_default().into_owned(),
            name,
            arguments: String::new(),
            opening: given.to_owned(),
        })
    }

    fn calls(&self) -> impl Iterator<Item = &Call> {
        self.blocks.iter().filter_map(|block| match &block.part {
            Part::Call(call) => Some(call),
            Part::Text(_) | Part::Thinking(_) | Part::Whole(_) => None,
        })
    }

    fn block(&mut self, index: Option<u64>) -> Option<&mut Block> {
        let fits = |block: &&mut Block| index.is_none() || block.index == index;
        self.blocks.iter_mut().rev().find(fits)
    }

    fn piece(&mut self, index: Option<u64>, delta: &Value, out: &mut Vec<Delta>) -> Result<(), ModelError> {
        let text = |field: &str| delta.get(field).and_then(Value::as_str).unwrap_or_default();
        match text("type") {
            "text_delta" => {
                let more = text("text");
                grow(&mut self.text_len, more.len(), "the text", TEXT_LIMIT)?;
                match self.block(index).map(|block| &mut block.part) {
                    Some(Part::Text(text)) => text.push_str(more),
                    // Some servers do not open a block for text.
                    _ => self.blocks.push(Block {
                        index,
                        closed: false,
                        part: Part::Text(more.to_owned()),
                    }),
                }
                if !more.is_empty() {
                    out.push(Delta::Text(more.to_owned()));
                }
            }
            "input_json_delta" => match self.block(index).map(|block| &mut block.part) {
                Some(Part::Call(call)) => {
                    call.arguments.push_str(text("partial_json"));
                    if call.arguments.len() > ARGUMENTS_LIMIT {
                        return Err(too_many_arguments());
                    }
                }
                Some(Part::Text(_) | Part::Thinking(_) | Part::Whole(_)) => {}
                None => return Err(unreadable("arguments came for a call that was never opened")),
            },
            "thinking_delta" => self.think(index, "thinking", text("thinking"))?,
            "signature_delta" => self.think(index, "signature", text("signature"))?,
            _ => {}
        }
        Ok(())
    }

    fn think(&mut self, index: Option<u64>, field: &str, more: &str) -> Result<(), ModelError> {
        grow(&mut self.kept_len, more.len(), "the reasoning", KEPT_LIMIT)?;
        if let Some(Part::Thinking(fields)) = self.block(index).map(|block| &mut block.part) {
            match fields.get_mut(field) {
                Some(Value::String(text)) => text.push_str(more),
                _ => {
                    fields.insert(field.to_owned(), Value::String(more.to_owned()));
                }
            }
        }
        Ok(())
    }

    /// The calls as they are handed on, in order.
    fn take_calls(&mut self, finish: FinishReason) -> Vec<ToolCall> {
        let mut calls = Vec::new();
        for block in &mut self.blocks {
            let Part::Call(call) = &mut block.part else { continue };
            call.id = self.ids.unused(&call.id, calls.len());
            if call.arguments.trim().is_empty() {
                // Nothing streamed is an empty object, unless the answer was cut before anything could be.
                let cut = finish == FinishReason::Length && !block.closed;
                call.arguments = match std::mem::take(&mut call.opening) {
                    given if !matches!(given.as_str(), "" | "null" | "{}") => given,
                    _ if cut => String::new(),
                    _ => "{}".to_owned(),
                };
            }
            calls.push(ToolCall {
                id: call.id.clone(),
                name: call.name.clone(),
                arguments: call.arguments.clone(),
            });
        }
        calls
    }

    /// The blocks as they go back, if text and calls alone would not give the same. Blank text is left out, since the
    /// provider writes it and does not take it. An answer whose calls are no objects cannot go back in this form.
    fn native(&self, calls: &[ToolCall]) -> Result<Option<NativeBlocks>, ModelError> {
        let mut body = Body::default();
        let mut said = String::new();
        for block in &self.blocks {
            if matches!(&block.part, Part::Text(text) if text.trim().is_empty()) {
                continue;
            }
            if body.len() > 0 {
                body.raw(",");
            }
            match &block.part {
                Part::Text(text) => {
                    said.push_str(text);
                    text_block(&mut body, text)?;
                }
                Part::Call(call) => {
                    if serde_json::from_str::<Map<String, Value>>(&call.arguments).is_err() {
                        return Ok(None);
                    }
                    call_block(&mut body, &call.id, &call.name, &call.arguments)?;
                }
                Part::Thinking(fields) => {
                    body.json(fields)?;
                }
                Part::Whole(text) => {
                    body.raw(text);
                }
            }
        }
        let (_, plain) = body.finish("");
        let blocks = format!("[{}]", String::from_utf8_lossy(&plain));
        let needed = blocks != neutral_blocks(&said, calls)?;
        Ok(needed.then(|| NativeBlocks {
            provider: self.vendor.clone(),
            model: self.model.clone(),
            blocks,
        }))
    }
}

impl Assemble for Assembler {
    fn event(&mut self, event: &SseEvent, out: &mut Vec<Delta>) -> Result<(), ModelError> {
        if event.data.trim() == "[DONE]" {
            self.done = true;
            return Ok(());
        }
        let parsed: Event<'_> = serde_json::from_str(&event.data).map_err(|_| unreadable("an event is not JSON"))?;
        match parsed.kind.as_deref().unwrap_or(&event.event) {
            "message_start" => self.count(&parsed.message["usage"]),
            "content_block_start" => {
                let block = parsed
                    .content_block
                    .ok_or_else(|| unreadable("a block opens without a block"))?;
                self.open(parsed.index, block, out)?;
            }
            "content_block_delta" => self.piece(parsed.index, &parsed.delta, out)?,
            "content_block_stop" => {
                if let Some(block) = self.block(parsed.index) {
                    block.closed = true;
                }
            }
            "message_delta" => {
                self.count(&parsed.usage);
                if let Some(reason) = parsed.delta.get("stop_reason").and_then(Value::as_str) {
                    self.finish = Some(finish_reason(reason));
                }
            }
            "message_stop" => self.done = true,
            "error" => return Err(ModelError::from_stream(&parsed.error, self.key.as_ref())),
            // Pings, and whatever the protocol grows next.
            _ => {}
        }
        Ok(())
    }

    fn is_done(&self) -> bool {
        self.done
    }

    fn has_finish(&self) -> bool {
        self.finish.is_some()
    }

    fn finish(mut self) -> Result<Vec<Delta>, ModelError> {
        let finish = match self.finish {
            Some(finish) => finish,
            None if self.done && self.calls().next().is_some() => FinishReason::ToolCalls,
            None if self.done && self.text_len > 0 => FinishReason::Stop,
            None => return Err(ModelError::BrokenOff),
        };
        let calls = self.take_calls(finish);
        let native = self.native(&calls)?;
        let usage = Usage::from_messages(&Value::Object(self.usage));
        let mut deltas: Vec<Delta> = calls.into_iter().map(Delta::ToolCall).collect();
        deltas.push(Delta::Finish {
            reason: finish,
            usage,
            native,
        });
        Ok(deltas)
    }

    fn whole(mut self, document: &[u8]) -> Result<Vec<Delta>, ModelError> {
        let document: Document<'_> =
            serde_json::from_slice(document).map_err(|_| unreadable("the document is not a message"))?;
        if !document.error.is_null() {
            return Err(ModelError::from_stream(&document.error, self.key.as_ref()));
        }
        let mut deltas = Vec::new();
        for block in document.content {
            self.open(None, block, &mut deltas)?;
            if let Some(block) = self.blocks.last_mut() {
                block.closed = true;
            }
        }
        self.count(&document.usage);
        self.finish = document.stop_reason.as_deref().map(finish_reason);
        deltas.extend(self.finish()?);
        Ok(deltas)
    }
}

fn too_many_arguments() -> ModelError {
    ModelError::TooLarge {
        what: "the arguments of a call",
        limit: ARGUMENTS_LIMIT,
    }
}

fn finish_reason(reason: &str) -> FinishReason {
    match reason {
        "end_turn" | "stop_sequence" => FinishReason::Stop,
        "tool_use" => FinishReason::ToolCalls,
        "max_tokens" | "model_context_window_exceeded" => FinishReason::Length,
        "refusal" => FinishReason::Filtered,
        _ => FinishReason::Other,
    }
}

#[cfg(test)]
mod tests;
