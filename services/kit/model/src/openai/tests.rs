//! The provider against a scripted server over real HTTP.

use steward_testkit::{ModelServer, Reply as Scripted, ScriptedCall};

use super::*;
use crate::message::ToolChoice;
use crate::prefix::extends_all;
use crate::provider::{FinishReason, Reply, collect};
use crate::usage::Usage;

fn request(messages: Vec<Message>) -> ModelRequest {
    ModelRequest {
        model: "scripted".to_owned(),
        system: "You help.".into(),
        tools_json: r#"[{"name":"look","description":"","input_schema":{"type":"object"}}]"#.into(),
        messages,
        tool_choice: ToolChoice::Auto,
        max_output_tokens: None,
    }
}

fn provider(server: &ModelServer) -> OpenAiProvider {
    OpenAiProvider::new(OpenAiConfig::new(server.base_url(), Some(Secret::new("hush-hush")))).expect("a provider")
}

async fn ask(server: &ModelServer, messages: Vec<Message>) -> Result<Reply, ModelError> {
    collect(provider(server).stream(request(messages)).await?, |_| {}).await
}

#[tokio::test]
async fn a_streamed_answer_arrives_whole_however_it_is_cut() {
    for piece in [1, 2, 7, 4096] {
        let script = Scripted::text_and_calls(
            "Grüße, 世界",
            [
                ScriptedCall::new("a", "look", r#"{"n":9007199254740993}"#),
                ScriptedCall::new("b", "look", "{}"),
            ],
        );
        let server = ModelServer::with_replies([script.usage(20, 16, 4).in_pieces(piece)]).await;
        let reply = ask(&server, vec![Message::user("hi")]).await.expect("an answer");
        assert_eq!(reply.content, "Grüße, 世界");
        assert_eq!(reply.tool_calls[0].arguments, r#"{"n":9007199254740993}"#);
        assert_eq!(reply.tool_calls[1].id, "b");
        assert_eq!(reply.finish, FinishReason::ToolCalls);
        let usage = Usage {
            input: Some(20),
            cached_input: Some(16),
            output: Some(4),
            ..Usage::default()
        };
        assert_eq!(reply.usage, usage);
    }
}

#[tokio::test]
async fn the_key_is_sent_and_each_request_extends_the_one_before() {
    let server = ModelServer::scripted(|_| Scripted::text("ok")).await;
    let mut messages = vec![Message::user("one")];
    for next in ["two", "three"] {
        let reply = ask(&server, messages.clone()).await.expect("an answer");
        messages.push(Message::assistant(reply.content));
        messages.push(Message::user(next));
    }
    assert_eq!(server.requests()[0].header("authorization"), Some("Bearer hush-hush"));
    assert_eq!(extends_all(&server.bodies()), Ok(()));
}

#[tokio::test]
async fn a_broken_stream_is_an_error_and_its_half_call_is_not_a_call() {
    let half_text = Scripted::text("half a sentence that breaks off").cut_after(400);
    let half_call = Scripted::call("look", r#"{"a":"a long argument here"}"#).cut_after(520);
    let server = ModelServer::with_replies([Scripted::dropped(), half_text, half_call]).await;
    let error = ask(&server, vec![Message::user("hi")]).await.expect_err("dropped");
    assert!(matches!(error, ModelError::Unreachable { .. }));
    for _ in 0..2 {
        let mut calls = 0;
        let stream = provider(&server)
            .stream(request(vec![Message::user("hi")]))
            .await
            .expect("it begins");
        let outcome = collect(stream, |delta| calls += u32::from(matches!(delta, Delta::ToolCall(_)))).await;
        assert_eq!((outcome, calls), (Err(ModelError::BrokenOff), 0));
    }
}

#[tokio::test]
async fn a_missing_done_is_fine_and_an_empty_stream_is_not() {
    let empty = Scripted::garbage("");
    let server = ModelServer::with_replies([
        Scripted::text("fine").without_done(),
        empty,
        Scripted::garbage("data: <\n\n"),
    ])
    .await;
    assert_eq!(
        ask(&server, vec![Message::user("hi")])
            .await
            .expect("an answer")
            .content,
        "fine"
    );
    assert_eq!(
        ask(&server, vec![Message::user("hi")]).await,
        Err(ModelError::BrokenOff)
    );
    let garbage = ask(&server, vec![Message::user("hi")]).await.expect_err("garbage");
    assert!(matches!(garbage, ModelError::Unreadable { .. }));
}

#[tokio::test]
async fn errors_keep_class_and_retry_after_and_lose_the_key() {
    let limited = Scripted::error(429, "slow down").header("retry-after", "2");
    let refused = Scripted::error(401, r#"{"error":{"message":"Incorrect API key provided: hush-hush"}}"#);
    let server = ModelServer::with_replies([limited, refused]).await;
    let limited = ask(&server, vec![Message::user("hi")]).await.expect_err("limited");
    let wait = Some(Duration::from_secs(2));
    assert_eq!(
        limited,
        ModelError::RateLimited {
            message: "slow down".to_owned(),
            retry_after: wait
        }
    );
    let refused = ask(&server, vec![Message::user("hi")]).await.expect_err("refused");
    assert!(matches!(refused, ModelError::CredentialRefused { status: 401, .. }));
    assert!(!format!("{refused} {refused:?}").contains("hush"));
}

#[tokio::test]
async fn silence_ends_by_the_read_timeout() {
    let server = ModelServer::with_replies([Scripted::text("late").hang_after(10)]).await;
    let mut config = OpenAiConfig::new(server.base_url(), None);
    config.read_timeout = Duration::from_millis(50);
    let provider = OpenAiProvider::new(config).expect("a provider");
    // On a busy machine even the headers may be late; it is the same silence.
    let outcome = match provider.stream(request(vec![Message::user("hi")])).await {
        Ok(stream) => collect(stream, |_| {}).await,
        Err(error) => Err(error),
    };
    assert_eq!(outcome, Err(ModelError::TimedOut));
}

#[tokio::test]
async fn an_answer_in_one_document_is_read_too() {
    let document = r#"{"choices":[{"message":{"role":"assistant","content":"whole"},"finish_reason":"stop"}],"usage":{"prompt_tokens":3}}"#;
    let reply = Scripted::garbage(document).header("content-type", "application/json; charset=utf-8");
    let server = ModelServer::with_replies([reply]).await;
    let reply = ask(&server, vec![Message::user("hi")]).await.expect("an answer");
    assert_eq!((reply.content.as_str(), reply.usage.input), ("whole", Some(3)));
}

#[test]
fn the_endpoint_follows_the_base_url() {
    let of = |base: &str| endpoint(base).map(|url| url.to_string());
    assert_eq!(
        of("https://host/v1/").as_deref(),
        Ok("https://host/v1/chat/completions")
    );
    assert_eq!(
        of("http://host:1/v1/chat/completions").as_deref(),
        Ok("http://host:1/v1/chat/completions")
    );
    assert_eq!(
        of("http://host/v1?api-version=1").as_deref(),
        Ok("http://host/v1/chat/completions?api-version=1")
    );
    assert!(of("file:///x").is_err() && of("nonsense").is_err());
}
