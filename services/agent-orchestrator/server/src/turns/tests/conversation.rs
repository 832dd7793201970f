//! Ordinary turns: text, tools, prefix, counters, failures.

use steward_agent::counters::NudgeSettings;
use steward_base::ErrorKind;
use steward_model::prefix::extends_all;
use steward_orchestrator_core::session::{Said, SessionStore as _, TurnState};
use steward_proto::agent::v1 as pb;
use steward_testkit::{ModelServer, Reply, ScriptedCall};

use crate::config::ModelConfig;
use crate::tests::rig::{Item, Options, World, answers, completed, key, required, run, says, session, text};

#[tokio::test]
async fn a_turn_streams_its_answer_and_stores_it_before_it_says_so() {
    let model = ModelServer::with_replies([Reply::text("Hello there, Ann.").usage(40, 8, 6)]).await;
    let world = World::new(model, Options::default());
    let process = world.start().await;
    let client = world.client(&process, "ann");
    let session = session(&client).await;
    let items = run(&client, says(&session, "t1", "Hi!\nHow are you?")).await.unwrap();
    assert_eq!(items[0], Item::Started(pb::SegmentStarted { segment: 1 }));
    assert_eq!(text(&items), "Hello there, Ann.");
    let end = completed(&items);
    assert_eq!(
        (end.text.as_str(), end.seq, end.iterations),
        ("Hello there, Ann.", 2, 1)
    );
    let usage = end.usage.unwrap();
    assert_eq!(
        (usage.input_tokens, usage.cached_input_tokens, usage.output_tokens),
        (Some(40), Some(8), Some(6))
    );
    assert_eq!(end.review_due, Some(pb::ReviewDue::default()));

    let stored = world.store.session(&key(&session)).await.unwrap().unwrap();
    assert_eq!(
        (stored.title.as_str(), stored.last_seq, stored.open_turn),
        ("Hi!", 2, None)
    );
    assert_eq!(
        (
            stored.counters.turns_since_memory,
            stored.counters.iterations_since_skill
        ),
        (1, 1)
    );
    assert_eq!(stored.usage.output, Some(6));
    let request = &world.model.requests()[0];
    assert_eq!(request.system(), &*stored.system_prompt);
    assert_eq!(
        request.last_message(),
        ("user".to_owned(), "Hi!\nHow are you?".to_owned())
    );
}

