//! What a provider does wrong, and what the person sees of it, over either protocol (`T-10`).

use steward_testkit::{ModelServer, Reply, ScriptedCall};

use crate::config::{ModelConfig, ModelProvider};
use crate::tests::rig::{Item, Options, World, completed, key, run, says, session, text};

const BOTH: [ModelProvider; 2] = [ModelProvider::OpenAi, ModelProvider::Anthropic];

/// A turn of its own for each protocol against these replies; the world after it, its events, and the session's name.
async fn turns(replies: &[Reply], look: impl AsyncFn(World, Vec<Item>, String)) {
    for provider in BOTH {
        let (world, items, name) = Box::pin(turn(replies, provider)).await;
        look(world, items, name).await;
    }
}

async fn turn(replies: &[Reply], provider: ModelProvider) -> (World, Vec<Item>, String) {
    let world = World::new(ModelServer::with_replies(replies.to_vec()).await, Options::default());
    let config = ModelConfig {
        provider,
        ..world.model_config()
    };
    let process = world.start_with(&config).await;
    let client = world.client(&process, "ann");
    let name = session(&client).await;
    let items = run(&client, says(&name, "t1", "Hi")).await.unwrap();
    drop(process);
    (world, items, name)
}

fn retries(items: &[Item]) -> Vec<(u32, &str)> {
    let retries = items.iter().filter_map(|item| match item {
        Item::ModelRetry(retry) => Some((retry.attempt, retry.reason.as_str())),
        _ => None,
    });
    retries.collect()
}

fn failure(items: &[Item]) -> (&str, bool) {
    match items.last() {
        Some(Item::Failed(failed)) => (failed.reason.as_str(), failed.retryable),
        other => panic!("the turn ends with {other:?}"),
    }
}

#[tokio::test]
async fn a_full_or_busy_provider_is_asked_again_and_each_try_is_shown() {
    let replies = [
        Reply::failure(429, "rate_limit_error", "slow down").header("retry-after", "0"),
        Reply::failure(529, "overloaded_error", "busy"),
        Reply::dropped(),
        Reply::text("Here."),
    ];
    turns(&replies, async |world, items, _| {
        let shown = [(1, "MODEL_QUOTA"), (2, "MODEL_UNAVAILABLE"), (3, "MODEL_UNAVAILABLE")];
        assert_eq!(retries(&items), shown);
        assert_eq!(completed(&items).text, "Here.");
        assert_eq!(completed(&items).prefix.unwrap().requests, 1, "one request, four times");
        assert_eq!(world.model.requests().len(), 4);
    })
    .await;
}

#[tokio::test]
async fn a_provider_that_stays_full_ends_the_turn_and_says_when_to_come_back() {
    let full = Reply::failure(429, "rate_limit_error", "come back tomorrow").header("retry-after", "86400");
    turns(&[full], async |world, items, _| {
        assert_eq!(failure(&items), ("MODEL_QUOTA", true));
        assert_eq!(world.model.requests().len(), 1, "nobody waits that long");
    })
    .await;
}

#[tokio::test]
async fn an_answer_that_is_cut_keeps_what_was_seen() {
    let cut = Reply::text("half of it, and silence").cut_before("and silence");
    turns(&[cut], async |world, items, name| {
        assert_eq!(text(&items), "half of it, ");
        assert_eq!(failure(&items), ("MODEL_ANSWER_INVALID", true));
        let history = world.store.history(&key(&name));
        assert_eq!(history[1].body.text, "half of it, ");
        assert!(history[1].body.sent().ends_with("[The answer broke off here.]"));
    })
    .await;
}

#[tokio::test]
async fn arguments_that_are_no_json_are_answered_to_the_model() {
    let replies = [Reply::call("memory", r#"{"action": "#), Reply::text("I see.")];
    turns(&replies, async |world, items, _| {
        assert_eq!(completed(&items).text, "I see.");
        assert!(world.tools.calls().is_empty(), "it did not run");
        assert_eq!(world.model.requests()[1].tool_results().len(), 1);
    })
    .await;
    let four = vec![Reply::call("memory", r#"{"action": "#); 4];
    turns(&four, async |world, items, _| {
        assert_eq!(failure(&items), ("MODEL_ANSWER_INVALID", true));
        assert_eq!(world.model.requests().len(), 4, "three in a row are answered");
    })
    .await;
}

#[tokio::test]
async fn an_empty_answer_is_asked_for_again_once() {
    turns(&[Reply::text(""), Reply::text("Here.")], async |world, items, _| {
        assert_eq!(completed(&items).text, "Here.");
        assert_eq!(world.model.requests().len(), 2);
    })
    .await;
    turns(&[Reply::text(""), Reply::text("")], async |_, items, _| {
        assert_eq!(failure(&items), ("MODEL_ANSWER_INVALID", true));
    })
    .await;
}

#[tokio::test]
async fn a_call_id_that_comes_twice_becomes_two_calls() {
    let call = |content: &str| {
        let arguments = format!(r#"{{"action": "add", "content": "{content}"}}"#);
        ScriptedCall::new("same", "memory", arguments)
    };
    let replies = [Reply::calls([call("one"), call("two")]), Reply::text("Both.")];
    turns(&replies, async |world, items, _| {
        assert_eq!(completed(&items).text, "Both.");
        assert_eq!(world.tools.effects().len(), 2);
        let results = world.model.requests()[1].tool_results();
        assert_eq!(results.len(), 2);
        assert_ne!(results[0].0, results[1].0);
    })
    .await;
}

#[tokio::test]
async fn a_conversation_that_is_too_long_is_named() {
    let long = Reply::failure(
        400,
        "invalid_request_error",
        "prompt is too long: 210000 tokens > 200000 maximum",
    );
    turns(&[long], async |world, items, _| {
        assert_eq!(failure(&items), ("CONTEXT_TOO_LONG", false));
        assert_eq!(world.model.requests().len(), 1);
    })
    .await;
}
