//! The loop from end to end: a lesson is met, kept through the gates, and in front of the next session; and what may not
//! be lost on the way. Every scenario runs in both shapes.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test fails by panicking"
)]

mod common;

use std::time::Duration;

use steward_model::prefix::extends_all;
use steward_proto::common::v1::Origin;
use steward_proto::learning::v1::ReviewState;
use steward_proto::skill::v1::SkillProvenance;
use steward_testkit::{ModelServer, Reply, ScriptedCall};
use steward_tests::person::{client_tool, fresh_id, result};
use steward_tests::{Shape, Stack, StackOptions, script};

both_shapes!(a_lesson_is_kept_and_stands_before_the_next_session);

async fn a_lesson_is_kept_and_stands_before_the_next_session(shape: Shape) {
    let model = ModelServer::scripted(script::learner).await;
    let stack = Stack::start("loop", shape, common::reviews_after_each_turn(&model));
    let owner = stack.owner().await;

    let first = owner.session(Vec::new()).await;
    let turn = owner.say(&first, "Remember: the staging window opens at 06:40").await;
    assert_eq!(turn.answer(), "You said: Remember: the staging window opens at 06:40");
    assert_eq!(turn.streamed(), turn.answer());

    let reviews = owner.reviews_ended(1).await;
    assert_eq!(reviews[0].state(), ReviewState::Succeeded, "{:?}", reviews[0]);
    assert_eq!(reviews[0].writes.len(), 2);
    assert!(!reviews[0].summary.is_empty());
    assert_eq!(owner.notes().await, ["the staging window opens at 06:40"]);
    let skills = owner.skills().await;
    let kept = skills
        .iter()
        .find(|skill| skill.name.ends_with("/skills/kept-lesson"))
        .expect("the skill is there");
    assert_eq!(kept.provenance(), SkillProvenance::Agent);

    let second = owner.session(Vec::new()).await;
    let prompt = owner.read_session(&second).await.system_prompt;
    assert!(prompt.contains("the staging window opens at 06:40"), "{prompt}");
    assert!(prompt.contains("kept-lesson"), "{prompt}");
    let earlier = owner.read_session(&first).await;
    assert!(
        !earlier.system_prompt.contains("06:40"),
        "a running session keeps its prompt"
    );
    assert_eq!(earlier.unplanned_prefix_breaks, 0);

    let found = owner.search("staging window").await;
    assert_eq!(found.conversations.len(), 1);
    assert_eq!(found.conversations[0].session, first);
    let entry = owner
        .client
        .memory
        .list_entries(steward_proto::memory::v1::ListEntriesRequest {
            parent: format!("{}/memory/notes", owner.user),
            ..Default::default()
        });
    let provenance = entry.await.unwrap().entries[0].provenance.clone().expect("provenance");
    assert_eq!(provenance.origin(), Origin::Review);
    assert_eq!(provenance.evidence.expect("evidence").spans, ["s1"]);
}

both_shapes!(nothing_to_save_is_an_ordinary_end);

async fn nothing_to_save_is_an_ordinary_end(shape: Shape) {
    let model = ModelServer::scripted(script::learner).await;
    let stack = Stack::start("nothing", shape, common::reviews_after_each_turn(&model));
    let owner = stack.owner().await;
    let session = owner.session(Vec::new()).await;
    owner.say(&session, "Good morning").await;
    let reviews = owner.reviews_ended(1).await;
    assert_eq!(reviews[0].state(), ReviewState::NothingToSave);
    assert_eq!(reviews[0].rejected.len(), 1);
    assert!(owner.notes().await.is_empty());
}

both_shapes!(what_was_kept_survives_a_restart_of_everything);

async fn what_was_kept_survives_a_restart_of_everything(shape: Shape) {
    let model = ModelServer::scripted(script::learner).await;
    let mut stack = Stack::start("restart", shape, common::reviews_after_each_turn(&model));
    let owner = stack.owner().await;
    let session = owner.session(Vec::new()).await;
    owner.say(&session, "Remember: tea at four").await;
    owner.reviews_ended(1).await;
    stack.restart_all().await;

    let owner = stack.owner().await;
    assert_eq!(owner.notes().await, ["tea at four"]);
    let again = owner.say(&session, "and now?").await;
    assert_eq!(again.answer(), "You said: and now?");
    let read = owner.read_session(&session).await;
    assert_eq!(
        read.unplanned_prefix_breaks, 0,
        "the prompt is the stored one, byte for byte"
    );
    assert_eq!(owner.messages(&session).await.len(), 4);
}

