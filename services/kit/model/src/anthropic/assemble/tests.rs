//! Streams as real servers and their imitators send them.

use serde_json::json;

use super::*;
use crate::message::ToolChoice;

fn assembler() -> Assembler {
    let request = ModelRequest {
        model: "m".to_owned(),
        system: "".into(),
        tools_json: "".into(),
        messages: Vec::new(),
        tool_choice: ToolChoice::Auto,
        max_output_tokens: None,
    };
    Assembler::new(&request, &AnthropicOptions::default(), None)
}

fn run(events: &[Value]) -> Result<Vec<Delta>, ModelError> {
    let (mut assembler, mut out) = (assembler(), Vec::new());
    for event in events {
        let event = SseEvent {
            event: "message".to_owned(),
            data: event.to_string(),
            last_id: String::new(),
        };
        assembler.event(&event, &mut out)?;
    }
    out.extend(assembler.finish()?);
    Ok(out)
}

fn start(index: u64, block: &Value) -> Value {
    json!({"type": "content_block_start", "index": index, "content_block": block})
}

fn delta(index: u64, delta: &Value) -> Value {
    json!({"type": "content_block_delta", "index": index, "delta": delta})
}

fn arguments(index: u64, text: &str) -> Value {
    delta(index, &json!({"type": "input_json_delta", "partial_json": text}))
}

fn stop(reason: &str) -> Value {
    json!({"type": "message_delta", "delta": {"stop_reason": reason}, "usage": {"output_tokens": 5}})
}

fn tool(id: &str) -> Value {
    json!({"type": "tool_use", "id": id, "name": "look", "input": {}})
}

fn calls(deltas: &[Delta]) -> Vec<(&str, &str)> {
    let call = |delta: &'_ Delta| matches!(delta, Delta::ToolCall(_));
    let calls = deltas.iter().filter(|delta| call(delta));
    calls
        .filter_map(|delta| match delta {
            Delta::ToolCall(call) => Some((call.id.as_str(), call.arguments.as_str())),
            _ => None,
        })
        .collect()
}

fn finish(deltas: &[Delta]) -> (FinishReason, Usage, Option<NativeBlocks>) {
    match deltas.last() {
        Some(Delta::Finish { reason, usage, native }) => (*reason, *usage, native.clone()),
        other => panic!("no finish but {other:?}"),
    }
}

