//! What goes on beside a turn: corrections, commands, and an external memory that may be dead.

use steward_base::Integrity;
use steward_orchestrator_core::session::{SessionStore as _, TurnState};
use steward_proto::agent::v1 as pb;
use steward_testkit::{ModelServer, PATIENCE, Reply, ScriptedCall, wait_for};

use crate::peers::Offered;
use crate::tests::rig::{Item, Mood, Options, World, completed, key, run, says, session, text};

async fn answering(replies: impl IntoIterator<Item = Reply>) -> World {
    World::new(ModelServer::with_replies(replies).await, Options::default())
}

/// A world whose team has an external memory.
async fn with_provider(replies: impl IntoIterator<Item = Reply>) -> World {
    let world = answering(replies).await;
    *world.knowledge.2.lock().unwrap() = Offered {
        there: true,
        ..Offered::default()
    };
    world
}

async fn told(world: &World, count: usize) -> Vec<String> {
    wait_for("the external memory to be told", PATIENCE, || async {
        world.beside.told().len() >= count
    })
    .await;
    world.beside.told()
}

/// The correction is looked for in what the person said, steering included, and what is staged makes a review due.
#[tokio::test]
async fn a_correction_makes_a_review_due_and_waits_for_no_counter() {
    let world = answering([Reply::text("Noted.").hang_after(0), Reply::text("Yes.")]).await;
    let process = world.start().await;
    let client = world.client(&process, "ann");
    let session = session(&client).await;
    let request = says(&session, "t1", "No. Answer in German from now on.");
    #[expect(clippy::disallowed_methods, reason = "awaited below")]
    let running = tokio::spawn({
        let client = client.clone();
        async move { run(&client, request).await }
    });
    world.model.wait_for_requests(1).await;
    wait_for("the correction to be staged", PATIENCE, || async {
        !world.beside.staged().is_empty()
    })
    .await;
    world.model.release();
    let items = running.await.unwrap().unwrap();
    let due = completed(&items).review_due.unwrap();
    assert_eq!((due.memory, due.skills), (true, false));
    let items = run(&client, says(&session, "t2", "Thanks")).await.unwrap();
    assert_eq!(completed(&items).review_due, Some(pb::ReviewDue::default()));
    wait_for("the second message to be looked at", PATIENCE, || async {
        world.beside.staged().len() == 2
    })
    .await;
    assert_eq!(
        world.beside.staged(),
        [
            (1, "No. Answer in German from now on.".to_owned()),
            (3, "Thanks".to_owned())
        ]
    );
}

/// `S-17`, `M-18`: the model gets the skill's text, what was said stays as it was typed, and a text that is no command is
/// sent as it is.
#[tokio::test]
async fn a_command_is_opened_for_the_model_and_nowhere_else() {
    let world = answering([Reply::text("On it."), Reply::text("Hm."), Reply::text("Yes.")]).await;
    let process = world.start().await;
    let client = world.client(&process, "ann");
    let session = session(&client).await;
    let opened = ("deploy".to_owned(), "# Deploy\n\nAsk first.".to_owned());
    world.beside.commands.lock().unwrap().extend([opened]);
    run(&client, says(&session, "t1", "/deploy to staging, from now on"))
        .await
        .unwrap();
    run(&client, says(&session, "t2", "/usr/bin/make is broken"))
        .await
        .unwrap();
    let refused = run(&client, says(&session, "t3", "/twice")).await.unwrap_err();
    assert_eq!(refused.violations[0].field, "user_message.text");

    let stored = world.store.open(&key(&session), "").await.unwrap().unwrap();
    assert_eq!(stored.session.title, "/deploy to staging, from now on");
    let texts: Vec<&str> = stored
        .history
        .iter()
        .map(|message| message.body.text.as_str())
        .collect();
    assert_eq!(
        texts,
        [
            "/deploy to staging, from now on",
            "On it.",
            "/usr/bin/make is broken",
            "Hm."
        ]
    );
    let (_, sent) = world.model.requests()[0].last_message();
    assert!(
        sent.contains("# Deploy\n\nAsk first.") && sent.ends_with("to staging, from now on"),
        "{sent}"
    );
    let (_, plain) = world.model.requests()[1].last_message();
    assert_eq!(plain, "/usr/bin/make is broken");
    let shown: Vec<&str> = stored
        .session
        .exposures
        .iter()
        .map(|exposure| exposure.artifact.as_str())
        .collect();
    assert_eq!(shown, ["deploy"], "which revision was opened is recorded");
    assert_eq!(stored.session.prefix.unplanned_breaks, 0);
    wait_for("both messages to be looked at", PATIENCE, || async {
        world.beside.staged().len() == 2
    })
    .await;
    assert_eq!(
        world.beside.staged()[0].1,
        "to staging, from now on",
        "no word of the skill is the person's"
    );
    // The same request is known again, whatever the command would open by now.
    world.beside.commands.lock().unwrap().clear();
    let again = run(&client, says(&session, "t1", "/deploy to staging, from now on"))
        .await
        .unwrap();
    assert_eq!(completed(&again).text, "On it.");
    let other = run(&client, says(&session, "t1", "/deploy to production"))
        .await
        .unwrap_err();
    assert_eq!(other.reason, "REQUEST_ID_REUSED");
}

