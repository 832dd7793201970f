//! Stopping and steering a turn (`T-7`, `T-11`).

use steward_base::ErrorKind;
use steward_orchestrator_core::session::{Said, SessionStore as _, TurnState};
use steward_proto::agent::v1 as pb;
use steward_testkit::{ModelServer, PATIENCE, Reply, ScriptedCall, wait_for};

use crate::tests::rig::{Item, Options, World, completed, key, next, run, says, session};

async fn interrupt(client: &steward_client::Client, session: &str) -> String {
    let request = pb::InterruptTurnRequest {
        session: session.to_owned(),
    };
    client.agent.interrupt_turn(request).await.unwrap().turn
}

#[tokio::test]
async fn an_answer_that_is_stopped_keeps_what_was_said() {
    let answer = Reply::text("One two three four five six seven eight.").hang_after(700);
    let world = World::new(
        ModelServer::with_replies([answer, Reply::text("As you like.")]).await,
        Options::default(),
    );
    let process = world.start().await;
    let client = world.client(&process, "ann");
    let session = session(&client).await;
    assert_eq!(interrupt(&client, &session).await, "", "stopping nothing succeeds");
    let mut stream = client.agent.run_turn(says(&session, "t1", "Count")).await.unwrap();
    let mut said = String::new();
    while said.is_empty() {
        if let Item::TextDelta(delta) = next(&mut stream).await {
            said.push_str(&delta.text);
        }
    }
    assert_eq!(interrupt(&client, &session).await, "t1");
    let end = loop {
        match next(&mut stream).await {
            Item::TextDelta(delta) => said.push_str(&delta.text),
            other => break other,
        }
    };
    assert_eq!(
        end,
        Item::Interrupted(pb::TurnInterrupted {
            partial_text: said.clone()
        })
    );
    let stored = world.store.turn(&key(&session), "t1").await.unwrap().unwrap();
    assert_eq!(stored.state, TurnState::Interrupted);
    run(&client, says(&session, "t2", "Stop counting")).await.unwrap();
    let sent = world.model.requests()[1].messages();
    assert!(
        sent[2]["content"].as_str().unwrap().starts_with(&said),
        "the model knows what it had said"
    );
}

