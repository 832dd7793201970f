//! What is particular to the messages protocol over HTTP; the rest is in the suite that all providers pass.

use steward_testkit::{ModelServer, Reply as Scripted, ScriptedBlock, ScriptedCall};

use super::*;
use crate::message::{Message, ToolChoice};
use crate::native::NativeBlocks;
use crate::openai::{OpenAiConfig, OpenAiProvider};
use crate::prefix::extends_all;
use crate::provider::{Answer, collect_answer};

fn request(messages: &[Message]) -> ModelRequest {
    ModelRequest {
        model: "scripted".to_owned(),
        system: "You help.\n\nToday is Monday.".into(),
        tools_json: r#"[{"name":"look","description":"","input_schema":{"type":"object"}}]"#.into(),
        messages: messages.to_vec(),
        tool_choice: ToolChoice::Auto,
        max_output_tokens: None,
    }
}

fn provider(server: &ModelServer, change: impl FnOnce(&mut AnthropicOptions)) -> AnthropicProvider {
    let mut config = AnthropicConfig::new(server.base_url(), None);
    change(&mut config.options);
    AnthropicProvider::new(config).expect("a provider")
}

async fn ask(provider: &impl Provider, messages: &[Message], kept: &Continuation) -> Result<Answer, ModelError> {
    collect_answer(provider.stream_with(request(messages), kept.clone()).await?, |_| {}).await
}

fn thought(text: &str, signature: &str) -> ScriptedBlock {
    ScriptedBlock::Thinking {
        text: text.to_owned(),
        signature: signature.to_owned(),
    }
}

/// Reasoning, call, reasoning, call: an order that text and calls alone cannot give.
fn interleaved() -> Scripted {
    let call = |id: &str| ScriptedBlock::Call(ScriptedCall::new(id, "look", format!("{{\"at\": \"{id}\"}}")));
    Scripted::blocks([
        thought("First \"a\",\nthen b — 世.", "sig/1=="),
        call("a"),
        ScriptedBlock::RedactedThinking("opaque+data==".to_owned()),
        thought("", "sig/2=="),
        call("b"),
    ])
}

/// A history that ends with the answered calls of an interleaved answer.
fn history(answer: &Answer) -> Vec<Message> {
    let result = |id: &str| Message::Tool {
        call_id: id.to_owned(),
        name: "look".to_owned(),
        content: format!("seen {id}"),
    };
    let called = Message::Assistant {
        content: answer.reply.content.clone(),
        tool_calls: answer.reply.tool_calls.clone(),
    };
    vec![Message::user("hi"), called, result("a"), result("b")]
}

fn kept(native: NativeBlocks) -> Continuation {
    Continuation {
        stable_len: Some("You help.".len()),
        natives: [(1, native)].into(),
    }
}

