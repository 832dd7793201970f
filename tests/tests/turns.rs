//! Turns under pressure: a client that leaves, two clients at once, tools at the client, retries, an interrupt.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test fails by panicking"
)]

mod common;

use steward_client::ErrorOrigin;
use steward_proto::agent::v1 as agent;
use steward_testkit::ModelServer;
use steward_testkit::wait_for;
use steward_testkit::{Reply, ScriptedCall};
use steward_tests::person::{SOON, client_tool, fresh_id, listen, result};
use steward_tests::{Ended, Shape, Stack, StackOptions, script};

both_shapes!(a_client_that_leaves_in_mid_stream_loses_nothing);

async fn a_client_that_leaves_in_mid_stream_loses_nothing(shape: Shape) {
    let model = ModelServer::scripted(|request| {
        if script::is_review(request) {
            return script::learner(request);
        }
        Reply::text("a long answer in many words that takes a while")
            .in_pieces(40)
            .hang_after(400)
    })
    .await;
    let stack = Stack::start("leaves", shape, common::reviews_after_each_turn(&model));
    let owner = stack.owner().await;
    let session = owner.session(Vec::new()).await;
    let turn = fresh_id();
    let mut stream = owner.begin(&session, "Remember: nothing is lost", &turn).await.unwrap();
    assert!(stream.message().await.unwrap().is_some(), "the segment has begun");
    drop(stream);
    model.release();

    let ended = owner
        .say_as(&session, "Remember: nothing is lost", &turn)
        .await
        .unwrap();
    assert_eq!(ended.answer(), "a long answer in many words that takes a while");
    let asked = model
        .requests()
        .iter()
        .filter(|request| !script::is_review(request))
        .count();
    assert_eq!(asked, 1, "the model was asked again for a turn that was running");
    let reviews = owner.reviews_ended(1).await;
    assert_eq!(reviews.len(), 1);
    assert_eq!(owner.notes().await, ["nothing is lost"]);
}

both_shapes!(two_clients_on_one_session_take_turns);

/// D-33: one runs, the other is refused with the reason; order and numbers stay right.
async fn two_clients_on_one_session_take_turns(shape: Shape) {
    let model = ModelServer::scripted(|request| {
        let said = script::asked(request);
        if said == "first" {
            Reply::text("one").hang_after(0)
        } else {
            Reply::text("two")
        }
    })
    .await;
    let stack = Stack::start("two-clients", shape, common::no_reviews(&model));
    let (one, other) = (stack.owner().await, stack.owner().await);
    let session = one.session(Vec::new()).await;
    let running = one.begin(&session, "first", &fresh_id()).await.unwrap();
    model.wait_for_requests(1).await;

    let refused = other.say_as(&session, "second", &fresh_id()).await.unwrap_err();
    assert_eq!((refused.reason, refused.origin), ("TURN_RUNNING", ErrorOrigin::Server));
    model.release();
    assert_eq!(listen(running).await.unwrap().answer(), "one");
    assert_eq!(other.say(&session, "second").await.answer(), "two");
    let said: Vec<_> = one
        .messages(&session)
        .await
        .into_iter()
        .map(|message| (message.seq, message.role, message.text))
        .collect();
    let expected = [
        (1, "user", "first"),
        (2, "assistant", "one"),
        (3, "user", "second"),
        (4, "assistant", "two"),
    ];
    assert_eq!(
        said,
        expected.map(|(seq, role, text)| (seq, role.to_owned(), text.to_owned()))
    );
}

both_shapes!(tools_at_the_client_end_a_segment_and_their_results_begin_the_next);

