//! The bytes of a messages request: a fixed order, every content a list of blocks, and cache markers that are inserted into
//! finished bytes (`P-4`, `P-5`).
//!
//! This protocol knows two roles that alternate. Messages of one side in a row become one message, so that all results of an
//! answer's calls stand together; the bytes of a longer conversation still begin with those of the shorter one, its closing
//! brackets left out.

use serde_json::value::RawValue;

use super::blocks::{agreeing, call_block, is_markable, text_block, wire_id};
use super::{AnthropicOptions, CacheTtl, Thinking};
use crate::body::Body;
use crate::error::ModelError;
use crate::message::{Message, ModelRequest, ToolCall, ToolChoice};
use crate::native::Continuation;
use crate::render::{Rendered, Segments};
use crate::tools::{ToolSpec, parse_tools};

/// Stands for a message without words, which the protocol does not accept.
const NO_WORDS: &str = "(empty message)";
/// Opens a conversation that the assistant began, which the protocol does not accept either.
const OPENING: &str = "(The assistant speaks first.)";
/// Least reasoning that can be asked for.
const LEAST_BUDGET: u32 = 1024;

/// Renders a request. Pure: the same input gives the same bytes.
///
/// # Errors
/// [`ModelError::InvalidRequest`] when the tool list is not readable.
pub fn render(
    request: &ModelRequest,
    continuation: &Continuation,
    options: &AnthropicOptions,
) -> Result<Rendered, ModelError> {
    let tools = parse_tools(&request.tools_json)?;
    let mut body = Body::default();
    head(&mut body, request, options, !tools.is_empty())?;
    let (stable, rest) = tiers(&request.system, continuation.stable_len);
    let marks_tools = options.cache.is_some() && rest.is_empty();
    let marks = options.cache.is_some();

    let mut tools_at = 0..0;
    if !tools.is_empty() {
        body.raw(",\"tools\":");
        let start = body.len();
        write_tools(&mut body, &tools)?;
        tools_at = start..body.len();
        if marks_tools {
            body.mark(tools_at.end - "}]".len());
        }
    }
    let mut system_at = 0..0;
    if !stable.is_empty() {
        body.raw(",\"system\":");
        let start = body.len();
        for (index, tier) in [stable, rest].into_iter().filter(|tier| !tier.is_empty()).enumerate() {
            body.raw(if index == 0 { "[" } else { "," });
            text_block(&mut body, tier)?;
            if marks {
                body.mark(body.len() - 1);
            }
        }
        body.raw("]");
        system_at = start..body.len();
    }
    body.raw(",\"messages\":[");
    let start = body.len();
    let mut conversation = Conversation::new(&mut body);
    conversation.write(request, continuation, &options.vendor)?;
    let last_marks = conversation.last_marks();
    let messages_at = start..body.len();
    if marks {
        for mark in last_marks {
            body.mark(mark);
        }
    }
    body.raw(if messages_at.is_empty() { "]}" } else { "]}]}" });
    let segments = Segments {
        tools: tools_at,
        system: system_at,
        messages: messages_at,
    };
    Ok(Rendered::new(body, segments, marker(options.cache)))
}

const MARKER_5M: &str = ",\"cache_control\":{\"type\":\"ephemeral\"}";
const MARKER_1H: &str = ",\"cache_control\":{\"type\":\"ephemeral\",\"ttl\":\"1h\"}";

fn marker(ttl: Option<CacheTtl>) -> &'static str {
    match ttl {
        None => "",
        Some(CacheTtl::FiveMinutes) => MARKER_5M,
        Some(CacheTtl::OneHour) => MARKER_1H,
    }
}

/// The text of a received body without the markers that were put into it.
pub(crate) fn without_markers(text: &str) -> String {
    text.replace(MARKER_1H, "").replace(MARKER_5M, "")
}

/// Everything before the segments.
fn head(
    body: &mut Body,
    request: &ModelRequest,
    options: &AnthropicOptions,
    has_tools: bool,
) -> Result<(), ModelError> {
    let max_tokens = request.max_output_tokens.unwrap_or(options.max_tokens);
    body.raw("{\"model\":").json(&request.model)?;
    body.raw(",\"max_tokens\":").json(&max_tokens)?;
    body.raw(",\"stream\":true");
    let forced = matches!(request.tool_choice, ToolChoice::Required | ToolChoice::Tool(_));
    match options.thinking {
        Thinking::Off => {
            body.raw(",\"thinking\":{\"type\":\"disabled\"}");
        }
        // A forced call and reasoning exclude each other.
        Thinking::Adaptive if !forced => {
            body.raw(",\"thinking\":{\"type\":\"adaptive\"}");
        }
        Thinking::Budget(tokens) if !forced && max_tokens > LEAST_BUDGET => {
            let tokens = tokens.clamp(LEAST_BUDGET, max_tokens - 1);
            body.raw(",\"thinking\":{\"type\":\"enabled\",\"budget_tokens\":")
                .json(&tokens)?
                .raw("}");
        }
        Thinking::Unset | Thinking::Adaptive | Thinking::Budget(_) => {}
    }
    match &request.tool_choice {
        ToolChoice::None if has_tools => {
            body.raw(",\"tool_choice\":{\"type\":\"none\"}");
        }
        ToolChoice::Required if has_tools => {
            body.raw(",\"tool_choice\":{\"type\":\"any\"}");
        }
        ToolChoice::Tool(name) if has_tools => {
            body.raw(",\"tool_choice\":{\"type\":\"tool\",\"name\":")
                .json(name)?
                .raw("}");
        }
        ToolChoice::Auto | ToolChoice::None | ToolChoice::Required | ToolChoice::Tool(_) => {}
    }
    Ok(())
}