/// `M-16`: the block goes with the person's message, stays there, and is no part of what was said; what rests on it is
/// external.
#[tokio::test]
async fn what_is_recalled_goes_with_the_message_and_stays_there() {
    let world = with_provider([Reply::text("Fine."), Reply::text("Fine.")]).await;
    let process = world.start().await;
    let client = world.client(&process, "ann");
    let session = session(&client).await;
    *world.beside.recalls.lock().unwrap() = vec!["Ann sails on Sundays".to_owned()];
    run(&client, says(&session, "t1", "What shall I do?")).await.unwrap();
    *world.beside.recalls.lock().unwrap() = vec!["Ann sold her boat".to_owned()];
    run(&client, says(&session, "t2", "Really?")).await.unwrap();
    let requests = world.model.requests();
    let (_, first) = requests[0].last_message();
    assert!(first.starts_with("What shall I do?\n\n<memory-context>\n") && first.contains("- Ann sails on Sundays"));
    assert!(!requests[0].system().contains("sails"));
    steward_model::prefix::extends_all(
        &world
            .model
            .requests()
            .into_iter()
            .map(|one| one.body)
            .collect::<Vec<_>>(),
    )
    .unwrap();
    let stored = world.store.open(&key(&session), "").await.unwrap().unwrap();
    assert_eq!(stored.history[0].body.text, "What shall I do?");
    let lowest = stored.history[0].body.spans.iter().map(|span| span.integrity).min();
    assert_eq!(lowest, Some(Integrity::External));
    assert_eq!(
        told(&world, 4).await,
        [
            "t1: TurnStart What shall I do?",
            "t1: What shall I do? -> Fine.",
            "t2: TurnStart Really?",
            "t2: Really? -> Fine."
        ]
    );
}

/// `M-15`: turns go on while the external memory takes nothing in, and reach it in their order when it does again.
#[tokio::test]
async fn a_slow_external_memory_holds_no_turn_up_and_hears_of_turns_in_order() {
    let world = with_provider([Reply::text("One."), Reply::text("Two."), Reply::text("Three.")]).await;
    let process = world.start().await;
    let client = world.client(&process, "ann");
    let session = session(&client).await;
    *world.beside.mood.lock().unwrap() = Mood::Slow;
    for turn in ["t1", "t2", "t3"] {
        completed(&run(&client, says(&session, turn, "Go")).await.unwrap());
    }
    assert!(world.beside.told().is_empty());
    world.beside.let_go();
    let told = told(&world, 6).await;
    let handed_over: Vec<&String> = told.iter().filter(|line| line.contains("->")).collect();
    assert_eq!(handed_over, ["t1: Go -> One.", "t2: Go -> Two.", "t3: Go -> Three."]);
}