#[tokio::test]
async fn a_stopped_turn_leaves_no_call_without_a_result() {
    let calls = [
        ScriptedCall::new("m", "memory", r#"{"action":"add"}"#),
        ScriptedCall::new("c", "shell", "{\"z\":1}"),
    ];
    let world = World::new(
        ModelServer::with_replies([Reply::calls(calls), Reply::text("Fine.")]).await,
        Options::default(),
    );
    let process = world.start().await;
    let client = world.client(&process, "ann");
    let session = session(&client).await;
    world.tools.hang(true);
    let mut stream = client.agent.run_turn(says(&session, "t1", "Do it")).await.unwrap();
    world.tools.wait_for_calls(1).await;
    interrupt(&client, &session).await;
    let mut last = next(&mut stream).await;
    while let Some(item) = stream.message().await.unwrap() {
        last = item.event.unwrap().event.unwrap();
    }
    assert!(matches!(last, Item::Interrupted(_)));
    let history = world.store.history(&key(&session));
    let answered = history
        .iter()
        .filter(|message| matches!(message.body.said, Said::Tool { .. }))
        .count();
    assert_eq!(answered, 2);
    world.tools.hang(false);
    completed(&run(&client, says(&session, "t2", "Go on")).await.unwrap());
}

#[tokio::test]
async fn a_turn_that_waits_for_its_client_can_be_stopped() {
    let world = World::new(
        ModelServer::with_replies([Reply::call("shell", "{\"z\":1}")]).await,
        Options::default(),
    );
    let process = world.start().await;
    let client = world.client(&process, "ann");
    let session = session(&client).await;
    run(&client, says(&session, "t1", "Run it")).await.unwrap();
    assert_eq!(interrupt(&client, &session).await, "t1");
    let history = world.store.history(&key(&session));
    assert!(
        history[2]
            .body
            .text
            .starts_with("Cancelled: the person stopped the turn.")
    );
    let watch = pb::WatchTurnRequest {
        session: session.clone(),
        turn: "t1".to_owned(),
        after_event: 0,
    };
    let mut watching = client.agent.watch_turn(watch).await.unwrap();
    let mut last = None;
    while let Some(item) = watching.message().await.unwrap() {
        last = item.event.unwrap().event;
    }
    assert!(matches!(last, Some(Item::Interrupted(_))));
}

#[tokio::test]
async fn a_steering_text_is_taken_up_before_the_next_model_call() {
    let world = World::new(
        ModelServer::with_replies([
            Reply::call("memory", r#"{"action":"add"}"#),
            Reply::text("In French, then."),
        ])
        .await,
        Options::default(),
    );
    let process = world.start().await;
    let client = world.client(&process, "ann");
    let session = session(&client).await;
    let steer = pb::RunTurnRequest {
        steer: true,
        ..says(&session, "s1", "In French please")
    };
    let early = run(&client, steer.clone()).await.unwrap_err();
    assert_eq!(
        (early.kind, early.reason),
        (ErrorKind::Precondition, "NO_TURN_TO_STEER")
    );

    world.tools.hang(true);
    let stream = client
        .agent
        .run_turn(says(&session, "t1", "Write it down"))
        .await
        .unwrap();
    world.tools.wait_for_calls(1).await;
    let mut steering = client.agent.run_turn(steer.clone()).await.unwrap();
    // The same request id again adds nothing.
    let _twice = client.agent.run_turn(steer).await.unwrap();
    world.tools.release();
    let mut items = Vec::new();
    while let Some(item) = steering.message().await.unwrap() {
        items.push(item.event.unwrap().event.unwrap());
    }
    drop(stream);
    let steered = Item::Steered(pb::Steered {
        text: "In French please".to_owned(),
    });
    assert_eq!(items.iter().filter(|item| **item == steered).count(), 1);
    assert_eq!(completed(&items).text, "In French, then.");
    let (role, sent) = world.model.requests()[1].last_message();
    assert_eq!(
        (role.as_str(), sent.as_str()),
        ("user", "<steering>\nIn French please\n</steering>")
    );
    let history = world.store.history(&key(&session));
    assert_eq!(history[3].body.text, "In French please", "said and sent are kept apart");
}

#[tokio::test]
async fn only_the_process_that_runs_a_turn_can_stop_or_steer_it() {
    let world = World::new(
        ModelServer::with_replies([Reply::text("Never said.").hang_after(0), Reply::text("Said.")]).await,
        Options::default(),
    );
    let process = world.start().await;
    let client = world.client(&process, "ann");
    let name = session(&client).await;
    let stream = client.agent.run_turn(says(&name, "t1", "Hi")).await.unwrap();
    world.model.wait_for_requests(1).await;

    let other = world.start_elsewhere().await;
    let there = world.client(&other, "ann");
    let stop = pb::InterruptTurnRequest { session: name.clone() };
    let refused = there.agent.interrupt_turn(stop).await.unwrap_err();
    assert_eq!((refused.kind, refused.reason), (ErrorKind::Conflict, "TURN_RUNNING"));
    let steer = pb::RunTurnRequest {
        steer: true,
        ..says(&name, "s1", "In French please")
    };
    let refused = run(&there, steer).await.unwrap_err();
    assert_eq!((refused.kind, refused.reason), (ErrorKind::Conflict, "TURN_RUNNING"));
    let message = run(&there, says(&name, "t2", "And?")).await.unwrap_err();
    assert_eq!(message.reason, "TURN_RUNNING");

    assert_eq!(interrupt(&client, &name).await, "t1");
    drop(stream);
    wait_for("the turn to end", PATIENCE, || async {
        world
            .store
            .session(&key(&name))
            .await
            .unwrap()
            .unwrap()
            .open_turn
            .is_none()
    })
    .await;
    let next = run(&there, says(&name, "t2", "And?")).await.unwrap();
    assert_eq!(completed(&next).text, "Said.");
}
