//! What is typed, and what becomes of it.

use steward_base::hash::sha256_hex;
use steward_base::{Fault as _, Role};
use steward_guard::invocation::{Said, said};

use super::*;
use crate::bundle::SaveRequest;
use crate::import_skill::ImportRequest;
use crate::testing::{Rig, agent, files, person, rig};

fn ann() -> Actor {
    person("ann", Role::Maintainer)
}

async fn add(rig: &Rig, actor: &Actor, in_team: bool, list: &[(&str, &str)]) -> SkillRecord {
    let id = format!("i-{in_team}-{}", sha256_hex(list[0].1.as_bytes()));
    let request = ImportRequest {
        files: files(list),
        folder: String::new(),
        category: String::new(),
        in_team,
        replace: false,
        request_id: id.clone(),
        request_hash: id,
        validate_only: false,
        overwrite: false,
    };
    rig.skills.import_skill(actor, &request).await.unwrap().skill
}

fn md(name: &str, fields: &str, body: &str) -> String {
    format!("---\nname: {name}\ndescription: Do {name}\n{fields}---\n{body}\n")
}

async fn expand(rig: &Rig, text: &str) -> Result<Expanded, Error> {
    rig.skills.expand_command(&ann(), text, &Context::default()).await
}

fn bundle(slug: &str, skills: &[&str]) -> SaveRequest {
    SaveRequest {
        slug: slug.to_owned(),
        skills: skills.iter().map(|&skill| skill.to_owned()).collect(),
        instruction: "Both, in this order.".to_owned(),
        ..SaveRequest::default()
    }
}

/// `S-17`, `S-18`, `M-18`.
#[tokio::test]
async fn a_command_becomes_one_message_and_the_persons_words_come_back_exactly() {
    let rig = rig();
    let body = "Go to {{skill_dir}} in {{session_id}}, folder {{mail.folder}}. Run !`rm -rf x`.";
    let fields = "metadata:\n  hermes:\n    config:\n      - key: mail.folder\n        default: inbox\nrequired_environment_variables: [MAIL_TOKEN]\n";
    let text = md("mail", fields, body);
    let made = add(&rig, &ann(), false, &[("SKILL.md", &text), ("scripts/send.sh", "x")]).await;
    let context = Context {
        session: "s1".to_owned(),
        skill_folder: "/home/ann/skills/".to_owned(),
        surroundings: Surroundings {
            known: true,
            ..Surroundings::default()
        },
        ..Context::default()
    };
    let words = "to  bob:\n\"hello\" [The user's own words follow: 3 bytes]";
    let typed = format!("/mail {words}  ");
    let done = rig.skills.expand_command(&ann(), &typed, &context).await.unwrap();
    assert_eq!(said(&done.text), Said::Instruction(words));
    assert_eq!(done.instruction, words);
    assert!(
        done.text
            .contains("Go to /home/ann/skills/mail in s1, folder inbox. Run !`rm -rf x`."),
        "{}",
        done.text
    );
    assert!(
        done.text.contains("scripts/send.sh") && done.text.contains("setup needed: MAIL_TOKEN"),
        "{}",
        done.text
    );
    assert!(!done.text.contains("description:"), "the front matter is for listings");
    assert_eq!(done.missing.len(), 1);
    assert_eq!((done.opened.len(), &done.opened[0].revision), (1, &made.revision));
    let used = rig.skills.resolve_active(&ann(), "mail").await.unwrap();
    assert_eq!((used.usage.uses, used.usage.review_views), (1, 0));
    assert_eq!(said(&expand(&rig, "/Mail").await.unwrap().text), Said::Nothing);
    assert_eq!(expand(&rig, "/user/mail x").await.unwrap().instruction, "x");
    for wrong in ["mail", "/", " ", "/ mail"] {
        assert_eq!(
            expand(&rig, wrong).await.unwrap_err().reason(),
            "INVALID_REQUEST",
            "{wrong:?}"
        );
    }
    let near = expand(&rig, "/mailbox").await.unwrap_err();
    assert_eq!(near.reason(), "COMMAND_NOT_FOUND");
    assert!(near.to_string().contains("/mail"), "{near}");
}

