//! Sessions that change between two turns: another model, other client tools, a title.

use steward_model::prefix::extends_all;
use steward_proto::agent::v1 as pb;
use steward_testkit::{ModelServer, Reply, ScriptedBlock, ScriptedCall};

use super::{full_request, known, world};
use crate::config::{ModelConfig, ModelProvider};
use crate::tests::rig::{
    Item, Options, World, answers, completed, key, new_session, required, run, says, session, shell,
};

fn two_models(world: &World) -> ModelConfig {
    ModelConfig {
        others: vec!["other".to_owned()],
        ..world.model_config()
    }
}

fn update(session: &str, request_id: &str, path: &str) -> pb::UpdateSessionRequest {
    pb::UpdateSessionRequest {
        session: Some(pb::Session {
            name: session.to_owned(),
            ..pb::Session::default()
        }),
        update_mask: Some(prost_types::FieldMask {
            paths: vec![path.to_owned()],
        }),
        client_tools: Vec::new(),
        request_id: request_id.to_owned(),
    }
}

fn to_model(session: &str, request_id: &str, model: &str) -> pb::UpdateSessionRequest {
    let mut request = update(session, request_id, "model");
    request.session.get_or_insert_default().model = model.to_owned();
    request
}

#[tokio::test]
async fn another_model_assembles_the_prompt_anew_from_what_the_session_was_set_up_with() {
    let world = world().await;
    let process = world.start_with(&two_models(&world)).await;
    let client = world.client(&process, "ann");
    *world.knowledge.0.lock().unwrap() = known("Ann prefers metric units.");
    let made = client.sessions.create_session(full_request("s1")).await.unwrap();
    let made = made.session.unwrap();
    run(&client, says(&made.name, "t1", "Hi")).await.unwrap();
    *world.knowledge.0.lock().unwrap() = known("Ann prefers miles.");

    let changed = client
        .sessions
        .update_session(to_model(&made.name, "u1", "other"))
        .await
        .unwrap();
    let changed = changed.session.unwrap();
    assert_eq!(
        changed.system_prompt,
        made.system_prompt
            .replace("metric units", "miles")
            .replace("Model: scripted", "Model: other"),
    );
    assert_eq!(
        (changed.tools_json.as_str(), changed.planned_prefix_breaks),
        (made.tools_json.as_str(), 1)
    );
    assert_ne!(changed.etag, made.etag);
    let end = run(&client, says(&made.name, "t2", "Go on")).await.unwrap();
    let prefix = completed(&end).prefix.unwrap();
    assert_eq!((prefix.planned_breaks, prefix.unplanned_breaks), (1, 0));
    let sent = world.model.requests();
    assert_eq!(
        (sent[1].json()["model"].as_str(), sent[1].system()),
        (Some("other"), changed.system_prompt)
    );
    run(&client, says(&made.name, "t3", "And on")).await.unwrap();
    extends_all(&world.model.bodies()[1..]).unwrap();
    // The request that made it is still the same one, whatever changed since.
    let again = client.sessions.create_session(full_request("s1")).await.unwrap();
    assert_eq!(again.session.unwrap().name, made.name);
}

#[tokio::test]
async fn the_same_change_is_made_once() {
    let world = world().await;
    let process = world.start_with(&two_models(&world)).await;
    let client = world.client(&process, "ann");
    let name = session(&client).await;
    let first = client
        .sessions
        .update_session(to_model(&name, "u1", "other"))
        .await
        .unwrap();
    client.sessions.update_session(to_model(&name, "u2", "")).await.unwrap();
    let again = client
        .sessions
        .update_session(to_model(&name, "u1", "other"))
        .await
        .unwrap();
    assert_eq!(first.session.unwrap().planned_prefix_breaks, 1);
    let again = again.session.unwrap();
    assert_eq!((again.model.as_str(), again.planned_prefix_breaks), ("scripted", 2));
    let reused = client.sessions.update_session(to_model(&name, "u1", "scripted")).await;
    assert_eq!(reused.unwrap_err().reason, "REQUEST_ID_REUSED");
    let same = client
        .sessions
        .update_session(to_model(&name, "u3", "scripted"))
        .await
        .unwrap();
    assert_eq!(
        same.session.unwrap().planned_prefix_breaks,
        2,
        "nothing changed, so nothing broke"
    );
}

#[tokio::test]
async fn other_tools_take_the_place_of_all_earlier_ones() {
    let world = world().await;
    let process = world.start().await;
    let client = world.client(&process, "ann");
    let name = session(&client).await;
    let same = pb::UpdateSessionRequest {
        client_tools: vec![shell()],
        ..update(&name, "u1", "client_tools")
    };
    let same = client.sessions.update_session(same).await.unwrap().session.unwrap();
    assert_eq!(same.planned_prefix_breaks, 0);
    let none = client
        .sessions
        .update_session(update(&name, "u2", "client_tools"))
        .await
        .unwrap();
    let none = none.session.unwrap();
    assert!(!none.tools_json.contains("shell"));
    assert_eq!(
        (none.planned_prefix_breaks, none.last_prefix_break_reason.as_str()),
        (1, "tools")
    );
}