#[tokio::test]
async fn reasoning_goes_back_as_it_came_and_to_nobody_else() {
    let server = ModelServer::with_replies([
        interleaved(),
        Scripted::text("x"),
        Scripted::text("y"),
        Scripted::text("z"),
    ])
    .await;
    let ours = provider(&server, |_| {});
    let answer = ask(&ours, &[Message::user("hi")], &kept_nothing())
        .await
        .expect("calls");
    let native = answer.native.clone().expect("there is more than text and calls");
    let blocks = concat!(
        r#"[{"type":"thinking","thinking":"First \"a\",\nthen b — 世.","signature":"sig/1=="},"#,
        r#"{"type":"tool_use","id":"a","name":"look","input":{"at": "a"}},"#,
        r#"{"type":"redacted_thinking","data":"opaque+data=="},"#,
        r#"{"type":"thinking","thinking":"","signature":"sig/2=="},"#,
        r#"{"type":"tool_use","id":"b","name":"look","input":{"at": "b"}}]"#,
    );
    assert_eq!(
        (native.blocks.as_str(), native.provider.as_str()),
        (blocks, "anthropic")
    );

    // The store holds it as text: a restart.
    let stored = serde_json::to_string(&native).expect("a text");
    let native: NativeBlocks = serde_json::from_str(&stored).expect("the same");
    let messages = history(&answer);
    ask(&ours, &messages, &kept(native.clone())).await.expect("an answer");
    let sent = crate::anthropic::render::without_markers(&server.requests()[1].text());
    assert!(
        sent.contains(&format!(r#"{{"role":"assistant","content":{blocks}}}"#)),
        "{sent}"
    );

    // Another vendor gets text and calls, by either protocol, and the stored original is as it was.
    let foreign = provider(&server, |options| "other".clone_into(&mut options.vendor));
    ask(&foreign, &messages, &kept(native.clone()))
        .await
        .expect("an answer");
    let open = OpenAiProvider::new(OpenAiConfig::new(server.base_url(), None)).expect("a provider");
    ask(&open, &messages, &kept(native.clone())).await.expect("an answer");
    for request in &server.requests()[2..] {
        assert!(!request.text().contains("thinking") && !request.text().contains("sig/"));
        assert_eq!(request.tool_results().len(), 2);
    }
    server.push(Scripted::text("back"));
    ask(&ours, &messages, &kept(native)).await.expect("an answer");
    assert_eq!(server.bodies()[4], server.bodies()[1]);
}

fn kept_nothing() -> Continuation {
    Continuation {
        stable_len: Some("You help.".len()),
        ..Continuation::default()
    }
}

#[tokio::test]
async fn a_conversation_with_reasoning_only_ever_extends() {
    let server = ModelServer::scripted(|request| match request.index % 2 {
        0 => Scripted::blocks([
            thought("I should look.", "s1"),
            ScriptedBlock::Text("I look.".to_owned()),
            ScriptedBlock::Call(ScriptedCall::new("", "look", "{}")),
        ]),
        _ => Scripted::blocks([thought("Clear.", "s2"), ScriptedBlock::Text("Seen.".to_owned())]),
    })
    .await;
    let provider = provider(&server, |options| options.cache = Some(CacheTtl::OneHour));
    let (mut messages, mut kept) = (Vec::new(), kept_nothing());
    for turn in 0..3 {
        messages.push(Message::user(format!("question {turn}")));
        for _ in 0..2 {
            let answer = ask(&provider, &messages, &kept).await.expect("an answer");
            kept.natives
                .extend(answer.native.map(|native| (messages.len(), native)));
            let calls = answer.reply.tool_calls.clone();
            messages.push(Message::Assistant {
                content: answer.reply.content,
                tool_calls: answer.reply.tool_calls,
            });
            messages.extend(calls.into_iter().map(|call| Message::Tool {
                call_id: call.id,
                name: call.name,
                content: "a thing".to_owned(),
            }));
        }
    }
    assert_eq!(kept.natives.len(), 6);
    assert_eq!(extends_all(&server.bodies()), Ok(()));
    for request in server.requests() {
        let markers = request
            .text()
            .matches(r#""cache_control":{"type":"ephemeral","ttl":"1h"}"#)
            .count();
        assert!((3..=4).contains(&markers), "{markers}");
    }
}

#[tokio::test]
async fn reasoning_that_is_refused_is_left_out_once() {
    let refused =
        "messages.1.content.0: Invalid `signature` in `thinking` block. The block is bound to a different conversation";
    let refusal = || Scripted::failure(400, "invalid_request_error", refused);
    let server =
        ModelServer::with_replies([interleaved(), refusal(), Scripted::text("ok"), refusal(), refusal()]).await;
    let provider = provider(&server, |_| {});
    let answer = ask(&provider, &[Message::user("hi")], &kept_nothing())
        .await
        .expect("calls");
    let kept = kept(answer.native.clone().expect("blocks"));
    let messages = history(&answer);
    assert_eq!(
        ask(&provider, &messages, &kept).await.expect("an answer").reply.content,
        "ok"
    );
    let sent = |index: usize| server.requests()[index].text();
    assert!(sent(1).contains("sig/1") && !sent(2).contains("sig/1"));
    let error = ask(&provider, &messages, &kept).await.expect_err("twice is an error");
    assert!(matches!(error, ModelError::Rejected { status: 400, .. }));
    assert_eq!(server.requests().len(), 5);
}

#[tokio::test]
async fn version_and_betas_are_sent() {
    let server = ModelServer::with_replies([Scripted::text("ok")]).await;
    let provider = provider(&server, |options| {
        options.betas = vec!["one-2026".to_owned(), "two-2026".to_owned()];
    });
    let answer = ask(&provider, &[Message::user("hi")], &kept_nothing())
        .await
        .expect("an answer");
    assert_eq!(answer.native, None, "text alone needs no second form");
    let request = &server.requests()[0];
    assert_eq!(request.path, "/v1/messages");
    assert_eq!(request.header("anthropic-version"), Some("2023-06-01"));
    assert_eq!(request.header("anthropic-beta"), Some("one-2026,two-2026"));
}

#[test]
fn the_endpoint_follows_the_base_url() {
    let of = |base: &str| messages_endpoint(base).map(|url| url.to_string());
    for base in [
        "https://host",
        "https://host/",
        "https://host/v1",
        "https://host/v1/messages",
    ] {
        assert_eq!(of(base).as_deref(), Ok("https://host/v1/messages"), "{base}");
    }
    assert_eq!(
        of("https://host/anthropic").as_deref(),
        Ok("https://host/anthropic/v1/messages")
    );
    assert!(of("file:///x").is_err());
}
