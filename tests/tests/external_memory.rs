//! What a team's external memory is owed, whatever becomes of the processes (`M-15`), its part in erasing a person (`M-14`), and
//! what a session records of the skills that were opened in it (`S-17`, `S-18`).
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test fails by panicking"
)]

mod common;

use std::collections::BTreeSet;

use steward_proto::agent::v1 as agent;
use steward_proto::learning::v1 as learning;
use steward_proto::skill::v1 as skill;
use steward_testkit::{ModelServer, Reply, wait_for};
use steward_tests::person::{SOON, fresh_id};
use steward_tests::{Person, ReferenceMemory, Shape, Stack, script};

both_shapes!(a_turn_is_handed_over_although_the_process_dies_right_behind_it);

/// Killed between the final answer and the handing over: the next process hands the turn over, once, and what follows behind it.
async fn a_turn_is_handed_over_although_the_process_dies_right_behind_it(shape: Shape) {
    let reference = ReferenceMemory::start(&[]).await;
    let model = ModelServer::scripted(|_| Reply::text("noted")).await;
    let options = reference
        .beside(common::no_reviews(&model))
        .set("AGENT__TURN__LEASE_SECONDS", 2);
    let mut stack = Stack::start("owed", shape, options);
    let owner = stack.owner().await;
    let session = owner.session(Vec::new()).await;
    stack.stop("agent-orchestrator").await;
    stack.start_again_with_failpoint("agent-orchestrator", "turn.final_append.after=kill");
    let owner = stack.owner().await;
    // The connection breaks in the middle.
    let _ = owner.say_as(&session, "The tide turns at noon", &fresh_id()).await;
    stack.wait_for_crash("agent-orchestrator").await;
    assert!(reference.turns().is_empty());

    stack.start_again("agent-orchestrator");
    let owner = stack.owner().await;
    owner.say(&session, "And at midnight").await;
    wait_for("both turns to be handed over", SOON, || async {
        reference.turns().len() == 2
    })
    .await;
    assert_eq!(
        reference.turns(),
        ["The tide turns at noon -> noted", "And at midnight -> noted"]
    );

    let delete = agent::DeleteSessionRequest {
        name: session,
        etag: String::new(),
    };
    owner.client.sessions.delete_session(delete).await.unwrap();
    let ends = || {
        reference
            .events()
            .iter()
            .filter(|event| event.starts_with("SessionEnd"))
            .count()
    };
    wait_for("the end to be told", SOON, || async { ends() == 1 }).await;
}

async fn erase(person: &Person) -> learning::ErasePersonResponse {
    let request = learning::ErasePersonRequest {
        user: person.user.clone(),
        shared: false,
    };
    person.client.people.erase_person(request).await.unwrap()
}

both_shapes!(an_erased_person_is_gone_from_the_external_memory_and_from_the_library);

/// The memory erases its part and the report says so; of own skills nothing is left, archived ones included.
async fn an_erased_person_is_gone_from_the_external_memory_and_from_the_library(shape: Shape) {
    let reference = ReferenceMemory::start(&[]).await;
    let model = ModelServer::scripted(|_| Reply::text("noted")).await;
    let options = reference.beside(common::no_reviews(&model));
    let stack = Stack::start("erased", shape, options);
    let owner = stack.owner().await;
    for name in ["moor-ship", "weigh-anchor"] {
        let text = script::skill_text(name, "Mind the windlass.");
        owner.create_skill(name, &text).await.unwrap();
    }
    let archived = owner.skills().await.remove(0).name;
    let archive = skill::ArchiveSkillRequest { name: archived };
    owner.client.skills.archive_skill(archive).await.unwrap();
    let session = owner.session(Vec::new()).await;
    owner.say(&session, "I sail on Sundays").await;
    wait_for("the turn to be handed over", SOON, || async {
        reference.turns().len() == 1
    })
    .await;

    let receipt = erase(&owner).await;
    assert_eq!((receipt.found_after, receipt.skills), (0, 2), "{receipt:?}");
    let told: Vec<_> = receipt
        .derived
        .iter()
        .filter(|one| one.name.ends_with("/externalMemory"))
        .map(|one| one.erased)
        .collect();
    assert_eq!(told, [true], "{receipt:?}");
    assert!(reference.turns().is_empty());
    assert!(
        owner
            .skills()
            .await
            .iter()
            .all(|one| !one.name.starts_with(&owner.user))
    );

    // One that does not answer is named, and the call may be made again.
    reference.be_slow(true);
    let left = erase(&owner).await;
    assert_eq!(left.found_after, 1, "{left:?}");
    assert!(left.derived[0].cause.contains("ask again"), "{left:?}");
    reference.be_slow(false);
    assert_eq!(erase(&owner).await.found_after, 0);
}

