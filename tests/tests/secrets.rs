//! D-12: a secret on its way through a turn. What a provider says of a refused key goes no further; what a tool needs reaches
//! it unchanged.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test fails by panicking"
)]

mod common;

use std::fmt::Write as _;
use std::path::Path;

use steward_proto::agent::v1 as agent;
use steward_testkit::{ModelServer, Reply, ScriptedCall};
use steward_tests::person::{client_tool, fresh_id, result};
use steward_tests::{Ended, Shape, Stack, script};

/// A made-up token of a known shape, put together here so that no scanner of sources takes it for one.
fn token() -> String {
    format!("sk-proj-{}", "Zq9xT4vLm2Rb7Wd1".repeat(3))
}

/// The files below `folder` that hold `text`.
fn files_with(folder: &Path, text: &str) -> Vec<String> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(files_with(&path, text));
        } else if let Ok(bytes) = std::fs::read(&path)
            && bytes.windows(text.len()).any(|window| window == text.as_bytes())
        {
            found.push(path.display().to_string());
        }
    }
    found
}

both_shapes!(a_provider_that_repeats_a_refused_key_is_quoted_nowhere);

/// D-12 (2): the stored error, the logs and the reply hold no token.
async fn a_provider_that_repeats_a_refused_key_is_quoted_nowhere(shape: Shape) {
    let model = ModelServer::scripted(|_| {
        Reply::failure(
            401,
            "invalid_request_error",
            &format!("Incorrect API key provided: {}", token()),
        )
    })
    .await;
    let options = common::no_reviews(&model).env("STEWARD_LOG", "debug");
    let stack = Stack::start("refused-key", shape, options);
    let owner = stack.owner().await;
    let session = owner.session(Vec::new()).await;
    let turn = fresh_id();
    let segment = owner.say_as(&session, "hello", &turn).await.unwrap();
    let Ended::Failed(failed) = &segment.ended else {
        panic!("a refused key is no answer: {segment:?}")
    };
    assert_eq!((failed.reason.as_str(), failed.retryable), ("MODEL_REFUSED", false));
    assert!(!format!("{segment:?}").contains(&token()));
    // From the store, as another process would tell it.
    let request = agent::WatchTurnRequest {
        session: session.clone(),
        turn,
        after_event: 0,
    };
    let mut stream = owner.client.agent.watch_turn(request).await.unwrap();
    let mut watched = String::new();
    while let Some(item) = stream.message().await.unwrap() {
        write!(watched, "{item:?}").unwrap();
    }
    assert!(
        watched.contains("MODEL_REFUSED") && !watched.contains(&token()),
        "{watched}"
    );
    for (name, process) in stack.processes() {
        assert!(!process.log_text().contains(&token()), "the log of {name}");
    }
    assert_eq!(files_with(&stack.data(), &token()), Vec::<String>::new());
}

both_shapes!(a_tool_gets_the_secret_that_it_needs_unchanged);

/// D-12 (3): nothing masks what a tool is called with.
async fn a_tool_gets_the_secret_that_it_needs_unchanged(shape: Shape) {
    let arguments = format!(r#"{{ "what":"{}", "n":1.0 }}"#, token());
    let given = arguments.clone();
    let model = ModelServer::scripted(move |request| match script::since_user(request).len() {
        0 => Reply::calls([ScriptedCall::new("login", "look", given.clone())]),
        _ => Reply::text("done"),
    })
    .await;
    let stack = Stack::start("tool-secret", shape, common::no_reviews(&model));
    let owner = stack.owner().await;
    let session = owner.session(vec![client_tool("look")]).await;
    let calls = owner.say(&session, "log in").await.calls().to_vec();
    assert_eq!(calls[0].arguments_json, arguments);
    let ended = owner.answer_calls(&session, vec![result(&calls[0], "logged in")]).await;
    assert_eq!(ended.answer(), "done");
    let sent = model.requests()[1].messages();
    let called = &sent[sent.len() - 2]["tool_calls"][0]["function"]["arguments"];
    assert_eq!(called.as_str(), Some(arguments.as_str()), "and goes back as it was");
    for (name, process) in stack.processes() {
        assert!(!process.log_text().contains(&token()), "the log of {name}");
    }
}
