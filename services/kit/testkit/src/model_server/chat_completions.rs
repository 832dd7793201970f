//! A scripted answer in the form of OpenAI chat completions. Reasoning has no place in it and is left out.

use serde_json::{Value, json};

use super::reply::{Answer, ScriptedCall, ScriptedUsage, StreamEvent, pieces};

pub(super) fn failure(kind: &str, message: &str) -> Value {
    json!({ "error": { "message": message, "type": kind } })
}

pub(super) fn stream(answer: &Answer) -> Vec<StreamEvent> {
    let chunk = |delta: Value, finish: Value| {
        json!({
            "id": "chatcmpl-1", "object": "chat.completion.chunk", "model": "scripted",
            "choices": [{ "index": 0, "delta": delta, "finish_reason": finish }],
        })
    };
    let mut events = vec![chunk(json!({ "role": "assistant", "content": "" }), Value::Null)];
    for piece in pieces(&answer.text()) {
        events.push(chunk(json!({ "content": piece }), Value::Null));
    }
    for (index, call) in answer.calls().into_iter().enumerate() {
        let mut start = call_json(call, "");
        start["index"] = json!(index);
        events.push(chunk(json!({ "tool_calls": [start] }), Value::Null));
        for piece in pieces(&call.arguments) {
            let more = json!({ "tool_calls": [{ "index": index, "function": { "arguments": piece } }] });
            events.push(chunk(more, Value::Null));
        }
    }
    if let Some((kind, message)) = &answer.error {
        events.push(failure(kind, message));
        return events.into_iter().map(|event| (None, event.to_string())).collect();
    }
    events.push(chunk(json!({}), json!(answer.finish())));
    if let Some(usage) = answer.usage {
        events.push(json!({ "object": "chat.completion.chunk", "choices": [], "usage": usage_json(usage) }));
    }
    let mut events: Vec<StreamEvent> = events.into_iter().map(|event| (None, event.to_string())).collect();
    if !answer.without_done {
        events.push((None, "[DONE]".to_owned()));
    }
    events
}

pub(super) fn document(answer: &Answer) -> Value {
    let mut message = json!({ "role": "assistant", "content": answer.text() });
    let calls = answer.calls();
    if !calls.is_empty() {
        message["tool_calls"] = calls.iter().map(|call| call_json(call, &call.arguments)).collect();
    }
    json!({
        "id": "chatcmpl-1", "object": "chat.completion", "model": "scripted",
        "choices": [{ "index": 0, "message": message, "finish_reason": answer.finish() }],
        "usage": answer.usage.map(usage_json),
    })
}

fn usage_json(usage: ScriptedUsage) -> Value {
    let mut details = json!({ "cached_tokens": usage.cached });
    if usage.cache_write > 0 {
        details["cache_write_tokens"] = json!(usage.cache_write);
    }
    json!({
        "prompt_tokens": usage.prompt,
        "completion_tokens": usage.completion,
        "total_tokens": usage.prompt + usage.completion,
        "prompt_tokens_details": details,
    })
}

fn call_json(call: &ScriptedCall, arguments: &str) -> Value {
    let mut value = json!({ "type": "function", "function": { "name": call.name, "arguments": arguments } });
    if let Some(id) = &call.id {
        value["id"] = json!(id);
    }
    value
}