both_shapes!(a_session_records_each_skill_that_was_opened_in_it);

/// Commands, bundles and what is opened at the start: the session names the revision of each skill that the model saw.
async fn a_session_records_each_skill_that_was_opened_in_it(shape: Shape) {
    let model = ModelServer::scripted(|_| Reply::text("on it")).await;
    let stack = Stack::start("opened", shape, common::no_reviews(&model));
    let owner = stack.owner().await;
    for (name, body) in [
        ("moor-ship", "Tie the bow line first."),
        ("weigh-anchor", "Mind the windlass."),
        ("trim-sails", "Ease the sheet."),
    ] {
        owner.create_skill(name, &script::skill_text(name, body)).await.unwrap();
    }
    let save = skill::SaveBundleRequest {
        parent: owner.user.clone(),
        slug: "leave-port".to_owned(),
        bundle: Some(skill::Bundle {
            description: "Leaves the port".to_owned(),
            skills: vec!["weigh-anchor".to_owned(), "trim-sails".to_owned()],
            ..skill::Bundle::default()
        }),
        ..skill::SaveBundleRequest::default()
    };
    owner.client.bundles.save_bundle(save).await.unwrap();

    let preloaded = agent::SessionSetup {
        preload_skills: vec!["leave-port".to_owned()],
        ..agent::SessionSetup::default()
    };
    let opened = owner.session_with(preloaded).await.unwrap();
    assert!(opened.system_prompt.contains("Ease the sheet."), "S-18");
    assert_eq!(
        loaded(&opened),
        BTreeSet::from(["weigh-anchor", "trim-sails"].map(str::to_owned))
    );

    let session = owner.session(Vec::new()).await;
    assert!(loaded(&owner.read_session(&session).await).is_empty());
    owner.say(&session, "/moor-ship at pier nine").await;
    let read = owner.read_session(&session).await;
    assert_eq!(loaded(&read), BTreeSet::from(["moor-ship".to_owned()]));
    owner.say(&session, "/leave-port at noon").await;
    owner.say(&session, "/moor-ship again").await;
    let read = owner.read_session(&session).await;
    let all = ["moor-ship", "weigh-anchor", "trim-sails"].map(str::to_owned);
    assert_eq!(loaded(&read), BTreeSet::from(all));
    let revisions = read.exposures.iter().filter(|one| one.stage == "loaded");
    assert!(revisions.clone().all(|one| !one.revision.is_empty()));
    assert_eq!(revisions.count(), 3, "the same revision is recorded once");
    let sent: Vec<String> = model.requests().iter().map(|one| one.last_message().1).collect();
    assert!(sent[1].contains("Mind the windlass.") && sent[1].contains("Ease the sheet."));
    assert!(sent[1].ends_with("at noon"), "{}", sent[1]);
}

/// The skills that a session was shown in full.
fn loaded(session: &agent::Session) -> BTreeSet<String> {
    let loaded = session.exposures.iter().filter(|one| one.stage == "loaded");
    loaded
        .map(|one| one.artifact.rsplit('/').next().unwrap_or_default().to_owned())
        .collect()
}
