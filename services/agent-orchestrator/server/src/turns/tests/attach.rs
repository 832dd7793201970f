//! Clients that come and go: the turn does not notice (`T-7`, `T-8`, `T-9`).

use steward_base::ErrorKind;
use steward_orchestrator_core::session::{SessionStore as _, TurnState};
use steward_proto::agent::v1 as pb;
use steward_testkit::{ModelServer, PATIENCE, Reply, wait_for};

use crate::tests::rig::{Item, Options, World, completed, key, next, run, says, session, text};

const ANSWER: &str = "It goes on whether or not anyone listens to it.";

async fn hanging_world() -> World {
    let model = ModelServer::with_replies([Reply::text(ANSWER).hang_after(500)]).await;
    World::new(model, Options::default())
}

#[tokio::test]
async fn a_turn_goes_on_when_its_client_leaves_in_mid_stream() {
    let world = hanging_world().await;
    let process = world.start().await;
    let client = world.client(&process, "ann");
    let session = session(&client).await;
    let mut stream = client.agent.run_turn(says(&session, "t1", "Hi")).await.unwrap();
    while !matches!(next(&mut stream).await, Item::TextDelta(_)) {}
    drop(stream);
    world.model.release();
    wait_for("the turn to be stored", PATIENCE, || async {
        let turn = world.store.turn(&key(&session), "t1").await.unwrap();
        turn.is_some_and(|turn| turn.state == TurnState::Completed)
    })
    .await;
    let again = run(&client, says(&session, "t1", "Hi")).await.unwrap();
    assert_eq!((text(&again).as_str(), completed(&again).seq), (ANSWER, 2));
    assert_eq!(world.model.requests().len(), 1);
}

#[tokio::test]
async fn a_second_client_is_told_of_the_running_turn_and_can_watch_it() {
    let world = hanging_world().await;
    let process = world.start().await;
    let (one, two) = (world.client(&process, "ann"), world.client(&process, "ann"));
    let session = session(&one).await;
    let mut stream = one.agent.run_turn(says(&session, "t1", "Hi")).await.unwrap();
    while !matches!(next(&mut stream).await, Item::TextDelta(_)) {}

    let error = run(&two, says(&session, "t2", "Me too")).await.unwrap_err();
    assert_eq!((error.kind, error.reason), (ErrorKind::Conflict, "TURN_RUNNING"));
    assert_eq!(error.metadata, [("turn", "t1".to_owned())]);
    let request = pb::WatchTurnRequest {
        session: session.clone(),
        turn: "t1".to_owned(),
        after_event: 1,
    };
    let mut watching = two.agent.watch_turn(request).await.unwrap();
    let attached = two.agent.run_turn(says(&session, "t1", "Hi"));
    let mut attached = attached.await.unwrap();
    world.model.release();

    let mut watched = Vec::new();
    while let Some(item) = watching.message().await.unwrap() {
        watched.push(item.event.unwrap());
    }
    let numbers: Vec<u64> = watched.iter().map(|event| event.event_id).collect();
    assert_eq!(numbers, (2..2 + numbers.len() as u64).collect::<Vec<_>>());
    assert!(matches!(watched.last().unwrap().event, Some(Item::Completed(_))));
    let mut events = 0;
    while let Some(item) = attached.message().await.unwrap() {
        events += 1;
        assert_eq!(item.event.unwrap().event_id, events);
    }
    assert_eq!(events, numbers.last().copied().unwrap());
    while stream.message().await.unwrap().is_some() {}
    assert_eq!(world.model.requests().len(), 1);
}

#[tokio::test]
async fn a_request_id_means_one_request() {
    let world = World::new(ModelServer::scripted(|_| Reply::text("x")).await, Options::default());
    let process = world.start().await;
    let client = world.client(&process, "ann");
    let session = session(&client).await;
    run(&client, says(&session, "t1", "Hi")).await.unwrap();
    for process in [process, world.start().await] {
        let client = world.client(&process, "ann");
        let error = run(&client, says(&session, "t1", "Something else")).await.unwrap_err();
        assert_eq!(
            (error.kind, error.reason),
            (ErrorKind::InvalidInput, "REQUEST_ID_REUSED")
        );
    }
}

#[tokio::test]
async fn a_turn_that_is_over_is_told_from_the_store_after_a_restart() {
    let world = World::new(
        ModelServer::with_replies([Reply::text(ANSWER)]).await,
        Options::default(),
    );
    let process = world.start().await;
    let client = world.client(&process, "ann");
    let session = session(&client).await;
    run(&client, says(&session, "t1", "Hi")).await.unwrap();
    process.kill().await;

    let restarted = world.start().await;
    let client = world.client(&restarted, "ann");
    let again = run(&client, says(&session, "t1", "Hi")).await.unwrap();
    assert_eq!(again.len(), 3, "started, the text in one piece, completed");
    assert_eq!(
        (text(&again).as_str(), completed(&again).text.as_str()),
        (ANSWER, ANSWER)
    );
    let request = pb::WatchTurnRequest {
        session: session.clone(),
        turn: "t1".to_owned(),
        after_event: 99,
    };
    let mut watching = client.agent.watch_turn(request.clone()).await.unwrap();
    let end = watching.message().await.unwrap().unwrap().event.unwrap();
    assert!(matches!(end.event, Some(Item::Completed(_))), "the end is always told");
    let unknown = pb::WatchTurnRequest {
        turn: "t9".to_owned(),
        ..request
    };
    assert_eq!(
        client.agent.watch_turn(unknown).await.unwrap_err().reason,
        "TURN_NOT_FOUND"
    );
    assert_eq!(world.model.requests().len(), 1);
}

#[tokio::test]
async fn another_persons_session_does_not_exist() {
    let world = World::new(ModelServer::scripted(|_| Reply::text("x")).await, Options::default());
    let process = world.start().await;
    let session = session(&world.client(&process, "ann")).await;
    for client in [world.client(&process, "ben"), world.client_in(&process, "blue", "ann")] {
        let mut reasons = vec![run(&client, says(&session, "t1", "Hi")).await.unwrap_err().reason];
        let name = session.clone();
        reasons.push(
            client
                .sessions
                .get_session(pb::GetSessionRequest { name })
                .await
                .unwrap_err()
                .reason,
        );
        let messages = pb::ListSessionMessagesRequest {
            parent: session.clone(),
            ..Default::default()
        };
        reasons.push(
            client
                .sessions
                .list_session_messages(messages)
                .await
                .unwrap_err()
                .reason,
        );
        let interrupt = pb::InterruptTurnRequest {
            session: session.clone(),
        };
        reasons.push(client.agent.interrupt_turn(interrupt).await.unwrap_err().reason);
        let watch = pb::WatchTurnRequest {
            session: session.clone(),
            turn: "t1".to_owned(),
            after_event: 0,
        };
        reasons.push(client.agent.watch_turn(watch).await.unwrap_err().reason);
        assert_eq!(reasons, ["SESSION_NOT_FOUND"; 5]);
    }
}