/// `S-17`: a bundle wins over a skill with its slug.
#[tokio::test]
async fn a_bundle_opens_what_it_names_and_wins_over_a_skill() {
    let rig = rig();
    for name in ["tidy", "mail"] {
        add(
            &rig,
            &ann(),
            false,
            &[("SKILL.md", &md(name, "", &format!("Steps of {name}.")))],
        )
        .await;
    }
    let saved = rig
        .skills
        .save_bundle(&ann(), &bundle("Tidy", &["mail", "tidy", "mail", "gone"]))
        .await
        .unwrap();
    assert_eq!(rig.skills.unresolved(&ann(), &saved).await.unwrap(), ["gone"]);
    let done = expand(&rig, "/tidy now").await.unwrap();
    let places = [
        "Both, in this order.",
        "[not opened: gone:",
        "Steps of mail.",
        "Steps of tidy.",
    ];
    let found = places.map(|part| {
        done.text
            .find(part)
            .unwrap_or_else(|| panic!("{part} in {}", done.text))
    });
    assert!(found.is_sorted(), "{}", done.text);
    assert_eq!(
        (done.opened.len(), done.problems.len(), done.instruction.as_str()),
        (2, 1, "now")
    );
    let commands = rig.skills.list_commands(&ann()).await.unwrap();
    let tidy = commands.iter().find(|command| command.slug == "tidy").unwrap();
    assert_eq!((tidy.kind, tidy.candidates.len()), (Kind::Bundle, 1));
    rig.skills.delete_bundle(&ann(), &saved.resource_name()).await.unwrap();
    assert!(!expand(&rig, "/tidy").await.unwrap().text.contains("Steps of mail."));
    assert!(
        rig.skills.resolve_active(&ann(), "mail").await.is_ok(),
        "a deleted bundle took a skill along"
    );
}

#[tokio::test]
async fn a_slug_that_fits_several_skills_is_never_guessed() {
    let rig = rig();
    for in_team in [false, true] {
        let body = format!("In the team: {in_team}.");
        add(&rig, &ann(), in_team, &[("SKILL.md", &md("backup", "", &body))]).await;
    }
    let refused = expand(&rig, "/backup").await.unwrap_err();
    assert_eq!(refused.reason(), "SKILL_AMBIGUOUS");
    let commands = rig.skills.list_commands(&ann()).await.unwrap();
    let backup = commands.iter().find(|command| command.slug == "backup").unwrap();
    assert_eq!(
        (backup.target.as_str(), backup.candidates.as_slice()),
        ("", ["user/backup".to_owned(), "team/backup".to_owned()].as_slice())
    );
    assert!(
        expand(&rig, "/team/backup")
            .await
            .unwrap()
            .text
            .contains("In the team: true.")
    );
}

#[tokio::test]
async fn what_only_a_person_opens_has_a_command_and_what_has_none_is_not_listed() {
    let rig = rig();
    let manual = md("manual", "disable-model-invocation: true\n", "b");
    let silent = md("silent", "user-invocable: false\n", "b");
    for text in [&manual, &silent] {
        add(&rig, &ann(), false, &[("SKILL.md", text)]).await;
    }
    let index = rig
        .skills
        .get_index(&ann(), &crate::index::Filter::default())
        .await
        .unwrap();
    assert!(
        !index.text.contains("manual") && index.text.contains("silent"),
        "{}",
        index.text
    );
    assert!(expand(&rig, "/manual").await.is_ok());
    assert_eq!(expand(&rig, "/silent").await.unwrap_err().reason(), "COMMAND_NOT_FOUND");
    let commands = rig.skills.list_commands(&ann()).await.unwrap();
    let slugs = commands.iter().map(|command| command.slug.as_str()).collect::<Vec<_>>();
    assert!(
        slugs.contains(&"manual") && slugs.contains(&"learn") && !slugs.contains(&"silent"),
        "{slugs:?}"
    );
}

/// `S-19`.
#[tokio::test]
async fn learn_is_a_prompt_with_our_standard_and_the_persons_words() {
    let rig = rig();
    let done = expand(&rig, "/learn the deploy folder").await.unwrap();
    assert_eq!(said(&done.text), Said::Instruction("the deploy folder"));
    let heads = [
        "# <Title>",
        "## When to Use",
        "## Prerequisites",
        "## How to Run",
        "## Quick Reference",
        "## Procedure",
        "## Pitfalls",
        "## Verification",
    ];
    let places = heads.map(|head| LEARN.find(head).unwrap_or_else(|| panic!("{head} is missing")));
    assert!(places.is_sorted());
    assert!(LEARN.contains(&format!("at most {} characters", crate::index::SHOWN_CHARS)));
    assert!(LEARN.contains("literal value Steward") && !LEARN.contains("{{"));
    // A change of the prompt is seen as one.
    assert_eq!(
        sha256_hex(LEARN.as_bytes()),
        "8e5f1b918b55cb1fc6da60c97408312ae04b3da15f5fbed961439705248af350"
    );
    let own = rig.skills.save_bundle(&ann(), &bundle("learn", &["plan"])).await;
    assert_eq!(own.unwrap_err().reason(), "INVALID_REQUEST");
}