#[tokio::test]
async fn a_title_breaks_nothing() {
    let world = world().await;
    let process = world.start().await;
    let client = world.client(&process, "ann");
    let name = session(&client).await;
    let mut titled = update(&name, "u1", "title");
    titled.session.get_or_insert_default().title = "The harbour".to_owned();
    let titled = client.sessions.update_session(titled).await.unwrap().session.unwrap();
    assert_eq!(
        (titled.title.as_str(), titled.planned_prefix_breaks),
        ("The harbour", 0)
    );
}

#[tokio::test]
async fn a_session_changes_between_turns_only_and_only_as_it_was_read() {
    let model = ModelServer::with_replies([Reply::call("shell", "{}"), Reply::text("Done.")]).await;
    let world = World::new(model, Options::default());
    let process = world.start_with(&two_models(&world)).await;
    let client = world.client(&process, "ann");
    let name = session(&client).await;
    let items = run(&client, says(&name, "t1", "Look")).await.unwrap();
    let refused = client
        .sessions
        .update_session(to_model(&name, "u1", "other"))
        .await
        .unwrap_err();
    assert_eq!(refused.reason, "TURN_RUNNING");
    let call = required(&items)[0].call_id.clone();
    run(&client, answers(&name, "r1", &[(&call, "ok")])).await.unwrap();
    let mut stale = to_model(&name, "u1", "other");
    stale.session.get_or_insert_default().etag = "0".to_owned();
    let refused = client.sessions.update_session(stale).await.unwrap_err();
    assert_eq!(refused.reason, "ETAG_MISMATCH");
    let unknown = client
        .sessions
        .update_session(to_model(&name, "u1", "third"))
        .await
        .unwrap_err();
    assert_eq!(unknown.reason, "MODEL_UNKNOWN");
    let bens = world.client(&process, "ben");
    let foreign = bens
        .sessions
        .update_session(to_model(&name, "u1", "other"))
        .await
        .unwrap_err();
    assert_eq!(foreign.reason, "SESSION_NOT_FOUND");
    client
        .sessions
        .update_session(to_model(&name, "u1", "other"))
        .await
        .unwrap();
}

#[tokio::test]
async fn every_wrong_field_of_a_change_is_named() {
    let world = world().await;
    let process = world.start().await;
    let client = world.client(&process, "ann");
    let name = session(&client).await;
    let fields = async |request| {
        let error = client.sessions.update_session(request).await.unwrap_err();
        assert_eq!(error.reason, "INVALID_REQUEST");
        error.violations.iter().map(|one| one.field.clone()).collect::<Vec<_>>()
    };
    let stray = pb::UpdateSessionRequest {
        client_tools: vec![shell()],
        update_mask: None,
        ..update("nothing", "u1", "")
    };
    assert_eq!(fields(stray).await, ["session.name", "update_mask", "client_tools"]);
    assert_eq!(fields(update(&name, "u1", "skip_review")).await, ["update_mask"]);
    let mut wrong = update(&name, "", "title");
    wrong.session.get_or_insert_default().title = "two\nlines".to_owned();
    assert_eq!(fields(wrong).await, ["request_id", "session.title"]);
    let taken = pb::UpdateSessionRequest {
        client_tools: vec![pb::ClientTool {
            name: "memory".to_owned(),
            ..shell()
        }],
        ..update(&name, "u1", "client_tools")
    };
    assert_eq!(
        client.sessions.update_session(taken).await.unwrap_err().reason,
        "TOOL_NAME_TAKEN"
    );
}

#[tokio::test]
async fn reasoning_is_kept_with_its_message_and_goes_back_after_a_restart() {
    let reasons = |signature: &str| ScriptedBlock::Thinking {
        text: "Hm.".to_owned(),
        signature: signature.to_owned(),
    };
    let calls = [
        reasons("sig-1"),
        ScriptedBlock::Call(ScriptedCall::new(
            "toolu_1",
            "memory",
            r#"{"action": "add", "content": "x"}"#,
        )),
    ];
    let says_done = [reasons("sig-2"), ScriptedBlock::Text("Done.".to_owned())];
    let replies = [Reply::blocks(calls), Reply::blocks(says_done), Reply::text("Yes.")];
    let world = World::new(ModelServer::with_replies(replies).await, Options::default());
    let config = ModelConfig {
        provider: ModelProvider::Anthropic,
        ..two_models(&world)
    };
    let process = world.start_with(&config).await;
    let client = world.client(&process, "ann");
    let made = client
        .sessions
        .create_session(new_session("ann", "s1", Vec::new()))
        .await
        .unwrap();
    let name = made.session.unwrap().name;
    let items = run(&client, says(&name, "t1", "Remember x")).await.unwrap();
    assert_eq!(completed(&items).text, "Done.");
    assert!(
        !items
            .iter()
            .any(|item| matches!(item, Item::TextDelta(delta) if delta.text.contains("Hm.")))
    );
    process.kill().await;

    let process = world.start_with(&config).await;
    let client = world.client(&process, "ann");
    let end = run(&client, says(&name, "t2", "Is it so?")).await.unwrap();
    assert_eq!(completed(&end).prefix.unwrap().unplanned_breaks, 0);
    extends_all(&world.model.bodies()).unwrap();
    let sent = world.model.requests()[2].text();
    assert!(sent.contains("sig-1") && sent.contains("sig-2"), "{sent}");
    let history = world.store.history(&key(&name));
    let native: Vec<bool> = history.iter().map(|message| message.body.native.is_some()).collect();
    assert_eq!(native, [false, true, false, true, false, false]);
    assert!(!history.iter().any(|message| message.body.text.contains("Hm.")));
}
