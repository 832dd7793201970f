//! The dialects of real servers, one test each.

use serde_json::json;

use super::*;

fn run(events: &[Value]) -> Result<Vec<Delta>, ModelError> {
    run_after(&[], events)
}

fn run_after(taken: &[&str], events: &[Value]) -> Result<Vec<Delta>, ModelError> {
    let taken = taken.iter().map(|id| (*id).to_owned()).collect();
    let (mut assembler, mut out) = (Assembler::new(CallIds::new(taken, 4), None), Vec::new());
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

fn pieces(pieces: &[Value]) -> Vec<(String, String, String)> {
    let mut events: Vec<Value> = pieces
        .iter()
        .map(|piece| json!({"choices": [{"delta": {"tool_calls": [piece]}}]}))
        .collect();
    events.push(json!({"choices": [{"delta": {}, "finish_reason": "tool_calls"}]}));
    let deltas = run(&events).expect("a whole answer");
    deltas
        .into_iter()
        .filter_map(|delta| match delta {
            Delta::ToolCall(call) => Some((call.id, call.name, call.arguments)),
            _ => None,
        })
        .collect()
}

fn call(id: &str, arguments: &str) -> (String, String, String) {
    (id.to_owned(), "read_note".to_owned(), arguments.to_owned())
}

#[test]
fn three_calls_with_index_zero_and_ids_of_their_own_stay_three() {
    let piece = |id: &str| json!({"index": 0, "id": id, "function": {"name": "read_note", "arguments": format!("{{\"n\":\"{id}\"}}")}});
    let expected = ["a", "b", "c"].map(|id| call(id, &format!("{{\"n\":\"{id}\"}}")));
    assert_eq!(pieces(&["a", "b", "c"].map(piece)), expected);
}

#[test]
fn three_calls_without_ids_stay_three_and_get_ids() {
    let piece = |note: &str| json!({"index": 0, "function": {"name": "read_note", "arguments": format!("{{\"n\":\"{note}\"}}")}});
    let expected = [
        call("call_4_0", r#"{"n":"a"}"#),
        call("call_4_1", r#"{"n":"b"}"#),
        call("call_4_2", r#"{"n":"c"}"#),
    ];
    assert_eq!(pieces(&["a", "b", "c"].map(piece)), expected);
    let bare = |note: &str| json!({"function": {"name": "read_note", "arguments": format!("{{\"n\":\"{note}\"}}")}});
    assert_eq!(pieces(&["a", "b", "c"].map(bare)), expected);
}

#[test]
fn interleaved_pieces_find_their_calls() {
    let start =
        |index: u64, id: &str| json!({"index": index, "id": id, "function": {"name": "read_note", "arguments": ""}});
    let more = |index: u64, text: &str| json!({"index": index, "function": {"arguments": text}});
    let by_index = [
        start(1, "b"),
        start(0, "a"),
        more(1, "{\"n\""),
        more(0, "{\"n\""),
        more(0, ":1}"),
        more(1, ":2}"),
    ];
    assert_eq!(pieces(&by_index), [call("a", r#"{"n":1}"#), call("b", r#"{"n":2}"#)]);
    let with_id = |id: &str, text: &str| json!({"index": 0, "id": id, "function": {"arguments": text}});
    let by_id = [
        start(0, "a"),
        start(0, "b"),
        with_id("a", "{\"n\""),
        with_id("b", "{\"n\""),
        with_id("a", ":1}"),
        with_id("b", ":2}"),
    ];
    assert_eq!(pieces(&by_id), [call("a", r#"{"n":1}"#), call("b", r#"{"n":2}"#)]);
}

#[test]
fn a_name_repeated_on_each_piece_is_one_name_and_a_name_in_pieces_is_joined() {
    let repeated = |text: &str| json!({"index": 0, "id": "a", "function": {"name": "read_note", "arguments": text}});
    assert_eq!(
        pieces(&[repeated(""), repeated("{\"n\":"), repeated("1}"), repeated("")]),
        [call("a", r#"{"n":1}"#)]
    );
    let named = |name: &str| json!({"index": 0, "id": "a", "function": {"name": name}});
    let rest = json!({"index": 0, "function": {"arguments": "{}"}});
    assert_eq!(pieces(&[named("read_"), named("note"), rest]), [call("a", "{}")]);
}

#[test]
fn ids_are_unique_in_the_conversation() {
    let piece = |index: u64| json!({"index": index, "id": "x", "function": {"name": "read_note", "arguments": "{}"}});
    let events = [json!({"choices": [{"delta": {"tool_calls": [piece(0), piece(1)]}, "finish_reason": "tool_calls"}]})];
    let deltas = run_after(&["x"], &events).expect("a whole answer");
    let ids: Vec<&str> = deltas
        .iter()
        .filter_map(|delta| match delta {
            Delta::ToolCall(call) => Some(call.id.as_str()),
            _ => None,
        })
        .collect();
    assert_eq!(ids, ["x_4", "x_5"]);
}

#[test]
fn text_usage_and_finish_come_through() {
    let events = [
        json!({"choices": [{"delta": {"role": "assistant", "content": "Hel"}}]}),
        json!({"choices": [{"delta": {"content": [{"type": "text", "text": "lo"}]}, "finish_reason": "length"}], "usage": null}),
        json!({"choices": [], "usage": {"prompt_tokens": 9, "completion_tokens": 1}}),
    ];
    let usage = Usage {
        input: Some(9),
        output: Some(1),
        ..Usage::default()
    };
    let expected = vec![
        Delta::Text("Hel".to_owned()),
        Delta::Text("lo".to_owned()),
        Delta::Finish {
            reason: FinishReason::Length,
            usage,
            native: None,
        },
    ];
    assert_eq!(run(&events), Ok(expected));
}

#[test]
fn an_answer_without_an_end_is_broken_off_and_an_error_inside_is_one() {
    let half = json!({"choices": [{"delta": {"content": "Hal"}}]});
    assert_eq!(run(std::slice::from_ref(&half)), Err(ModelError::BrokenOff));
    assert_eq!(run(&[]), Err(ModelError::BrokenOff));
    let error = run(&[half, json!({"error": {"message": "server is busy"}})]).expect_err("an error");
    assert!(matches!(error, ModelError::Overloaded { .. }));
}

#[test]
fn too_many_calls_and_endless_arguments_are_refused() {
    let many: Vec<Value> = (0..=CALLS_LIMIT)
        .map(|index| json!({"index": index, "function": {"name": "t"}}))
        .collect();
    let error = run(&[json!({"choices": [{"delta": {"tool_calls": many}}]})]).expect_err("too many");
    assert!(matches!(
        error,
        ModelError::TooLarge {
            what: "the list of calls",
            ..
        }
    ));
    let long = json!({"index": 0, "function": {"name": "t", "arguments": "x".repeat(ARGUMENTS_LIMIT + 1)}});
    assert!(run(&[json!({"choices": [{"delta": {"tool_calls": [long]}}]})]).is_err());
}