#[test]
fn blocks_of_one_index_stay_separate_and_interleaved_pieces_find_theirs() {
    let same_index = [
        start(0, &tool("a")),
        arguments(0, r#"{"n":1}"#),
        start(0, &tool("b")),
        arguments(0, r#"{"n":2}"#),
        stop("tool_use"),
    ];
    let deltas = run(&same_index).expect("an answer");
    assert_eq!(calls(&deltas), [("a", r#"{"n":1}"#), ("b", r#"{"n":2}"#)]);
    let interleaved = [
        start(0, &tool("a")),
        start(1, &tool("b")),
        arguments(1, r#"{"n":"#),
        arguments(0, r#"{"n":1}"#),
        arguments(1, "2}"),
        stop("tool_use"),
    ];
    let deltas = run(&interleaved).expect("an answer");
    assert_eq!(calls(&deltas), [("a", r#"{"n":1}"#), ("b", r#"{"n":2}"#)]);
    assert_eq!(finish(&deltas).2, None, "calls alone need no second form");
}

#[test]
fn what_is_not_known_is_passed_over() {
    let events = [
        json!({"type": "message_start", "message": {"usage": {"input_tokens": 7, "output_tokens": 1}}}),
        json!({"type": "ping"}),
        json!({"type": "vendor_note", "anything": [1, 2]}),
        start(0, &json!({"type": "text", "text": "by "})),
        delta(0, &json!({"type": "citations_delta", "citation": {}})),
        delta(0, &json!({"type": "text_delta", "text": "hand"})),
        json!({"type": "content_block_stop", "index": 0}),
        start(1, &json!({"type": "future_block", "big": 9_007_199_254_740_993_u64})),
        delta(1, &json!({"type": "future_delta"})),
        stop("end_turn"),
        json!({"type": "message_stop"}),
    ];
    let deltas = run(&events).expect("an answer");
    let text: String = deltas
        .iter()
        .filter_map(|delta| match delta {
            Delta::Text(text) => Some(text.as_str()),
            _ => None,
        })
        .collect();
    let (reason, usage, native) = finish(&deltas);
    assert_eq!((text.as_str(), reason), ("by hand", FinishReason::Stop));
    assert_eq!((usage.input, usage.output), (Some(7), Some(5)));
    let blocks = native.expect("a block that only its maker knows").blocks;
    assert_eq!(
        blocks,
        r#"[{"type":"text","text":"by hand"},{"type":"future_block","big":9007199254740993}]"#
    );
}

#[test]
fn arguments_may_come_with_the_opening() {
    let whole = json!({"type": "tool_use", "id": "a", "name": "look", "input": {"n": 9_007_199_254_740_993_u64}});
    let deltas = run(&[start(0, &whole), stop("tool_use")]).expect("an answer");
    assert_eq!(calls(&deltas), [("a", r#"{"n":9007199254740993}"#)]);
    let closed = json!({"type": "content_block_stop", "index": 0});
    let deltas = run(&[start(0, &tool("a")), closed, stop("tool_use")]).expect("an answer");
    assert_eq!(calls(&deltas), [("a", "{}")]);
    let deltas = run(&[start(0, &tool("a")), stop("max_tokens")]).expect("an answer");
    assert_eq!(calls(&deltas), [("a", "")], "cut before it had any");
    assert!(run(&[arguments(0, "{}"), stop("tool_use")]).is_err());
}

#[test]
fn blank_text_beside_reasoning_is_not_sent_back() {
    let events = [
        start(0, &json!({"type": "thinking", "thinking": "", "signature": ""})),
        delta(0, &json!({"type": "thinking_delta", "thinking": "hm"})),
        delta(0, &json!({"type": "signature_delta", "signature": "s"})),
        start(1, &json!({"type": "text", "text": "\n\n"})),
        start(2, &tool("a")),
        stop("tool_use"),
    ];
    let native = finish(&run(&events).expect("an answer")).2.expect("reasoning");
    assert_eq!(
        native.blocks,
        r#"[{"type":"thinking","thinking":"hm","signature":"s"},{"type":"tool_use","id":"a","name":"look","input":{}}]"#
    );
}

#[test]
fn an_answer_ends_with_a_reason_or_not_at_all() {
    let text = start(0, &json!({"type": "text", "text": "x"}));
    assert_eq!(run(std::slice::from_ref(&text)), Err(ModelError::BrokenOff));
    let done = json!({"type": "message_stop"});
    assert_eq!(
        finish(&run(&[text, done.clone()]).expect("an answer")).0,
        FinishReason::Stop
    );
    assert_eq!(run(&[done]), Err(ModelError::BrokenOff));
    for (reason, expected) in [
        ("stop_sequence", FinishReason::Stop),
        ("refusal", FinishReason::Filtered),
        ("model_context_window_exceeded", FinishReason::Length),
        ("pause_turn", FinishReason::Other),
    ] {
        assert_eq!(finish(&run(&[stop(reason)]).expect("an answer")).0, expected);
    }
}

#[test]
fn everything_is_bounded() {
    let mut many: Vec<Value> = (0..=64).map(|index| start(index, &tool("a"))).collect();
    many.push(stop("tool_use"));
    assert!(matches!(run(&many), Err(ModelError::TooLarge { .. })));
    let long = "x".repeat(ARGUMENTS_LIMIT);
    let events = [start(0, &tool("a")), arguments(0, &long), arguments(0, "x")];
    assert!(matches!(run(&events), Err(ModelError::TooLarge { .. })));
    let thinking = start(0, &json!({"type": "thinking", "thinking": ""}));
    let piece = delta(0, &json!({"type": "thinking_delta", "thinking": "x".repeat(3 << 20)}));
    let events = [thinking, piece.clone(), piece.clone(), piece];
    assert!(matches!(
        run(&events),
        Err(ModelError::TooLarge {
            what: "the reasoning",
            ..
        })
    ));
}