both_shapes!(counters_belong_to_the_session_and_not_to_a_process_or_a_model);

/// D-01: interval 4, a restart after turn 2, another model before turn 3: one review, after turn 4.
async fn counters_belong_to_the_session_and_not_to_a_process_or_a_model(shape: Shape) {
    let model = ModelServer::scripted(script::learner).await;
    let options = StackOptions::with_model(&model.base_url())
        .set("AGENT__MODEL__OTHERS", "[\"scripted-too\"]")
        .set("AGENT__NUDGES__MEMORY_TURNS", 4)
        .set("AGENT__NUDGES__SKILL_ITERATIONS", 0);
    let mut stack = Stack::start("counters", shape, options);
    let owner = stack.owner().await;
    let session = owner.session(Vec::new()).await;
    owner.say(&session, "one").await;
    owner.say(&session, "two").await;
    owner.remember("the tide table hangs in the hall").await.unwrap();
    stack.kill("agent-orchestrator");
    stack.start_again("agent-orchestrator");
    let owner = stack.owner().await;
    let changed = owner.change_model(&session, "scripted-too", &fresh_id()).await.unwrap();
    assert_eq!(
        (changed.model.as_str(), changed.turns_since_memory),
        ("scripted-too", 2)
    );
    assert!(
        changed.system_prompt.contains("the tide table hangs in the hall"),
        "a prompt that is assembled anew shows what is known by then"
    );
    owner.say(&session, "three").await;
    assert!(owner.reviews().await.is_empty(), "a review came before its time");
    owner.say(&session, "four").await;
    let reviews = owner.reviews_ended(1).await;
    assert_eq!(reviews.len(), 1);
    assert!(reviews[0].memory && !reviews[0].skills);
    let read = owner.read_session(&session).await;
    assert_eq!(read.turns_since_memory, 0);
    assert_eq!((read.planned_prefix_breaks, read.unplanned_prefix_breaks), (1, 0));
    assert_eq!(read.last_prefix_break_reason, "model");
    let asked: Vec<_> = model
        .requests()
        .iter()
        .filter(|request| !script::is_review(request))
        .map(|request| request.json()["model"].as_str().unwrap().to_owned())
        .collect();
    assert_eq!(asked, ["scripted", "scripted", "scripted-too", "scripted-too"]);
}

both_shapes!(using_memory_puts_its_review_off_and_no_nudge_is_stored);

/// D-41: interval 2, and the tool is used in the second turn: the count begins anew. A person's messages stay their own words.
async fn using_memory_puts_its_review_off_and_no_nudge_is_stored(shape: Shape) {
    let model = ModelServer::scripted(|request| {
        if script::is_review(request) {
            return script::nothing_to_save();
        }
        match (script::asked(request).as_str(), script::since_user(request).len()) {
            ("keep it", 0) => Reply::calls([remember("tea at four")]),
            _ => Reply::text("fine"),
        }
    })
    .await;
    let options = common::no_reviews(&model).set("AGENT__NUDGES__MEMORY_TURNS", 2);
    let stack = Stack::start("put-off", shape, options);
    let owner = stack.owner().await;
    let session = owner.session(Vec::new()).await;
    owner.say(&session, "plain").await;
    owner.say(&session, "keep it").await;
    assert_eq!(owner.notes().await, ["tea at four"]);
    assert_eq!(owner.read_session(&session).await.turns_since_memory, 0);
    owner.say(&session, "third").await;
    assert!(
        owner.reviews().await.is_empty(),
        "the pair of turns began with the tool"
    );
    owner.say(&session, "fourth").await;
    owner.reviews_ended(1).await;
    let messages = owner.messages(&session).await;
    let said = messages.iter().filter(|message| message.role == "user");
    let said: Vec<_> = said.map(|message| message.text.as_str()).collect();
    assert_eq!(said, ["plain", "keep it", "third", "fourth"]);
}

