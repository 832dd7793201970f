//! Processes that are lost at any point: what was acknowledged is there, nothing happens twice, and a stored reply is
//! never asked for again (`T-9`, `T-11`).

use std::time::Duration;

use steward_base::Clock as _;
use steward_model::prefix::extends_all;
use steward_orchestrator_core::session::{Said, SessionStore as _, TurnState};
use steward_testkit::{ModelServer, Reply};

use crate::tests::rig::{Item, Options, When, World, answers, completed, key, required, run, says, session};

/// First a call of the memory tool, then a final answer. What the model says differs from request to request, so that a
/// second asking would show.
async fn forgetful_world() -> World {
    let model = ModelServer::scripted(|request| {
        let told = request.text().contains("memory did");
        if told {
            Reply::text(format!("Answer number {}.", request.index))
        } else {
            Reply::call(
                "memory",
                format!(r#"{{"action":"add","content":"try {}"}}"#, request.index),
            )
        }
    })
    .await;
    World::new(model, Options::default())
}

#[tokio::test]
async fn a_turn_is_taken_up_where_its_process_was_lost() {
    let points = [
        ("user", When::Before),
        ("user", When::After),
        ("calls", When::Before),
        ("calls", When::After),
        ("results", When::Before),
        ("results", When::After),
        ("final", When::Before),
        ("final", When::After),
    ];
    for (point, when) in points {
        let world = forgetful_world().await;
        let process = world.start().await;
        let client = world.client(&process, "ann");
        let session = session(&client).await;
        process.store.crash_at(point, when);
        let first = client.agent.run_turn(says(&session, "t1", "Remember this"));
        // The client's call may or may not have begun to answer when the process goes.
        tokio::select! {
            () = process.store.crashed() => {}
            stream = first => {
                let _open = stream.unwrap();
                process.store.crashed().await;
            }
        }
        let asked = world.model.requests().len();
        process.kill().await;

        let restarted = world.start().await;
        let client = world.client(&restarted, "ann");
        let items = run(&client, says(&session, "t1", "Remember this")).await.unwrap();
        let end = completed(&items);
        let history = world.store.history(&key(&session));
        assert_eq!(history.len(), 4, "{point} {when:?}: message, call, result, answer");
        assert_eq!(end.text, history[3].body.text, "{point} {when:?}");
        assert_eq!(world.tools.effects().len(), 1, "{point} {when:?}: one effect");
        let stored = world.tools.effects().into_values().next().unwrap();
        assert_eq!(
            stored,
            history[1].body.calls()[0].arguments,
            "{point} {when:?}: that of the stored reply"
        );
        let lost_reply = when == When::Before && matches!(point, "calls" | "final");
        let expected = 2 + usize::from(lost_reply);
        assert_eq!(
            world.model.requests().len(),
            expected,
            "{point} {when:?}: asked {asked} times before"
        );
        extends_all(&world.model.bodies()).unwrap();
        let turn = world.store.turn(&key(&session), "t1").await.unwrap().unwrap();
        assert_eq!((turn.state, turn.iterations), (TurnState::Completed, 2));
        let next = run(&client, says(&session, "t2", "Next")).await.unwrap();
        assert_eq!(completed(&next).prefix.unwrap().unplanned_breaks, 0, "{point} {when:?}");
    }
}

#[tokio::test]
async fn a_write_that_was_under_way_is_made_once() {
    let world = forgetful_world().await;
    let process = world.start().await;
    let client = world.client(&process, "ann");
    let session = session(&client).await;
    world.tools.hang(true);
    let stream = client
        .agent
        .run_turn(says(&session, "t1", "Remember this"))
        .await
        .unwrap();
    world.tools.wait_for_calls(1).await;
    process.kill().await;
    drop(stream);
    world.tools.hang(false);
    let restarted = world.start().await;
    let items = run(&world.client(&restarted, "ann"), says(&session, "t1", "Remember this"))
        .await
        .unwrap();
    assert_eq!(completed(&items).iterations, 2);
    let calls = world.tools.calls();
    assert_eq!((calls.len(), world.tools.effects().len()), (2, 1));
    assert_eq!(calls[0], calls[1], "with the same key");
}

#[tokio::test]
async fn a_new_message_closes_a_turn_whose_process_was_lost() {
    let world = forgetful_world().await;
    let process = world.start().await;
    let client = world.client(&process, "ann");
    let session = session(&client).await;
    process.store.crash_at("calls", When::After);
    let stream = client
        .agent
        .run_turn(says(&session, "t1", "Remember this"))
        .await
        .unwrap();
    process.store.crashed().await;
    process.kill().await;
    drop(stream);

    let restarted = world.start().await;
    let items = run(&world.client(&restarted, "ann"), says(&session, "t2", "Something else"))
        .await
        .unwrap();
    completed(&items);
    let history = world.store.history(&key(&session));
    assert!(matches!(&history[2].body.said, Said::Tool { is_error: true, .. }));
    assert!(history[2].body.text.ends_with("Its outcome is unknown."));
    let lost = world.store.turn(&key(&session), "t1").await.unwrap().unwrap();
    assert_eq!(lost.state, TurnState::Interrupted);
    let told = run(&world.client(&restarted, "ann"), says(&session, "t1", "Remember this"))
        .await
        .unwrap();
    assert!(matches!(told.last(), Some(Item::Interrupted(_))));
}

#[tokio::test]
async fn results_of_the_client_survive_the_process_that_took_them() {
    for (point, when) in [
        ("waits", When::Before),
        ("waits", When::After),
        ("results", When::Before),
        ("results", When::After),
    ] {
        let model = ModelServer::scripted(|request| {
            if request.last_message().0 == "tool" {
                Reply::text("Done.")
            } else {
                Reply::call("shell", "{\"z\":1}")
            }
        })
        .await;
        let world = World::new(model, Options::default());
        let mut process = world.start().await;
        let mut client = world.client(&process, "ann");
        let session = session(&client).await;
        process.store.crash_at(point, when);
        if point == "waits" {
            let stream = client.agent.run_turn(says(&session, "t1", "Run it")).await.unwrap();
            process.store.crashed().await;
            process.kill().await;
            drop(stream);
            process = world.start().await;
            client = world.client(&process, "ann");
        }
        let items = run(&client, says(&session, "t1", "Run it")).await.unwrap();
        assert_eq!(required(&items).len(), 1, "{point} {when:?}");
        if point == "results" {
            let stream = client
                .agent
                .run_turn(answers(&session, "r1", &[("call_1", "ok")]))
                .await
                .unwrap();
            process.store.crashed().await;
            process.kill().await;
            drop(stream);
            process = world.start().await;
            client = world.client(&process, "ann");
        }
        let items = run(&client, answers(&session, "r1", &[("call_1", "ok")]))
            .await
            .unwrap();
        assert_eq!(completed(&items).text, "Done.", "{point} {when:?}");
        let history = world.store.history(&key(&session));
        assert_eq!(history.len(), 4, "{point} {when:?}: message, call, result, answer");
        process.kill().await;
    }
}

#[tokio::test]
async fn a_turn_stops_when_another_process_has_taken_its_session_over() {
    let options = Options {
        lease: Duration::from_millis(30),
        ..Options::default()
    };
    let model = ModelServer::with_replies([Reply::text("Never said.").hang_after(0)]).await;
    let world = World::new(model, options);
    let process = world.start().await;
    let client = world.client(&process, "ann");
    let session = session(&client).await;
    let mut stream = client.agent.run_turn(says(&session, "t1", "Hi")).await.unwrap();
    world.model.wait_for_requests(1).await;
    let taken = loop {
        // The heartbeat may come between the two; then the lease is good again and this is tried again.
        world.clock.advance(Duration::from_mins(1));
        let lease = world
            .store
            .acquire_lease(&key(&session), "t1", "elsewhere", Duration::from_mins(5))
            .await;
        if let Ok(fence) = lease {
            break fence;
        }
    };
    let mut last = None;
    while let Some(item) = stream.message().await.unwrap() {
        last = item.event.unwrap().event;
    }
    assert!(matches!(&last, Some(Item::Failed(failed)) if failed.reason == "STALE_FENCE" && failed.retryable));
    let turn = world.store.turn(&key(&session), "t1").await.unwrap().unwrap();
    assert_eq!(
        turn.state,
        TurnState::Running,
        "its end is the other process's to write"
    );
    let refused = run(&client, says(&session, "t1", "Hi")).await.unwrap_err();
    assert_eq!(refused.reason, "TURN_RUNNING", "taken {taken} at {}", world.clock.now());
}