#[tokio::test]
async fn every_request_of_a_session_extends_the_one_before() {
    let odd = r#"{ "z":9007199254740993, "a" : 1.0, "b":{"y":1,"x":[]} }"#;
    let world = World::new(
        ModelServer::with_replies([
            Reply::text_and_calls(
                "Let me see.",
                [ScriptedCall::new("m1", "memory", r#"{"action":"add"}"#)],
            ),
            Reply::calls([
                ScriptedCall::new("c1", "shell", odd),
                ScriptedCall::new("c2", "session_search", "{}"),
            ]),
            Reply::calls([ScriptedCall::new("c1", "shell", "not json")]),
            Reply::text("Done."),
            Reply::text("Again."),
        ])
        .await,
        Options::default(),
    );
    let process = world.start().await;
    let client = world.client(&process, "ann");
    let session = session(&client).await;
    let first = run(&client, says(&session, "t1", "Do it")).await.unwrap();
    assert_eq!(required(&first)[0].arguments_json, odd);
    let second = run(&client, answers(&session, "t1-r", &[("c1", "ok")])).await.unwrap();
    assert_eq!(completed(&second).text, "Done.");
    process.kill().await;

    let restarted = world.start().await;
    let client = world.client(&restarted, "ann");
    let third = run(&client, says(&session, "t2", "Once more")).await.unwrap();
    let prefix = completed(&third).prefix.unwrap();
    assert_eq!(
        (prefix.requests, prefix.planned_breaks, prefix.unplanned_breaks),
        (5, 0, 0)
    );
    extends_all(&world.model.bodies()).unwrap();
    assert!(
        world.model.requests()[4]
            .text()
            .contains(&serde_json::to_string(odd).unwrap())
    );
}

#[tokio::test]
async fn parallel_calls_run_at_once_and_their_results_keep_the_models_order() {
    let calls = [
        ScriptedCall::new("slow", "session_search", r#"{"query":"slow"}"#),
        ScriptedCall::new("fast", "skills_list", r#"{"category":"quick"}"#),
    ];
    let world = World::new(
        ModelServer::with_replies([Reply::calls(calls), Reply::text("Both.")]).await,
        Options::default(),
    );
    let process = world.start().await;
    let client = world.client(&process, "ann");
    let session = session(&client).await;
    world.tools.hang(true);
    let mut stream = client.agent.run_turn(says(&session, "t1", "Look")).await.unwrap();
    let mut seen = Vec::new();
    loop {
        let item = crate::tests::rig::next(&mut stream).await;
        let finished = matches!(&item, Item::ToolFinished(tool) if tool.call_id == "fast");
        seen.push(item);
        if finished {
            break;
        }
    }
    assert!(
        !seen
            .iter()
            .any(|item| matches!(item, Item::ToolFinished(tool) if tool.call_id == "slow"))
    );
    world.tools.release();
    while stream.message().await.unwrap().is_some() {}
    let history = world.store.history(&key(&session));
    let order: Vec<&str> = history
        .iter()
        .filter_map(|message| match &message.body.said {
            Said::Tool { call_id, .. } => Some(call_id.as_str()),
            _ => None,
        })
        .collect();
    assert_eq!(order, ["slow", "fast"]);
}

#[tokio::test]
async fn reviews_become_due_by_counters_that_live_with_the_session() {
    let options = Options {
        nudges: NudgeSettings {
            memory_turns: 4,
            skill_iterations: 0,
        }
        .into(),
        ..Options::default()
    };
    let world = World::new(ModelServer::scripted(|_| Reply::text("Fine.")).await, options);
    let mut due = Vec::new();
    let mut name = String::new();
    for turn in 1..=5 {
        // A new process for every turn: the count belongs to the session and to nothing else (`T-4`).
        let process = world.start().await;
        let client = world.client(&process, "ann");
        name = session(&client).await;
        let items = run(&client, says(&name, &format!("t{turn}"), "Go on")).await.unwrap();
        due.push(completed(&items).review_due.unwrap().memory);
        process.kill().await;
    }
    assert_eq!(due, [false, false, false, true, false]);
    let reviews = world.store.due_reviews(&key(&name));
    assert_eq!(reviews.len(), 1);
    assert!(reviews[0].memory && !reviews[0].skills && reviews[0].turn == "t4");
}

#[tokio::test]
async fn a_failed_turn_says_why_in_our_words_and_keeps_what_was_said() {
    let secret = r#"{"error":{"message":"bad key sk-live-123 of Ann"}}"#;
    let world = World::new(
        ModelServer::with_replies([Reply::error(401, secret), Reply::text("Now it works.")]).await,
        Options::default(),
    );
    let process = world.start().await;
    let client = world.client(&process, "ann");
    let session = session(&client).await;
    let items = run(&client, says(&session, "t1", "Hi")).await.unwrap();
    let Some(Item::Failed(failed)) = items.last() else {
        panic!("{items:?}")
    };
    assert_eq!((failed.reason.as_str(), failed.retryable), ("MODEL_REFUSED", false));
    assert!(!failed.message.contains("sk-live-123"));
    let turn = world.store.turn(&key(&session), "t1").await.unwrap().unwrap();
    assert_eq!(
        (turn.state, turn.error_reason.as_str()),
        (TurnState::Failed, "MODEL_REFUSED")
    );
    let next = run(&client, says(&session, "t2", "And now?")).await.unwrap();
    assert_eq!(completed(&next).text, "Now it works.");
    assert_eq!(
        world.model.requests()[1].messages().len(),
        3,
        "system, the first message, the second"
    );
}

#[tokio::test]
async fn an_error_that_heals_is_shown_as_a_retry() {
    let world = World::new(
        ModelServer::with_replies([Reply::error(503, "later"), Reply::text("Here.")]).await,
        Options::default(),
    );
    let process = world.start().await;
    let client = world.client(&process, "ann");
    let session = session(&client).await;
    let items = run(&client, says(&session, "t1", "Hi")).await.unwrap();
    let retried = items.iter().any(
        |item| matches!(item, Item::ModelRetry(retry) if retry.attempt == 1 && retry.reason == "MODEL_UNAVAILABLE"),
    );
    assert!(retried);
    assert_eq!(completed(&items).text, "Here.");
}

#[tokio::test]
async fn a_turn_without_a_final_answer_ends_at_its_limit() {
    let options = Options {
        iterations: 3,
        ..Options::default()
    };
    let world = World::new(
        ModelServer::scripted(|_| Reply::call("skills_list", "{}")).await,
        options,
    );
    let process = world.start().await;
    let client = world.client(&process, "ann");
    let session = session(&client).await;
    let items = run(&client, says(&session, "t1", "Loop")).await.unwrap();
    assert!(matches!(items.last(), Some(Item::Failed(failed)) if failed.reason == "ITERATIONS_SPENT"));
    assert_eq!(world.model.requests().len(), 3);
}

#[tokio::test]
async fn without_a_model_nothing_is_begun() {
    let world = World::new(ModelServer::scripted(|_| Reply::text("x")).await, Options::default());
    let process = world.start().await;
    let session = session(&world.client(&process, "ann")).await;
    let bare = world.start_with(&ModelConfig::default()).await;
    let client = world.client(&bare, "ann");
    let error = run(&client, says(&session, "t1", "Hi")).await.unwrap_err();
    assert_eq!(
        (error.kind, error.reason),
        (ErrorKind::Precondition, "MODEL_NOT_CONFIGURED")
    );
    assert_eq!(world.store.appends(&key(&session)), 0);
}

#[tokio::test]
async fn every_wrong_field_of_a_request_is_named() {
    let world = World::new(ModelServer::scripted(|_| Reply::text("x")).await, Options::default());
    let process = world.start().await;
    let client = world.client(&process, "ann");
    let wrong = pb::RunTurnRequest {
        session: "sessions/1".to_owned(),
        request_id: "Not An Id".to_owned(),
        input: None,
        steer: false,
    };
    let error = run(&client, wrong).await.unwrap_err();
    let fields: Vec<&str> = error
        .violations
        .iter()
        .map(|violation| violation.field.as_str())
        .collect();
    assert_eq!(
        (error.reason, fields),
        ("INVALID_REQUEST", vec!["session", "request_id", "input"])
    );
}

/// What a turn cost is on the wire where every price is known, call by call, and absent where one is not.
#[tokio::test]
async fn a_turn_says_what_its_calls_cost_where_their_prices_are_known() {
    let replies = || {
        [
            Reply::calls([ScriptedCall::new("m1", "memory", "{}")]).usage(40, 8, 6),
            Reply::text("Done.").usage(100, 40, 2),
        ]
    };
    let world = World::new(ModelServer::with_replies(replies()).await, Options::default());
    let priced = ModelConfig {
        provider: crate::config::ModelProvider::Anthropic,
        name: Some("claude-opus-5".to_owned()),
        ..world.model_config()
    };
    let process = world.start_with(&priced).await;
    let client = world.client(&process, "ann");
    let own = session(&client).await;
    let items = run(&client, says(&own, "t1", "Go")).await.unwrap();
    // 92 fresh tokens at 5 dollars a million, 48 cached ones at half a dollar, 8 written at 25.
    let millions = 92 * 5_000_000 + 48 * 500_000 + 8 * 25_000_000;
    assert_eq!(completed(&items).cost_picodollars, Some(millions));

    let world = World::new(ModelServer::with_replies(replies()).await, Options::default());
    let process = world.start().await;
    let client = world.client(&process, "ann");
    let own = session(&client).await;
    let items = run(&client, says(&own, "t1", "Go")).await.unwrap();
    assert_eq!(completed(&items).cost_picodollars, None);
}
