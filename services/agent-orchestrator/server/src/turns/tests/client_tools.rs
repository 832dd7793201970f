//! Tools that run at the client: the turn waits for them, durably (`T-8`, `T-11`).

use std::time::Duration;

use steward_base::ErrorKind;
use steward_orchestrator_core::session::{Message, Said, SessionStore as _, TurnState};
use steward_proto::agent::v1 as pb;
use steward_runtime::reconcile::Reconciler as _;
use steward_testkit::{ModelServer, Reply, ScriptedCall};

use crate::background::ExpiredTurns;
use crate::tests::rig::{Item, Options, World, answers, completed, key, required, run, says, session};

fn shell_call(id: &str) -> ScriptedCall {
    ScriptedCall::new(id, "shell", r#"{"z":1}"#)
}

async fn waiting(replies: Vec<Reply>) -> World {
    World::new(ModelServer::with_replies(replies).await, Options::default())
}

fn results(history: &[Message]) -> Vec<(&str, &str)> {
    let results = history.iter().filter_map(|message| match &message.body.said {
        Said::Tool { call_id, .. } => Some((call_id.as_str(), message.body.text.as_str())),
        _ => None,
    });
    results.collect()
}

#[tokio::test]
async fn the_client_runs_its_calls_and_the_turn_goes_on() {
    let world = waiting(vec![
        Reply::calls([shell_call("a"), shell_call("b")]),
        Reply::text("Done."),
    ])
    .await;
    let process = world.start().await;
    let client = world.client(&process, "ann");
    let session = session(&client).await;
    let items = run(&client, says(&session, "t1", "Run it")).await.unwrap();
    let ids: Vec<&str> = required(&items).iter().map(|call| call.call_id.as_str()).collect();
    assert_eq!(ids, ["a", "b"]);
    let parent = "teams/red/users/ann".to_owned();
    let pending = client
        .agent
        .list_pending_actions(pb::ListPendingActionsRequest { parent })
        .await
        .unwrap();
    assert_eq!((pending.actions.len(), pending.actions[0].calls.len()), (1, 2));

    let request = answers(&session, "t1-r", &[("b", "second"), ("a", "first")]);
    let items = run(&client, request.clone()).await.unwrap();
    assert_eq!(items[0], Item::Started(pb::SegmentStarted { segment: 2 }));
    assert_eq!(
        (completed(&items).text.as_str(), completed(&items).iterations),
        ("Done.", 2)
    );
    let history = world.store.history(&key(&session));
    assert_eq!(results(&history), [("a", "first"), ("b", "second")]);
    assert_eq!(
        run(&client, request).await.unwrap(),
        items,
        "the same request id gives the same segment again"
    );
    assert_eq!(world.model.requests().len(), 2);
}

#[tokio::test]
async fn results_that_do_not_match_the_open_calls_are_named() {
    let world = waiting(vec![
        Reply::calls([shell_call("a"), shell_call("b")]),
        Reply::text("Done."),
    ])
    .await;
    let process = world.start().await;
    let client = world.client(&process, "ann");
    let session = session(&client).await;
    let early = run(&client, answers(&session, "r0", &[("a", "x")])).await.unwrap_err();
    assert_eq!((early.kind, early.reason), (ErrorKind::Precondition, "NO_OPEN_CALLS"));
    run(&client, says(&session, "t1", "Run it")).await.unwrap();
    let error = run(&client, answers(&session, "r1", &[("a", "x"), ("z", "x")]))
        .await
        .unwrap_err();
    assert_eq!(error.reason, "CALLS_MISMATCH");
    let said: Vec<&str> = error.violations.iter().map(|one| one.description.as_str()).collect();
    assert_eq!(said, ["no call z is waiting", "the result of call b is missing"]);
    let right = run(&client, answers(&session, "r2", &[("a", "x"), ("b", "x")]))
        .await
        .unwrap();
    assert_eq!(completed(&right).text, "Done.");
}

#[tokio::test]
async fn a_turn_waits_through_a_restart_and_what_ran_here_runs_once() {
    let mixed = Reply::calls([
        ScriptedCall::new("m", "memory", r#"{"action":"add"}"#),
        shell_call("c"),
        ScriptedCall::new("s", "skill_manage", "{\"action\":\"create\",\"name\":\"x\"}"),
    ]);
    for restarts in [false, true] {
        let world = waiting(vec![mixed.clone(), Reply::text("All three.")]).await;
        let mut process = world.start().await;
        let session = session(&world.client(&process, "ann")).await;
        let items = run(&world.client(&process, "ann"), says(&session, "t1", "Do all"))
            .await
            .unwrap();
        assert_eq!(required(&items).len(), 1);
        assert_eq!(world.tools.effects().len(), 2);
        if restarts {
            process.kill().await;
            process = world.start().await;
        }
        let items = run(&world.client(&process, "ann"), answers(&session, "r1", &[("c", "ran")]))
            .await
            .unwrap();
        assert_eq!(completed(&items).text, "All three.");
        let history = world.store.history(&key(&session));
        let ids: Vec<&str> = results(&history).into_iter().map(|(id, _)| id).collect();
        assert_eq!(ids, ["m", "c", "s"], "results keep the model's order");
        assert_eq!(world.tools.effects().len(), 2, "the same keys do nothing twice");
        assert_eq!(world.tools.calls().len(), if restarts { 4 } else { 2 });
    }
}

#[tokio::test]
async fn a_new_message_closes_the_calls_that_wait() {
    let world = waiting(vec![Reply::calls([shell_call("a")]), Reply::text("Fine, without it.")]).await;
    let process = world.start().await;
    let client = world.client(&process, "ann");
    let session = session(&client).await;
    run(&client, says(&session, "t1", "Run it")).await.unwrap();
    let items = run(&client, says(&session, "t2", "Never mind")).await.unwrap();
    assert_eq!(completed(&items).text, "Fine, without it.");
    let history = world.store.history(&key(&session));
    assert!(results(&history)[0].1.starts_with("Cancelled: the person went on"));
    let closed = world.store.turn(&key(&session), "t1").await.unwrap().unwrap();
    assert_eq!(closed.state, TurnState::Interrupted);
    let late = run(&client, answers(&session, "r1", &[("a", "too late")]))
        .await
        .unwrap_err();
    assert_eq!(late.reason, "NO_OPEN_CALLS");
}

#[tokio::test]
async fn a_turn_that_waited_a_day_is_closed_as_expired() {
    let world = waiting(vec![Reply::calls([shell_call("a")])]).await;
    let process = world.start().await;
    let client = world.client(&process, "ann");
    let session = session(&client).await;
    run(&client, says(&session, "t1", "Run it")).await.unwrap();
    world.clock.advance(Duration::from_hours(24));
    let late = run(&client, answers(&session, "r1", &[("a", "too late")]))
        .await
        .unwrap_err();
    assert_eq!(late.reason, "NO_OPEN_CALLS");
    let closed = world.store.turn(&key(&session), "t1").await.unwrap().unwrap();
    assert_eq!(closed.state, TurnState::Expired);
    let parent = "teams/red/users/ann".to_owned();
    let pending = client
        .agent
        .list_pending_actions(pb::ListPendingActionsRequest { parent })
        .await
        .unwrap();
    assert!(pending.actions.is_empty());
    let history = world.store.history(&key(&session));
    assert_eq!(results(&history), [("a", "Cancelled: nobody ran this call in time.")]);
}

/// `T-8`: nobody has to come for it. A turn that still has time, and one that went on, are left alone.
#[tokio::test]
async fn a_turn_that_nobody_comes_back_to_is_closed_by_itself() {
    let replies = vec![Reply::calls([shell_call("a")]), Reply::calls([shell_call("b")])];
    let world = waiting(replies).await;
    let process = world.start().await;
    let client = world.client(&process, "ann");
    let session = session(&client).await;
    run(&client, says(&session, "t1", "Run it")).await.unwrap();
    let sweeper = ExpiredTurns {
        turns: process.turns.clone(),
    };
    world.clock.advance(Duration::from_hours(23));
    assert_eq!(sweeper.tick().await.unwrap().items, 0);
    world.clock.advance(Duration::from_hours(1));
    assert_eq!(sweeper.tick().await.unwrap().items, 1);
    let closed = world.store.turn(&key(&session), "t1").await.unwrap().unwrap();
    assert_eq!(closed.state, TurnState::Expired);
    let history = world.store.history(&key(&session));
    assert_eq!(results(&history), [("a", "Cancelled: nobody ran this call in time.")]);
    assert_eq!(sweeper.tick().await.unwrap().items, 0);
    let next = run(&client, says(&session, "t2", "Once more")).await.unwrap();
    assert_eq!(required(&next).len(), 1, "the session goes on");
}

#[tokio::test]
async fn a_client_says_that_its_output_is_worth_less_and_is_believed() {
    let world = waiting(vec![Reply::calls([shell_call("a")]), Reply::text("I see.")]).await;
    let process = world.start().await;
    let client = world.client(&process, "ann");
    let session = session(&client).await;
    run(&client, says(&session, "t1", "Fetch it")).await.unwrap();
    let mut request = answers(&session, "r1", &[("a", "a page")]);
    if let Some(pb::run_turn_request::Input::ToolResults(results)) = &mut request.input {
        results.results[0].integrity = steward_proto::common::v1::Integrity::External.into();
        results.results[0].source = "https://example.org".to_owned();
    }
    run(&client, request).await.unwrap();
    let history = world.store.history(&key(&session));
    let span = &history[2].body.spans[0];
    assert_eq!(span.integrity, steward_base::Integrity::External);
    assert_eq!(
        span.origin,
        steward_base::SpanOrigin::External("https://example.org".to_owned())
    );
}