async fn tools_at_the_client_end_a_segment_and_their_results_begin_the_next(shape: Shape) {
    let model = ModelServer::scripted(|request| {
        let since = script::since_user(request);
        if since.is_empty() {
            return Reply::calls([
                ScriptedCall::new("a", "look", r#"{"what":"left"}"#),
                ScriptedCall::new("b", "look", r#"{"what":"right"}"#),
            ]);
        }
        Reply::text(format!(
            "{} then {}",
            since[1]["content"].as_str().unwrap(),
            since[2]["content"].as_str().unwrap()
        ))
    })
    .await;
    let mut stack = Stack::start("client-tools", shape, common::no_reviews(&model));
    let owner = stack.owner().await;
    let session = owner.session(vec![client_tool("look")]).await;
    let segment = owner.say(&session, "look around").await;
    let calls = segment.calls().to_vec();
    assert_eq!(
        calls
            .iter()
            .map(|call| call.arguments_json.as_str())
            .collect::<Vec<_>>(),
        [r#"{"what":"left"}"#, r#"{"what":"right"}"#]
    );

    // A turn that waits survives the loss of the process that ran it.
    stack.kill("agent-orchestrator");
    stack.start_again("agent-orchestrator");
    let owner = stack.owner().await;
    let pending = agent::ListPendingActionsRequest {
        parent: owner.user.clone(),
    };
    assert_eq!(
        owner.client.agent.list_pending_actions(pending).await.unwrap().actions[0]
            .calls
            .len(),
        2
    );
    let results = vec![result(&calls[1], "a door"), result(&calls[0], "a wall")];
    let ended = owner.answer_calls(&session, results).await;
    assert_eq!(ended.answer(), "a wall then a door", "results keep the model's order");
    assert_eq!(owner.read_session(&session).await.unplanned_prefix_breaks, 0);
}

both_shapes!(the_same_request_id_gives_the_same_answer_and_does_nothing_twice);

async fn the_same_request_id_gives_the_same_answer_and_does_nothing_twice(shape: Shape) {
    let model = ModelServer::scripted(|request| Reply::text(format!("answer {}", request.index))).await;
    let mut stack = Stack::start("retry", shape, common::no_reviews(&model));
    let owner = stack.owner().await;
    let session = owner.session(Vec::new()).await;
    let id = fresh_id();
    let first = owner.say_as(&session, "hello", &id).await.unwrap();
    let again = owner.say_as(&session, "hello", &id).await.unwrap();
    assert_eq!(again.answer(), first.answer());
    stack.kill("agent-orchestrator");
    stack.start_again("agent-orchestrator");
    let owner = stack.owner().await;
    let after_restart = owner.say_as(&session, "hello", &id).await.unwrap();
    assert_eq!(after_restart.answer(), first.answer());
    assert_eq!(model.requests().len(), 1);
    assert_eq!(owner.messages(&session).await.len(), 2);
}

both_shapes!(an_interrupt_stops_the_turn_and_leaves_a_valid_session);

async fn an_interrupt_stops_the_turn_and_leaves_a_valid_session(shape: Shape) {
    let model = ModelServer::scripted(|request| {
        if script::asked(request) == "stop me" {
            Reply::text("never ends").hang_after(300)
        } else {
            Reply::text("fine")
        }
    })
    .await;
    let stack = Stack::start("interrupt", shape, common::no_reviews(&model));
    let owner = stack.owner().await;
    let session = owner.session(Vec::new()).await;
    let running = owner.begin(&session, "stop me", &fresh_id()).await.unwrap();
    model.wait_for_requests(1).await;
    let stop = agent::InterruptTurnRequest {
        session: session.clone(),
    };
    owner.client.agent.interrupt_turn(stop).await.unwrap();
    assert!(matches!(listen(running).await.unwrap().ended, Ended::Interrupted));
    assert_eq!(owner.say(&session, "go on").await.answer(), "fine");
}

both_shapes!(a_failed_model_call_is_typed_and_the_message_stays);

async fn a_failed_model_call_is_typed_and_the_message_stays(shape: Shape) {
    let model = ModelServer::scripted(|request| match script::asked(request).as_str() {
        "bad key" => Reply::error(401, r#"{"error":{"message":"invalid key sk-secret-value"}}"#),
        _ => Reply::text("fine"),
    })
    .await;
    let stack = Stack::start("model-fails", shape, common::no_reviews(&model));
    let owner = stack.owner().await;
    let session = owner.session(Vec::new()).await;
    let segment = owner.say(&session, "bad key").await;
    let Ended::Failed(failed) = &segment.ended else {
        panic!("{:?}", segment.ended)
    };
    assert_eq!(failed.reason, "MODEL_REFUSED");
    assert!(!failed.retryable && !failed.message.contains("sk-secret-value"));
    assert_eq!(owner.messages(&session).await[0].text, "bad key");
    assert_eq!(owner.say(&session, "again").await.answer(), "fine");
    for (name, process) in stack.processes() {
        assert!(
            !process.log_text().contains("sk-secret-value"),
            "{name} logged the provider's text"
        );
    }
}

both_shapes!(without_a_model_a_session_is_refused_with_the_reason);

async fn without_a_model_a_session_is_refused_with_the_reason(shape: Shape) {
    let stack = Stack::start("no-model", shape, StackOptions::default());
    let owner = stack.owner().await;
    let refused = owner.session_with(agent::SessionSetup::default()).await.unwrap_err();
    assert_eq!(refused.reason, "MODEL_NOT_CONFIGURED");
}

both_shapes!(a_review_outlives_its_client_and_a_soft_stop);

/// D-02: the client goes with the last token; SIGTERM comes while the review's model call is open. The review is drained,
/// or runs again after the restart; it never vanishes.
async fn a_review_outlives_its_client_and_a_soft_stop(shape: Shape) {
    let model = ModelServer::scripted(|request| {
        let reply = script::learner(request);
        if script::is_review(request) && script::since_user(request).is_empty() {
            reply.hang_after(0)
        } else {
            reply
        }
    })
    .await;
    let mut stack = Stack::start(
        "outlives",
        shape,
        common::reviews_after_each_turn(&model).set("SERVER__STOP_SECONDS", 3),
    );
    let owner = stack.owner().await;
    let session = owner.session(Vec::new()).await;
    owner.say(&session, "Remember: reviews never vanish").await;
    model.wait_for_requests(2).await;
    stack.stop("curator-worker").await;
    // Every later reply hangs as well until it is released.
    for _ in 0..8 {
        model.release();
    }
    stack.start_again("curator-worker");
    let owner = stack.owner().await;
    owner.reviews_ended(1).await;
    wait_for("the note", SOON, || async {
        owner.notes().await == ["reviews never vanish"]
    })
    .await;
}
