//! What an external memory is owed: a turn that it did not take in, or that a lost process did not hand over, is told later, in
//! its order and once it is over; a session's end is told once (`M-15`).

use steward_orchestrator_core::session::SessionStore as _;
use steward_proto::agent::v1 as pb;
use steward_testkit::{ModelServer, PATIENCE, Reply, ScriptedCall, wait_for};

use crate::owed::Owed as _;
use crate::peers::Offered;
use crate::tests::rig::{Mood, Options, World, answers, completed, key, run, says, session};

async fn with_provider(replies: impl IntoIterator<Item = Reply>) -> World {
    let world = World::new(ModelServer::with_replies(replies).await, Options::default());
    *world.knowledge.2.lock().unwrap() = Offered {
        there: true,
        ..Offered::default()
    };
    world
}

fn be(world: &World, mood: Mood) {
    *world.beside.mood.lock().unwrap() = mood;
}

/// The turns that were handed over.
fn handed_over(world: &World) -> Vec<String> {
    world
        .beside
        .told()
        .into_iter()
        .filter(|line| line.contains("->"))
        .collect()
}

/// A process that is lost between the answer and the handing over: the next one finds what is owed in the session.
#[tokio::test]
async fn a_turn_that_a_lost_process_did_not_hand_over_is_told_by_the_next_one() {
    let world = with_provider([Reply::text("One."), Reply::text("Two.")]).await;
    let process = world.start().await;
    let client = world.client(&process, "ann");
    let session = session(&client).await;
    be(&world, Mood::Slow);
    for turn in ["t1", "t2"] {
        completed(&run(&client, says(&session, turn, "Go")).await.unwrap());
    }
    process.kill().await;
    assert_eq!(handed_over(&world), Vec::<String>::new());

    be(&world, Mood::Well);
    let process = world.start().await;
    assert_eq!(process.turns.pay_all(10).await.unwrap(), 2);
    assert_eq!(handed_over(&world), ["t1: Go -> One.", "t2: Go -> Two."]);
    assert_eq!(process.turns.pay_all(10).await.unwrap(), 0, "nothing is owed any more");
    assert_eq!(handed_over(&world).len(), 2);
}

/// Whatever is handed over comes behind what is still owed, and a memory that does not answer is asked once a pass.
#[tokio::test]
async fn a_turn_that_was_not_taken_in_comes_before_the_next_one() {
    let world = with_provider([Reply::text("One."), Reply::text("Two.")]).await;
    let process = world.start().await;
    let client = world.client(&process, "ann");
    let session = session(&client).await;
    be(&world, Mood::Dead);
    completed(&run(&client, says(&session, "t1", "Go")).await.unwrap());
    assert_eq!(process.turns.pay_all(10).await.unwrap(), 0);
    assert_eq!(world.owed.of(&key(&session)).await.unwrap().len(), 1);
    be(&world, Mood::Well);
    completed(&run(&client, says(&session, "t2", "On")).await.unwrap());
    wait_for("both turns to be handed over", PATIENCE, || async {
        handed_over(&world).len() == 2
    })
    .await;
    assert_eq!(handed_over(&world), ["t1: Go -> One.", "t2: On -> Two."]);
}

/// A turn that waits for its client is told when it is over, and one that failed or was taken back not at all.
#[tokio::test]
async fn only_a_turn_that_was_answered_is_told() {
    let calls = Reply::calls([ScriptedCall::new("c1", "shell", "{}")]);
    let world = with_provider([calls, Reply::text("Done."), Reply::error(400, "no")]).await;
    let process = world.start().await;
    let client = world.client(&process, "ann");
    let session = session(&client).await;
    run(&client, says(&session, "t1", "Go")).await.unwrap();
    assert_eq!(process.turns.pay_all(10).await.unwrap(), 0, "it waits");
    completed(&run(&client, answers(&session, "t1b", &[("c1", "ok")])).await.unwrap());
    wait_for("the turn to be handed over", PATIENCE, || async {
        handed_over(&world) == ["t1: Go -> Done."]
    })
    .await;
    let failed = run(&client, says(&session, "t2", "On")).await;
    drop(failed);
    assert_eq!(process.turns.pay_all(10).await.unwrap(), 1, "there is nothing to tell");
    assert_eq!(handed_over(&world).len(), 1);
}

/// The end of a session is told once, also when the process is lost right behind the deletion.
#[tokio::test]
async fn the_end_of_a_session_is_told_once() {
    let world = with_provider([Reply::text("One.")]).await;
    let process = world.start().await;
    let client = world.client(&process, "ann");
    let session = session(&client).await;
    completed(&run(&client, says(&session, "t1", "Go")).await.unwrap());
    let delete = pb::DeleteSessionRequest {
        name: session.clone(),
        etag: "another".to_owned(),
    };
    assert!(client.sessions.delete_session(delete.clone()).await.is_err());
    process.turns.pay_all(10).await.unwrap();
    assert!(world.store.session(&key(&session)).await.unwrap().is_some());
    let delete = pb::DeleteSessionRequest {
        etag: String::new(),
        ..delete
    };
    client.sessions.delete_session(delete).await.unwrap();
    process.kill().await;
    let process = world.start().await;
    for _ in 0..2 {
        process.turns.pay_all(10).await.unwrap();
    }
    let ends = world
        .beside
        .told()
        .iter()
        .filter(|line| line.ends_with(": the end"))
        .count();
    assert_eq!(ends, 1, "{:?}", world.beside.told());
}