fn remember(content: &str) -> ScriptedCall {
    let arguments = serde_json::json!({"action": "add", "target": "notes", "content": content});
    ScriptedCall::new("note", "memory", arguments.to_string())
}

both_shapes!(a_session_keeps_its_prefix_over_lessons_midnight_and_a_restart);

/// D-34: memory is saved in turn 2 and a skill made in turn 3, a day passes before turn 4, and the process is another one in
/// turn 5: each request begins with the bytes of the one before.
async fn a_session_keeps_its_prefix_over_lessons_midnight_and_a_restart(shape: Shape) {
    let model =
        ModelServer::scripted(
            |request| match (script::asked(request).as_str(), script::since_user(request).len()) {
                ("save it", 0) => Reply::calls([remember("tea at four")]),
                ("make it", 0) => {
                    let content = script::skill_text("brew-tea", "Boil water first.");
                    let arguments = serde_json::json!({"action": "create", "name": "brew-tea", "content": content});
                    Reply::calls([ScriptedCall::new("skill", "skill_manage", arguments.to_string())])
                }
                _ => Reply::text("fine"),
            },
        )
        .await;
    let mut stack = Stack::start("whole-prefix", shape, common::no_reviews(&model));
    let owner = stack.owner().await;
    let session = owner.session(Vec::new()).await;
    for said in ["one", "save it", "make it"] {
        owner.say(&session, said).await;
    }
    assert_eq!(owner.notes().await, ["tea at four"]);
    assert!(owner.view_skill("brew-tea").await.is_ok(), "the skill was made");
    stack.let_pass(Duration::from_hours(24));
    owner.say(&session, "four").await;
    stack.kill("agent-orchestrator");
    stack.start_again("agent-orchestrator");
    let owner = stack.owner().await;
    owner.say(&session, "five").await;
    let bodies: Vec<_> = model.requests().into_iter().map(|request| request.body).collect();
    assert_eq!(bodies.len(), 7);
    extends_all(&bodies).expect("every request extends the one before");
    let read = owner.read_session(&session).await;
    assert_eq!((read.planned_prefix_breaks, read.unplanned_prefix_breaks), (0, 0));
    assert!(
        !read.system_prompt.contains("tea at four"),
        "it is in the next session's prompt"
    );
}

both_shapes!(other_client_tools_begin_a_session_anew_and_only_between_turns);

async fn other_client_tools_begin_a_session_anew_and_only_between_turns(shape: Shape) {
    let model = ModelServer::scripted(|request| match script::asked(request).as_str() {
        "look" if script::since_user(request).is_empty() => Reply::call("look", "{}"),
        said => Reply::text(format!("You said: {said}")),
    })
    .await;
    let stack = Stack::start("tools-anew", shape, common::no_reviews(&model));
    let owner = stack.owner().await;
    let session = owner.session(vec![client_tool("look")]).await;
    let waiting = owner.say(&session, "look").await;
    let id = fresh_id();
    let refused = owner
        .change_tools(&session, vec![client_tool("shell")], &id)
        .await
        .unwrap_err();
    assert_eq!(refused.reason, "TURN_RUNNING", "a turn waits for its client");
    owner
        .answer_calls(&session, vec![result(&waiting.calls()[0], "a door")])
        .await;

    let changed = owner
        .change_tools(&session, vec![client_tool("shell")], &id)
        .await
        .unwrap();
    let again = owner
        .change_tools(&session, vec![client_tool("shell")], &id)
        .await
        .unwrap();
    assert_eq!(again, changed, "a repeated request changes nothing more");
    let other = owner.change_tools(&session, Vec::new(), &id).await.unwrap_err();
    assert_eq!(other.reason, "REQUEST_ID_REUSED");
    owner.say(&session, "and on").await;
    let read = owner.read_session(&session).await;
    assert_eq!((read.planned_prefix_breaks, read.unplanned_prefix_breaks), (1, 0));
    assert_eq!(read.last_prefix_break_reason, "tools");
    let last = model.requests().pop().unwrap();
    let names = last.tool_names();
    assert!(
        names.contains(&"shell".to_owned()) && !names.contains(&"look".to_owned()),
        "{names:?}"
    );
    assert_eq!(last.tool_results().len(), 1, "what was said stays");
}
