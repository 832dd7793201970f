//! A session that is kept for its next turn: what it spares, and that it decides nothing.

use steward_model::prefix::extends_all;
use steward_orchestrator_core::session::{Rewind, SessionStore as _};
use steward_testkit::{ModelServer, Reply};

use crate::tests::rig::{Options, Process, World, completed, key, run, says, session, text};

/// Answers with the number of messages that it was sent, the system message apart.
async fn counting_world(options: Options) -> World {
    let model =
        ModelServer::scripted(|request| Reply::text(format!("{} messages", request.messages().len() - 1))).await;
    World::new(model, options)
}

async fn say(world: &World, process: &Process, session: &str, turn: &str) -> String {
    let items = run(&world.client(process, "ann"), says(session, turn, "Hi"))
        .await
        .unwrap();
    assert_eq!(completed(&items).prefix.unwrap().unplanned_breaks, 0, "{turn}");
    text(&items)
}

#[tokio::test]
async fn a_turn_that_follows_another_begins_with_storing_its_message() {
    let world = counting_world(Options::default()).await;
    let process = world.start().await;
    let session = session(&world.client(&process, "ann")).await;
    assert_eq!(say(&world, &process, &session, "t1").await, "1 messages");
    process.store.read_ahead().await;
    assert_eq!(
        process.store.asked(),
        ["append t1/on-0/user", "append t1/1/final", "opened "]
    );
    assert_eq!(say(&world, &process, &session, "t2").await, "3 messages");
    process.store.read_ahead().await;
    assert_eq!(
        process.store.asked(),
        ["append t2/on-2/user", "append t2/3/final", "opened "]
    );
    extends_all(&world.model.bodies()).unwrap();
    assert_eq!(world.store.history(&key(&session)).len(), 4);
}

#[tokio::test]
async fn what_another_process_added_meanwhile_is_read_before_a_turn_begins() {
    let world = counting_world(Options::default()).await;
    let (one, two) = (world.start().await, world.start().await);
    let session = session(&world.client(&one, "ann")).await;
    say(&world, &one, &session, "t1").await;
    one.store.read_ahead().await;
    assert_eq!(say(&world, &two, &session, "t2").await, "3 messages");
    assert_eq!(say(&world, &one, &session, "t3").await, "5 messages");
    extends_all(&world.model.bodies()).unwrap();
    let turns: Vec<String> = world
        .store
        .history(&key(&session))
        .into_iter()
        .map(|message| message.body.turn)
        .collect();
    assert_eq!(turns, ["t1", "t1", "t2", "t2", "t3", "t3"]);
}

/// Whether it ran elsewhere since, or here long ago: it is answered from the store, and the model is not asked (`T-9`).
#[tokio::test]
async fn a_request_that_was_answered_is_not_taken_for_a_new_one() {
    let world = counting_world(Options {
        kept_turns: 0,
        ..Options::default()
    })
    .await;
    let (one, two) = (world.start().await, world.start().await);
    let session = session(&world.client(&one, "ann")).await;
    say(&world, &one, &session, "t1").await;
    one.store.read_ahead().await;
    assert_eq!(say(&world, &one, &session, "t1").await, "1 messages");
    say(&world, &one, &session, "t2").await;
    one.store.read_ahead().await;
    say(&world, &two, &session, "t3").await;
    assert_eq!(say(&world, &one, &session, "t3").await, "5 messages");
    assert_eq!(world.model.requests().len(), 3);
    assert_eq!(world.store.history(&key(&session)).len(), 6);
}

#[tokio::test]
async fn what_was_taken_back_is_not_sent_again() {
    let world = counting_world(Options::default()).await;
    let process = world.start().await;
    let session = session(&world.client(&process, "ann")).await;
    say(&world, &process, &session, "t1").await;
    say(&world, &process, &session, "t2").await;
    process.store.read_ahead().await;
    let rewind = Rewind {
        to_seq: 2,
        etag: String::new(),
        request_id: "r1".to_owned(),
    };
    world.store.rewind_session(&key(&session), rewind).await.unwrap();
    assert_eq!(say(&world, &process, &session, "t3").await, "3 messages");
}

#[tokio::test]
async fn a_kept_session_is_nobody_elses() {
    let world = counting_world(Options::default()).await;
    let process = world.start().await;
    let session = session(&world.client(&process, "ann")).await;
    say(&world, &process, &session, "t1").await;
    process.store.read_ahead().await;
    let error = run(&world.client(&process, "ben"), says(&session, "t2", "Hi"))
        .await
        .unwrap_err();
    assert_eq!(error.reason, "SESSION_NOT_FOUND");
    assert_eq!(say(&world, &process, &session, "t2").await, "3 messages");
}
