//! Single content blocks: how they are written, and whether kept ones still say what their message says.

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::value::RawValue;
use steward_base::hash::sha256_hex;

use crate::body::Body;
use crate::error::ModelError;
use crate::message::ToolCall;

pub(super) fn text_block(body: &mut Body, text: &str) -> Result<(), ModelError> {
    body.raw("{\"type\":\"text\",\"text\":").json(text)?.raw("}");
    Ok(())
}

pub(super) fn call_block(body: &mut Body, id: &str, name: &str, arguments: &str) -> Result<(), ModelError> {
    body.raw("{\"type\":\"tool_use\",\"id\":").json(&*wire_id(id))?;
    body.raw(",\"name\":").json(&*wire_name(name))?;
    body.raw(",\"input\":").raw(&input(arguments)).raw("}");
    Ok(())
}

/// The blocks of an assistant message without reasoning, as a JSON array.
pub(super) fn neutral_blocks(content: &str, calls: &[ToolCall]) -> Result<String, ModelError> {
    let mut body = Body::default();
    if !content.trim().is_empty() {
        text_block(&mut body, content)?;
    }
    for call in calls {
        if body.len() > 0 {
            body.raw(",");
        }
        call_block(&mut body, &call.id, &call.name, &call.arguments)?;
    }
    let (_, plain) = body.finish("");
    Ok(format!("[{}]", String::from_utf8_lossy(&plain)))
}

/// The arguments as the object that the protocol wants, byte for byte as they came where they are one (`P-4`).
fn input(arguments: &str) -> Cow<'_, str> {
    if arguments.trim().is_empty() {
        return Cow::Borrowed("{}");
    }
    match serde_json::from_str::<&RawValue>(arguments) {
        Ok(raw) if raw.get().starts_with('{') => Cow::Borrowed(raw.get()),
        _ => Cow::Owned(serde_json::json!({ "unreadable": arguments }).to_string()),
    }
}

fn is_plain(text: &str) -> bool {
    !text.is_empty()
        && text
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-'))
}

/// Ids of other providers may hold characters that this protocol refuses. The same id always gives the same form.
pub(super) fn wire_id(id: &str) -> Cow<'_, str> {
    if is_plain(id) {
        Cow::Borrowed(id)
    } else {
        Cow::Owned(format!("call_{}", &sha256_hex(id.as_bytes())[..24]))
    }
}

/// A model may have called a tool that cannot exist; the history has to be accepted all the same.
fn wire_name(name: &str) -> Cow<'_, str> {
    const LONGEST: usize = 64;
    if is_plain(name) && name.len() <= LONGEST {
        return Cow::Borrowed(name);
    }
    let plain = name.chars().map(|character| {
        if character.is_ascii_alphanumeric() || matches!(character, '_' | '-') {
            character
        } else {
            '_'
        }
    });
    let plain: String = plain.take(LONGEST).collect();
    Cow::Owned(if plain.is_empty() { "unnamed".to_owned() } else { plain })
}

#[derive(Deserialize)]
struct Block<'a> {
    #[serde(rename = "type", borrow)]
    kind: Cow<'a, str>,
    #[serde(borrow)]
    text: Option<Cow<'a, str>>,
    #[serde(borrow)]
    id: Option<Cow<'a, str>>,
    #[serde(borrow)]
    name: Option<Cow<'a, str>>,
    #[serde(borrow)]
    input: Option<&'a RawValue>,
}

/// Whether a cache marker may stand in the block; reasoning takes none.
pub(super) fn is_markable(block: &RawValue) -> bool {
    let block = serde_json::from_str::<Block<'_>>(block.get());
    block.is_ok_and(|block| matches!(&*block.kind, "text" | "tool_use"))
}

/// The native blocks, if they say what the message says. A message that was changed since (a secret erased, a call repaired)
/// goes before the blocks that it once had.
pub(super) fn agreeing<'a>(blocks: &'a str, content: &str, calls: &[ToolCall]) -> Option<Vec<&'a RawValue>> {
    let raw: Vec<&RawValue> = serde_json::from_str(blocks).ok()?;
    let parsed: Vec<Block<'_>> = raw
        .iter()
        .map(|block| serde_json::from_str(block.get()).ok())
        .collect::<Option<_>>()?;
    let said = parsed.iter().filter(|block| block.kind == "text");
    let said: String = said.filter_map(|block| block.text.as_deref()).collect();
    let words = |text: &str| text.split_whitespace().collect::<String>();
    let called: Vec<&Block<'_>> = parsed.iter().filter(|block| block.kind == "tool_use").collect();
    let same_calls = called.len() == calls.len()
        && called.iter().zip(calls).all(|(block, call)| {
            block.id.as_deref() == Some(&*wire_id(&call.id))
                && block.name.as_deref() == Some(&*wire_name(&call.name))
                && block.input.map(RawValue::get) == Some(&*input(&call.arguments))
        });
    (same_calls && !raw.is_empty() && words(&said) == words(content)).then_some(raw)
}
