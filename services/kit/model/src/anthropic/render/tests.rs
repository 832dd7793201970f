//! The exact bytes, the places of the markers, and that a longer conversation begins with the shorter one.

use proptest::prelude::*;

use super::*;
use crate::native::NativeBlocks;
use crate::prefix::{PrefixState, PrefixVerdict, check};

fn call(id: &str, arguments: &str) -> ToolCall {
    ToolCall {
        id: id.to_owned(),
        name: "look".to_owned(),
        arguments: arguments.to_owned(),
    }
}

fn calling(content: &str, calls: &[ToolCall]) -> Message {
    Message::Assistant {
        content: content.to_owned(),
        tool_calls: calls.to_vec(),
    }
}

fn result(id: &str, content: &str) -> Message {
    Message::Tool {
        call_id: id.to_owned(),
        name: "look".to_owned(),
        content: content.to_owned(),
    }
}

fn request(messages: &[Message]) -> ModelRequest {
    ModelRequest {
        model: "m".to_owned(),
        system: "stable\n\nrest".into(),
        tools_json: r#"[{"name":"look","description":"Looks.","input_schema":{"type":"object","n":9007199254740993}}]"#
            .into(),
        messages: messages.to_vec(),
        tool_choice: ToolChoice::Auto,
        max_output_tokens: Some(9),
    }
}

fn tiered() -> Continuation {
    Continuation {
        stable_len: Some("stable".len()),
        ..Continuation::default()
    }
}

fn rendered(messages: &[Message], continuation: &Continuation) -> Rendered {
    render(&request(messages), continuation, &AnthropicOptions::default()).expect("renders")
}

fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).expect("UTF-8")
}