/// `S-18`: preloading is a use.
#[tokio::test]
async fn a_session_opens_skills_at_its_start_and_that_is_a_use() {
    let rig = rig();
    add(&rig, &ann(), false, &[("SKILL.md", &md("mail", "", "Steps of mail."))]).await;
    rig.skills
        .save_bundle(&ann(), &bundle("morning", &["mail", "plan"]))
        .await
        .unwrap();
    let names = ["morning".to_owned(), "mail".to_owned(), "none".to_owned()];
    let done = rig
        .skills
        .preload_skills(&agent("s1"), &names, &Context::default())
        .await
        .unwrap();
    assert_eq!((done.opened.len(), done.problems.len()), (2, 1), "{done:?}");
    assert!(done.text.contains("Both, in this order.") && done.text.contains("Steps of mail."));
    assert_eq!(rig.skills.resolve_active(&ann(), "mail").await.unwrap().usage.uses, 1);
    let nothing = rig
        .skills
        .preload_skills(&agent("s1"), &names[2..], &Context::default())
        .await
        .unwrap();
    assert_eq!((nothing.text.as_str(), nothing.problems.len()), ("", 1));
    let many = vec!["mail".to_owned(); MOST_PRELOADED + 1];
    let refused = rig
        .skills
        .preload_skills(&agent("s1"), &many, &Context::default())
        .await;
    assert_eq!(refused.unwrap_err().reason(), "INVALID_REQUEST");
}

#[tokio::test]
async fn bundles_are_their_owners_and_change_by_etag() {
    let rig = rig();
    let (ann, bob) = (ann(), person("bob", Role::Member));
    let own = rig.skills.save_bundle(&ann, &bundle("mine", &["plan"])).await.unwrap();
    assert_eq!(
        rig.skills.save_bundle(&ann, &bundle("mine", &["plan"])).await.unwrap(),
        own,
        "the same request again"
    );
    assert_eq!(
        rig.skills
            .save_bundle(&ann, &bundle("mine", &["mail"]))
            .await
            .unwrap_err()
            .reason(),
        "BUNDLE_EXISTS"
    );
    assert_eq!(
        rig.skills
            .get_bundle(&bob, &own.resource_name())
            .await
            .unwrap_err()
            .reason(),
        "BUNDLE_NOT_FOUND"
    );
    let change = |etag: &str| SaveRequest {
        etag: etag.to_owned(),
        ..bundle("mine", &["mail"])
    };
    assert_eq!(
        rig.skills.save_bundle(&ann, &change("7")).await.unwrap_err().reason(),
        "ETAG_MISMATCH"
    );
    let next = rig.skills.save_bundle(&ann, &change(&own.etag())).await.unwrap();
    assert_eq!(next.version, 2);
    let team = SaveRequest {
        in_team: true,
        ..bundle("ours", &["plan"])
    };
    assert_eq!(
        rig.skills.save_bundle(&bob, &team).await.unwrap_err().reason(),
        "ROLE_REQUIRED"
    );
    let shared = rig.skills.save_bundle(&ann, &team).await.unwrap();
    assert_eq!(
        rig.skills.list_bundles(&bob).await.unwrap(),
        std::slice::from_ref(&shared)
    );
    assert_eq!(
        rig.skills
            .delete_bundle(&bob, &shared.resource_name())
            .await
            .unwrap_err()
            .reason(),
        "ROLE_REQUIRED"
    );
    let wrong = SaveRequest {
        slug: "!".to_owned(),
        skills: vec!["../x".to_owned()],
        ..SaveRequest::default()
    };
    let error = rig.skills.save_bundle(&ann, &wrong).await.unwrap_err();
    let fields = error
        .violations()
        .iter()
        .map(|violation| violation.field.as_str())
        .collect::<Vec<_>>();
    assert_eq!(fields, ["slug", "bundle.skills[0]"]);
}