/// `M-15`: one that is dead costs nothing but a word in the log.
#[tokio::test]
async fn a_dead_external_memory_costs_a_turn_nothing() {
    let world = with_provider([Reply::text("Fine.")]).await;
    let process = world.start().await;
    let client = world.client(&process, "ann");
    let session = session(&client).await;
    *world.beside.mood.lock().unwrap() = Mood::Dead;
    let items = run(&client, says(&session, "t1", "Go")).await.unwrap();
    assert_eq!(completed(&items).text, "Fine.");
    let stored = world.store.turn(&key(&session), "t1").await.unwrap().unwrap();
    assert_eq!(stored.state, TurnState::Completed);
}

/// A team without one is asked nothing and told nothing.
#[tokio::test]
async fn a_session_without_an_external_memory_asks_none() {
    let world = answering([Reply::text("Fine.")]).await;
    let process = world.start().await;
    let client = world.client(&process, "ann");
    let session = session(&client).await;
    *world.beside.recalls.lock().unwrap() = vec!["Ann sails on Sundays".to_owned()];
    run(&client, says(&session, "t1", "Go")).await.unwrap();
    let (_, sent) = world.model.requests()[0].last_message();
    assert_eq!((sent.as_str(), world.beside.told().len()), ("Go", 0));
}

/// What a tool of the external memory says is text from outside.
#[tokio::test]
async fn a_tool_of_the_external_memory_answers_with_text_from_outside() {
    let calls = Reply::calls([ScriptedCall::new("c1", "archive_search", r#"{"q":"ships"}"#)]);
    let world = answering([calls, Reply::text("Two ships.")]).await;
    *world.knowledge.2.lock().unwrap() = Offered {
        there: true,
        tools: vec![steward_model::ToolSpec {
            name: "archive_search".to_owned(),
            description: String::new(),
            input_schema: serde_json::value::RawValue::from_string("{}".to_owned()).unwrap(),
        }],
        ..Offered::default()
    };
    let process = world.start().await;
    let client = world.client(&process, "ann");
    let session = session(&client).await;
    completed(&run(&client, says(&session, "t1", "Which ships?")).await.unwrap());
    let stored = world.store.open(&key(&session), "").await.unwrap().unwrap();
    let result = &stored.history[2].body;
    assert_eq!(result.text, r#"archive_search of {"q":"ships"}"#);
    assert_eq!(result.spans[0].integrity, Integrity::External);
}

/// `M-17`: a model that repeats the fence leaks nothing, however its stream is cut, and a second stream begins clean.
#[tokio::test]
async fn a_model_that_repeats_the_fence_leaks_nothing() {
    let leak = "Sure. <memory-context>\n- Ann sails on Sundays\n</memory-context> Go sailing. 1 < 2";
    let unclosed = Reply::text_and_calls(
        "Wait <Memory-Context> secret",
        [ScriptedCall::new("m1", "session_search", "{}")],
    );
    let world = with_provider([unclosed, Reply::text(leak)]).await;
    let process = world.start().await;
    let client = world.client(&process, "ann");
    let session = session(&client).await;
    let items = run(&client, says(&session, "t1", "What shall I do?")).await.unwrap();
    let shown = text(&items);
    assert!(
        !shown.contains("sails") && !shown.contains("secret") && !shown.to_lowercase().contains("memory-context"),
        "{shown}"
    );
    assert!(
        shown.starts_with("Wait ") && shown.ends_with("Go sailing. 1 < 2"),
        "{shown}"
    );
    let Some(Item::Completed(end)) = items.last() else {
        panic!("the turn is over")
    };
    assert!(
        shown.ends_with(&end.text),
        "what is stored is what was shown: {}",
        end.text
    );
    let stored = world.store.open(&key(&session), "").await.unwrap().unwrap();
    for message in &stored.history[1..] {
        let sent = message.body.sent();
        assert!(!sent.contains("sails") && !sent.contains("secret"), "{sent}");
    }
}