fn write_tools(body: &mut Body, tools: &[ToolSpec]) -> Result<(), ModelError> {
    for (index, tool) in tools.iter().enumerate() {
        body.raw(if index == 0 { "[" } else { "," });
        body.raw("{\"name\":").json(&tool.name)?;
        if !tool.description.is_empty() {
            body.raw(",\"description\":").json(&tool.description)?;
        }
        body.raw(",\"input_schema\":").raw(tool.input_schema.get()).raw("}");
    }
    body.raw("]");
    Ok(())
}

/// The system prompt in its stable tier and the rest; all of it is the first part where it cannot be cut.
fn tiers(system: &str, stable_len: Option<usize>) -> (&str, &str) {
    if system.trim().is_empty() {
        return ("", "");
    }
    let cut = stable_len.and_then(|len| system.split_at_checked(len));
    // A block of nothing but blanks is refused.
    cut.filter(|(stable, rest)| !stable.trim().is_empty() && !rest.trim().is_empty())
        .unwrap_or((system, ""))
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Side {
    User,
    Assistant,
}

/// Whether a cache marker may stand in a block.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Markable {
    Yes,
    No,
}

/// Writes the messages and remembers the last place for a marker in each.
struct Conversation<'a> {
    body: &'a mut Body,
    side: Option<Side>,
    marks: Vec<Option<usize>>,
}

impl<'a> Conversation<'a> {
    fn new(body: &'a mut Body) -> Self {
        Self {
            body,
            side: None,
            marks: Vec::new(),
        }
    }

    /// Writes all messages except for the closing brackets of the last one.
    fn write(&mut self, request: &ModelRequest, continuation: &Continuation, vendor: &str) -> Result<(), ModelError> {
        for (index, message) in request.messages.iter().enumerate() {
            match message {
                Message::User { content } => {
                    let content = if content.trim().is_empty() { NO_WORDS } else { content };
                    self.open(Side::User)?;
                    text_block(self.body, content)?;
                    self.close(Markable::Yes);
                }
                Message::Tool { call_id, content, .. } => self.result(call_id, content)?,
                Message::Assistant { content, tool_calls } => {
                    let blocks = continuation.blocks_for(index, vendor, &request.model);
                    match blocks.and_then(|blocks| agreeing(blocks, content, tool_calls)) {
                        Some(blocks) => self.native(&blocks)?,
                        None => self.assistant(content, tool_calls)?,
                    }
                }
            }
        }
        Ok(())
    }

    /// Opens a block: in the current message if it is of the same side, else in a new one.
    fn open(&mut self, side: Side) -> Result<(), ModelError> {
        if self.side.is_none() && side == Side::Assistant {
            self.open(Side::User)?;
            text_block(self.body, OPENING)?;
            self.close(Markable::Yes);
        }
        if self.side == Some(side) {
            self.body.raw(",");
            return Ok(());
        }
        if self.side.is_some() {
            self.body.raw("]},");
        }
        let role = match side {
            Side::User => "user",
            Side::Assistant => "assistant",
        };
        self.body.raw("{\"role\":\"").raw(role).raw("\",\"content\":[");
        self.side = Some(side);
        self.marks.push(None);
        Ok(())
    }

    /// Notes the end of a block.
    fn close(&mut self, markable: Markable) {
        if let (Markable::Yes, Some(mark)) = (markable, self.marks.last_mut()) {
            *mark = Some(self.body.len() - 1);
        }
    }

    fn result(&mut self, call_id: &str, content: &str) -> Result<(), ModelError> {
        self.open(Side::User)?;
        self.body
            .raw("{\"type\":\"tool_result\",\"tool_use_id\":")
            .json(&*wire_id(call_id))?;
        let empty = content.is_empty();
        if !empty {
            self.body.raw(",\"content\":").json(content)?;
        }
        self.body.raw("}");
        self.close(if empty { Markable::No } else { Markable::Yes });
        Ok(())
    }

    fn assistant(&mut self, content: &str, calls: &[ToolCall]) -> Result<(), ModelError> {
        if !content.trim().is_empty() {
            self.open(Side::Assistant)?;
            text_block(self.body, content)?;
            self.close(Markable::Yes);
        }
        for call in calls {
            self.open(Side::Assistant)?;
            call_block(self.body, &call.id, &call.name, &call.arguments)?;
            self.close(Markable::Yes);
        }
        Ok(())
    }

    fn native(&mut self, blocks: &[&RawValue]) -> Result<(), ModelError> {
        for block in blocks {
            self.open(Side::Assistant)?;
            self.body.raw(block.get());
            self.close(if is_markable(block) {
                Markable::Yes
            } else {
                Markable::No
            });
        }
        Ok(())
    }

    /// Places for markers in the last two messages that have one, in order.
    fn last_marks(&self) -> Vec<usize> {
        let mut marks: Vec<usize> = self.marks.iter().rev().copied().flatten().take(2).collect();
        marks.reverse();
        marks
    }
}

#[cfg(test)]
mod tests;
