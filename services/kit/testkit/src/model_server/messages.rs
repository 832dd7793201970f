//! A scripted answer in the form of the Anthropic messages protocol. A ping follows the start of every stream, since real
//! servers send them anywhere.

use serde_json::{Value, json};

use super::reply::{Answer, ScriptedBlock, ScriptedCall, ScriptedUsage, StreamEvent, pieces};

pub(super) fn failure(kind: &str, message: &str) -> Value {
    json!({ "type": "error", "error": { "type": kind, "message": message }, "request_id": "req_scripted" })
}

pub(super) fn stream(answer: &Answer) -> Vec<StreamEvent> {
    let usage = answer.usage.unwrap_or_default();
    let mut start = message(&[], &Value::Null);
    start["usage"] = usage_json(usage, 1);
    let mut events = vec![
        ("message_start", json!({ "type": "message_start", "message": start })),
        ("ping", json!({ "type": "ping" })),
    ];
    for (index, block) in answer.blocks.iter().enumerate() {
        events.extend(block_events(index, block));
    }
    if let Some((kind, text)) = &answer.error {
        events.push(("error", failure(kind, text)));
    } else {
        let delta = json!({ "stop_reason": stop_reason(answer.finish()), "stop_sequence": null });
        let usage = json!({ "output_tokens": usage.completion });
        events.push((
            "message_delta",
            json!({ "type": "message_delta", "delta": delta, "usage": usage }),
        ));
        if !answer.without_done {
            events.push(("message_stop", json!({ "type": "message_stop" })));
        }
    }
    events
        .into_iter()
        .map(|(name, event)| (Some(name), event.to_string()))
        .collect()
}

pub(super) fn document(answer: &Answer) -> Value {
    let content: Vec<Value> = answer.blocks.iter().map(whole_block).collect();
    let mut whole = message(&content, &json!(stop_reason(answer.finish())));
    let usage = answer.usage.unwrap_or_default();
    whole["usage"] = usage_json(usage, usage.completion);
    whole
}

fn message(content: &[Value], stop_reason: &Value) -> Value {
    json!({
        "id": "msg_scripted", "type": "message", "role": "assistant", "model": "scripted",
        "content": content, "stop_reason": stop_reason, "stop_sequence": null,
    })
}

fn block_events(index: usize, block: &ScriptedBlock) -> Vec<(&'static str, Value)> {
    let (opening, deltas) = match block {
        ScriptedBlock::Text(text) => {
            let deltas = pieces(text).into_iter();
            let deltas = deltas
                .map(|piece| json!({ "type": "text_delta", "text": piece }))
                .collect();
            (json!({ "type": "text", "text": "" }), deltas)
        }
        ScriptedBlock::Call(call) => {
            let deltas = pieces(&call.arguments).into_iter();
            let deltas = deltas
                .map(|piece| json!({ "type": "input_json_delta", "partial_json": piece }))
                .collect();
            (call_json(call, &json!({})), deltas)
        }
        ScriptedBlock::Thinking { text, signature } => {
            let deltas = pieces(text).into_iter();
            let mut deltas: Vec<Value> = deltas
                .map(|piece| json!({ "type": "thinking_delta", "thinking": piece }))
                .collect();
            deltas.push(json!({ "type": "signature_delta", "signature": signature }));
            (json!({ "type": "thinking", "thinking": "", "signature": "" }), deltas)
        }
        ScriptedBlock::RedactedThinking(_) => (whole_block(block), Vec::new()),
    };
    let start = json!({ "type": "content_block_start", "index": index, "content_block": opening });
    let mut events = vec![("content_block_start", start)];
    for delta in deltas {
        let event = json!({ "type": "content_block_delta", "index": index, "delta": delta });
        events.push(("content_block_delta", event));
    }
    events.push((
        "content_block_stop",
        json!({ "type": "content_block_stop", "index": index }),
    ));
    events
}

fn whole_block(block: &ScriptedBlock) -> Value {
    match block {
        ScriptedBlock::Text(text) => json!({ "type": "text", "text": text }),
        ScriptedBlock::Call(call) => {
            let input = serde_json::from_str(&call.arguments).unwrap_or_else(|_| json!({}));
            call_json(call, &input)
        }
        ScriptedBlock::Thinking { text, signature } => {
            json!({ "type": "thinking", "thinking": text, "signature": signature })
        }
        ScriptedBlock::RedactedThinking(data) => json!({ "type": "redacted_thinking", "data": data }),
    }
}

fn call_json(call: &ScriptedCall, input: &Value) -> Value {
    let mut value = json!({ "type": "tool_use", "name": call.name, "input": input });
    if let Some(id) = &call.id {
        value["id"] = json!(id);
    }
    value
}

/// Input tokens are those that no cache has to do with.
fn usage_json(usage: ScriptedUsage, output: u64) -> Value {
    json!({
        "input_tokens": usage.prompt.saturating_sub(usage.cached + usage.cache_write),
        "cache_read_input_tokens": usage.cached,
        "cache_creation_input_tokens": usage.cache_write,
        "output_tokens": output,
    })
}

fn stop_reason(finish: &str) -> &str {
    match finish {
        "stop" => "end_turn",
        "tool_calls" => "tool_use",
        "length" => "max_tokens",
        "content_filter" => "refusal",
        other => other,
    }
}
