//! The whole loop against a model that speaks the Anthropic messages protocol: reasoning goes back as it came, cache markers
//! stand where they belong and break no prefix (`P-4`, `P-5`), also after a restart.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test fails by panicking"
)]

mod common;

use steward_model::prefix::extends_all;
use steward_proto::learning::v1::ReviewState;
use steward_testkit::{ModelServer, RecordedRequest, Reply, ScriptedBlock, ScriptedCall};
use steward_tests::person::{client_tool, fresh_id, result};
use steward_tests::{Shape, Stack, StackOptions, script};

const REASONING: &str = r#"{"type":"thinking","thinking":"Look first.","signature":"sig/1=="}"#;

fn messages_options(options: StackOptions) -> StackOptions {
    options
        .set("AGENT__MODEL__PROVIDER", "anthropic")
        .set("AGENT__MODEL__API_KEY", "sk-of-the-test")
        .set("AGENT__MODEL__OTHERS", "[\"scripted-too\"]")
        .set("AGENT__MODEL__ANTHROPIC__THINKING", "adaptive")
        .set("AGENT__MODEL__ANTHROPIC__CACHE", "1h")
}

/// Reasons, looks at the client, and answers; reviews as [`script::learner`] does.
fn thinker(request: &RecordedRequest) -> Reply {
    let answered = script::is_review(request) || !script::since_user(request).is_empty();
    if answered || !script::asked(request).contains("Remember: ") {
        return script::learner(request);
    }
    Reply::blocks([
        ScriptedBlock::Thinking {
            text: "Look first.".to_owned(),
            signature: "sig/1==".to_owned(),
        },
        ScriptedBlock::Call(ScriptedCall::new("toolu_1", "look", r#"{"what": "the window"}"#)),
    ])
}

fn conversation(model: &ModelServer) -> Vec<RecordedRequest> {
    let requests = model.requests().into_iter();
    requests.filter(|request| !script::is_review(request)).collect()
}

both_shapes!(the_loop_runs_over_the_messages_protocol);

async fn the_loop_runs_over_the_messages_protocol(shape: Shape) {
    let model = ModelServer::scripted(thinker).await;
    let options = messages_options(common::reviews_after_each_turn(&model));
    let mut stack = Stack::start("messages", shape, options);
    let owner = stack.owner().await;
    let session = owner.session(vec![client_tool("look")]).await;
    let segment = owner.say(&session, "Remember: the gate opens at dawn").await;
    let calls = segment.calls().to_vec();
    let turn = owner.answer_calls(&session, vec![result(&calls[0], "shut")]).await;
    assert_eq!(turn.answer(), "You said: Remember: the gate opens at dawn");
    let reviews = owner.reviews_ended(1).await;
    assert_eq!(reviews[0].state(), ReviewState::Succeeded, "{:?}", reviews[0]);
    assert_eq!(owner.notes().await, ["the gate opens at dawn"]);

    stack.kill("agent-orchestrator");
    stack.start_again("agent-orchestrator");
    let owner = stack.owner().await;
    owner.say(&session, "and now?").await;

    let read = owner.read_session(&session).await;
    let sent = conversation(&model);
    assert_eq!(sent.len(), 3);
    let bodies: Vec<_> = sent.iter().map(|request| request.body.clone()).collect();
    extends_all(&bodies).unwrap();
    assert_eq!((read.planned_prefix_breaks, read.unplanned_prefix_breaks), (0, 0));
    for request in &sent {
        assert_eq!(request.header("x-api-key"), Some("sk-of-the-test"));
        assert_eq!(request.json()["thinking"]["type"], "adaptive");
        check_markers(request, &read.system_prompt);
    }
    for request in &sent[1..] {
        assert!(request.text().contains(REASONING), "{}", request.text());
    }
    for (name, process) in stack.processes() {
        assert!(!process.log_text().contains("Look first."), "{name} logged reasoning");
    }
}

/// `P-5`: the end of tools and stable tier, the end of the system prompt, the last two messages.
fn check_markers(request: &RecordedRequest, system_prompt: &str) {
    let body = request.json();
    let marks = request
        .text()
        .matches(r#""cache_control":{"type":"ephemeral","ttl":"1h"}"#)
        .count();
    let system = body["system"].as_array().unwrap();
    assert_eq!(system.len(), 2);
    let tiers: String = system.iter().map(|block| block["text"].as_str().unwrap()).collect();
    assert_eq!(tiers, system_prompt);
    assert!(
        !system[0]["text"].as_str().unwrap().contains("Session began"),
        "the stable tier stands alone"
    );
    assert!(system.iter().all(|block| block["cache_control"].is_object()));
    let messages = body["messages"].as_array().unwrap();
    let marked: Vec<bool> = messages
        .iter()
        .map(|message| {
            let blocks = message["content"].as_array().unwrap();
            blocks.last().unwrap()["cache_control"].is_object()
        })
        .collect();
    let expected: Vec<bool> = (0..messages.len()).map(|at| at + 2 >= messages.len()).collect();
    assert_eq!(marked, expected);
    assert_eq!(marks, 2 + messages.len().min(2));
}

both_shapes!(reasoning_of_another_model_is_left_out);

async fn reasoning_of_another_model_is_left_out(shape: Shape) {
    let model = ModelServer::scripted(thinker).await;
    let stack = Stack::start("other-model", shape, messages_options(common::no_reviews(&model)));
    let owner = stack.owner().await;
    let session = owner.session(vec![client_tool("look")]).await;
    let segment = owner.say(&session, "Remember: one").await;
    let calls = segment.calls().to_vec();
    owner.answer_calls(&session, vec![result(&calls[0], "shut")]).await;
    owner.change_model(&session, "scripted-too", &fresh_id()).await.unwrap();
    owner.say(&session, "two").await;
    owner.change_model(&session, "scripted", &fresh_id()).await.unwrap();
    owner.say(&session, "three").await;

    let reasoned: Vec<bool> = conversation(&model)
        .iter()
        .map(|request| request.text().contains(REASONING))
        .collect();
    assert_eq!(reasoned, [false, true, false, true]);
    let read = owner.read_session(&session).await;
    assert_eq!((read.planned_prefix_breaks, read.unplanned_prefix_breaks), (2, 0));
}
