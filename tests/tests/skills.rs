//! Skills across the services: a folder outside that is followed and never written, and `/learn` as a turn takes it.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test fails by panicking"
)]

mod common;

use steward_proto::skill::v1 as skill;
use steward_testkit::{ModelServer, Reply, TempDir, wait_for};
use steward_tests::person::{SOON, fresh_id};
use steward_tests::{Shape, Stack, StackOptions, script};

both_shapes!(a_folder_outside_is_followed_and_never_written);

/// `S-6`: what stands in the folder is a skill of the scope `external`; a change and a removal there are seen without a restart,
/// and nobody changes it from here.
async fn a_folder_outside_is_followed_and_never_written(shape: Shape) {
    let folder = TempDir::new("outside");
    let file = folder.join("ops/tidy/SKILL.md");
    std::fs::create_dir_all(file.parent().unwrap()).unwrap();
    std::fs::write(&file, script::skill_text("tidy", "Sweep first.")).unwrap();
    let options = StackOptions::default()
        .set(
            "SKILLS__EXTERNAL",
            format!("[{{ path = \"{}\" }}]", folder.path().display()),
        )
        .set("SKILLS__EXTERNAL_SECONDS", 1);
    let stack = Stack::start("outside", shape, options);
    let owner = stack.owner().await;
    let seen = owner.view_skill("external/ops/tidy").await.unwrap();
    assert!(seen.content.contains("Sweep first."), "{}", seen.content);
    let edit = skill::ManageSkillRequest {
        parent: owner.user.clone(),
        skill: "tidy".to_owned(),
        request_id: fresh_id(),
        action: Some(skill::manage_skill_request::Action::Edit(skill::EditSkill {
            content: script::skill_text("tidy", "Not from here."),
        })),
        ..skill::ManageSkillRequest::default()
    };
    let refused = owner.client.skills.manage_skill(edit).await.unwrap_err();
    assert_eq!(refused.reason, "GATE_REFUSED");
    std::fs::write(&file, script::skill_text("tidy", "Mop afterwards.")).unwrap();
    wait_for("the change in the folder to be seen", SOON, || async {
        let seen = owner.view_skill("tidy").await.unwrap();
        seen.content.contains("Mop afterwards.")
    })
    .await;
    std::fs::remove_dir_all(folder.join("ops")).unwrap();
    wait_for("the removal from the folder to be seen", SOON, || async {
        owner.view_skill("tidy").await.is_err()
    })
    .await;
}

both_shapes!(learn_becomes_a_prompt_with_the_standard_and_the_persons_words);

/// `S-19`: the model reads the authoring standard and what the person named; what was said is the person's line.
async fn learn_becomes_a_prompt_with_the_standard_and_the_persons_words(shape: Shape) {
    let model = ModelServer::scripted(|_| Reply::text("I will")).await;
    let stack = Stack::start("learn", shape, common::no_reviews(&model));
    let owner = stack.owner().await;
    let session = owner.session(Vec::new()).await;
    owner.say(&session, "/learn how we deploy to staging").await;
    let sent = model.requests()[0].last_message().1;
    assert!(
        sent.contains("Front matter") && sent.contains("author") && sent.contains("how we deploy to staging"),
        "{sent}"
    );
    let said = owner.messages(&session).await.remove(0).text;
    assert_eq!(said, "/learn how we deploy to staging");
}