#[test]
fn the_body_is_the_protocol_with_four_markers() {
    let messages = [
        Message::user("hi"),
        calling("I look.", &[call("a", r#"{ "n":9007199254740993 }"#), call("b", "")]),
        result("a", "seen"),
        result("b", ""),
        Message::user("hurry"),
    ];
    let expected = concat!(
        r#"{"model":"m","max_tokens":9,"stream":true,"#,
        r#""tools":[{"name":"look","description":"Looks.","input_schema":{"type":"object","n":9007199254740993}}],"#,
        r#""system":[{"type":"text","text":"stable"<>},{"type":"text","text":"\n\nrest"<>}],"#,
        r#""messages":[{"role":"user","content":[{"type":"text","text":"hi"}]},"#,
        r#"{"role":"assistant","content":[{"type":"text","text":"I look."},"#,
        r#"{"type":"tool_use","id":"a","name":"look","input":{ "n":9007199254740993 }},"#,
        r#"{"type":"tool_use","id":"b","name":"look","input":{}<>}]},"#,
        r#"{"role":"user","content":[{"type":"tool_result","tool_use_id":"a","content":"seen"},"#,
        r#"{"type":"tool_result","tool_use_id":"b"},{"type":"text","text":"hurry"<>}]}]}"#,
    );
    let rendered = rendered(&messages, &tiered());
    assert_eq!(text(&rendered.body), expected.replace("<>", MARKER_5M));
    assert_eq!(text(rendered.plain()), expected.replace("<>", ""));
    assert!(text(rendered.tools()).starts_with("[{\"name\"") && text(rendered.tools()).ends_with("}]"));
    assert!(text(rendered.system()).ends_with("rest\"}]"));
    assert!(text(rendered.messages()).ends_with("{\"type\":\"text\",\"text\":\"hurry\"}"));
}

#[test]
fn without_tiers_the_tools_take_the_first_marker() {
    let one = |continuation: &Continuation| text(&rendered(&[Message::user("hi")], continuation).body).to_owned();
    for stable_len in [None, Some(0), Some(9_999), Some("stable\n\nrest".len())] {
        let body = one(&Continuation {
            stable_len,
            ..Continuation::default()
        });
        assert!(body.contains(&format!("9007199254740993}}{MARKER_5M}}}],")), "{body}");
        assert!(body.contains(&format!("\"stable\\n\\nrest\"{MARKER_5M}}}],")), "{body}");
        assert_eq!(body.matches("cache_control").count(), 3);
    }
    let options = AnthropicOptions {
        cache: None,
        ..AnthropicOptions::default()
    };
    let bare = render(&request(&[Message::user("hi")]), &tiered(), &options).expect("renders");
    assert_eq!(text(&bare.body), text(bare.plain()));
    let nothing = ModelRequest {
        system: " ".into(),
        tools_json: "[]".into(),
        tool_choice: ToolChoice::Required,
        ..request(&[])
    };
    let nothing = render(&nothing, &tiered(), &AnthropicOptions::default()).expect("renders");
    assert_eq!(
        text(&nothing.body),
        r#"{"model":"m","max_tokens":9,"stream":true,"messages":[]}"#
    );
}

#[test]
fn reasoning_is_asked_for_as_chosen() {
    let head = |thinking, choice: &ToolChoice, max_tokens| {
        let options = AnthropicOptions {
            thinking,
            ..AnthropicOptions::default()
        };
        let request = ModelRequest {
            tool_choice: choice.clone(),
            max_output_tokens: max_tokens,
            ..request(&[Message::user("hi")])
        };
        let rendered = render(&request, &tiered(), &options).expect("renders");
        let body: serde_json::Value = serde_json::from_slice(&rendered.body).expect("JSON");
        body["thinking"].to_string()
    };
    let auto = ToolChoice::Auto;
    assert_eq!(head(Thinking::Unset, &auto, None), "null");
    assert_eq!(head(Thinking::Off, &auto, None), r#"{"type":"disabled"}"#);
    assert_eq!(head(Thinking::Adaptive, &auto, None), r#"{"type":"adaptive"}"#);
    assert_eq!(head(Thinking::Adaptive, &ToolChoice::Required, None), "null");
    let budget = Thinking::Budget(5_000);
    assert_eq!(head(budget, &auto, None), r#"{"type":"enabled","budget_tokens":5000}"#);
    assert_eq!(
        head(budget, &auto, Some(3_000)),
        r#"{"type":"enabled","budget_tokens":2999}"#
    );
    assert_eq!(head(budget, &auto, Some(1_000)), "null");
}

#[test]
fn what_the_protocol_does_not_take_is_put_into_a_form_that_it_takes() {
    let odd = ToolCall {
        id: "functions.look:0".to_owned(),
        name: "no such/tool".to_owned(),
        arguments: "{\"cut".to_owned(),
    };
    let messages = [
        Message::assistant("I begin."),
        Message::user(" "),
        calling("", &[odd]),
        result("functions.look:0", "no"),
    ];
    let rendered = rendered(&messages, &tiered());
    let body: serde_json::Value = serde_json::from_slice(&rendered.body).expect("JSON");
    let messages = &body["messages"];
    assert_eq!(
        (&messages[0]["role"], &messages[1]["role"]),
        (&"user".into(), &"assistant".into())
    );
    assert_eq!(messages[2]["content"][0]["text"], NO_WORDS);
    let called = &messages[3]["content"][0];
    assert_eq!(called["name"], "no_such_tool");
    assert_eq!(called["input"]["unreadable"], "{\"cut");
    assert_eq!(called["id"], messages[4]["content"][0]["tool_use_id"]);
    let id = called["id"].as_str().expect("an id");
    assert!(id.starts_with("call_") && !id.contains([':', '.']));
}

#[test]
fn blocks_that_do_not_say_what_the_message_says_are_left_out() {
    let blocks = r#"[{"type":"thinking","thinking":"t","signature":"s"},{"type":"text","text":"the code is 1234"},{"type":"tool_use","id":"a","name":"look","input":{"n":1}}]"#;
    let kept = Continuation {
        natives: [(
            1,
            NativeBlocks {
                provider: "anthropic".to_owned(),
                model: "m".to_owned(),
                blocks: blocks.to_owned(),
            },
        )]
        .into(),
        ..Continuation::default()
    };
    let goes = |content: &str, calls: &[ToolCall]| {
        let messages = [Message::user("hi"), calling(content, calls), Message::user("go on")];
        text(&rendered(&messages, &kept).body).contains("signature")
    };
    assert!(goes("the code is 1234", &[call("a", r#"{"n":1}"#)]));
    assert!(!goes("the code is [erased]", &[call("a", r#"{"n":1}"#)]));
    assert!(!goes("the code is 1234", &[call("a", r#"{"n":2}"#)]));
    assert!(!goes("the code is 1234", &[call("b", r#"{"n":1}"#)]));
    assert!(!goes("the code is 1234", &[]));
}

#[test]
fn no_marker_stands_in_reasoning() {
    let native = NativeBlocks {
        provider: "anthropic".to_owned(),
        model: "m".to_owned(),
        blocks: r#"[{"type":"text","text":"so"},{"type":"thinking","thinking":"t","signature":"s"}]"#.to_owned(),
    };
    let kept = Continuation {
        natives: [(1, native)].into(),
        ..Continuation::default()
    };
    let body = rendered(&[Message::user("hi"), calling("so", &[]), Message::user("on")], &kept);
    assert!(text(&body.body).contains(&format!("\"so\"{MARKER_5M}}},{{\"type\":\"thinking\"")));
}

fn any_message() -> impl Strategy<Value = Message> {
    let text = prop_oneof![
        Just(String::new()),
        "[a-c \"\\\\{}\\[\\]é]{0,8}",
        Just(MARKER_5M.to_owned())
    ];
    (0..4, text).prop_map(|(kind, text)| match kind {
        0 => Message::user(text),
        1 => Message::assistant(text),
        2 => calling(&text, &[call("a", "{}"), call("b.", &text)]),
        _ => result("a", &text),
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn a_longer_conversation_begins_with_the_shorter_one(
        messages in proptest::collection::vec(any_message(), 0..12),
        cut in 0..12_usize,
    ) {
        let cut = cut.min(messages.len());
        let shorter = rendered(&messages[..cut], &tiered());
        let longer = rendered(&messages, &tiered());
        prop_assert!(longer.messages().starts_with(shorter.messages()));
        prop_assert_eq!(check(Some(&PrefixState::of(&shorter)), &longer), PrefixVerdict::Extends);
        let body: serde_json::Value = serde_json::from_slice(&longer.body).expect("the marked body is JSON");
        prop_assert!(longer.body.len() - longer.plain().len() <= 4 * MARKER_5M.len());
        let roles: Vec<&str> = body["messages"].as_array().expect("messages").iter().map(|message| message["role"].as_str().expect("a role")).collect();
        prop_assert!(roles.windows(2).all(|pair| pair[0] != pair[1]) && roles.first().is_none_or(|role| *role == "user"));
    }
}
