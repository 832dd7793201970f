//! Who may set, see and get a team's secrets (`S-8`).

use steward_base::{Fault as _, JobRef, Origin};

use super::*;
use crate::manage_skill::Manage;
use crate::testing::{Rig, agent, person, rig};
use crate::view_skill::Surroundings;

const VALUE: &str = "v-4711-never-shown";

fn skill_md(name: &str) -> String {
    format!(
        "---\nname: {name}\ndescription: Call the API\nrequired_environment_variables: [API_TOKEN, API_BASE]\n---\n# X\n\nCall it.\n"
    )
}

/// The team's skill `call` and the person's own `mine`, both with the same two variables; one of them is set.
async fn with_skills() -> Rig {
    let rig = rig();
    let boss = person("boss", Role::Maintainer);
    for (actor, name, in_team) in [(&boss, "call", true), (&person("ann", Role::Member), "mine", false)] {
        let create = Manage::Create {
            content: skill_md(name),
            category: String::new(),
            in_team,
        };
        rig.manage(actor, name, create).await.unwrap();
    }
    rig.skills
        .set_secret(&boss, "API_TOKEN", SecretValue::new(VALUE))
        .await
        .unwrap();
    rig
}

#[tokio::test]
async fn a_value_is_set_by_a_maintainer_and_never_told() {
    let (rig, ann, boss) = (rig(), person("ann", Role::Member), person("boss", Role::Maintainer));
    let set = async |actor: &Actor, name: &str, value: &str| {
        let set = rig.skills.set_secret(actor, name, SecretValue::new(value)).await;
        set.map_or_else(|error| error.reason(), |_| "ok")
    };
    assert_eq!(set(&ann, "API_TOKEN", VALUE).await, "ROLE_REQUIRED");
    for wrong in [
        "",
        "1A",
        "A-B",
        "A B",
        "ÄÖ",
        "LD_PRELOAD",
        "PATH",
        "bash_env",
        "A=B",
        "STEWARD_TOKEN",
    ] {
        assert_eq!(set(&boss, wrong, VALUE).await, "INVALID_REQUEST", "{wrong}");
    }
    for wrong in [String::new(), "a\0b".to_owned(), "x".repeat(16 * 1024 + 1)] {
        assert_eq!(set(&boss, "API_TOKEN", &wrong).await, "INVALID_REQUEST");
    }
    assert_eq!(set(&boss, "API_TOKEN", VALUE).await, "ok");
    assert_eq!(
        set(&boss, "API_TOKEN", "another").await,
        "ok",
        "a later value replaces it"
    );
    let listed = rig.skills.list_secrets(&ann).await.unwrap();
    assert_eq!(listed.len(), 1);
    assert_eq!((listed[0].name.as_str(), listed[0].readable), ("API_TOKEN", true));
    let shown = format!("{listed:?} {:?}", SecretValue::new(VALUE));
    assert!(!shown.contains(VALUE) && shown.contains("[secret]"), "{shown}");
    assert_eq!(
        rig.skills.delete_secret(&ann, "API_TOKEN").await.unwrap_err().reason(),
        "ROLE_REQUIRED"
    );
    assert!(rig.skills.delete_secret(&boss, "API_TOKEN").await.unwrap());
    assert!(!rig.skills.delete_secret(&boss, "API_TOKEN").await.unwrap());
    for number in 0..MOST_SECRETS {
        assert_eq!(set(&boss, &format!("KEY_{number}"), "x").await, "ok");
    }
    assert_eq!(set(&boss, "ONE_MORE", "x").await, "LIMIT_EXCEEDED");
    assert_eq!(set(&boss, "KEY_0", "y").await, "ok", "what is there may change");
}

/// `S-8`: no agent, job or schedule gets near them, whatever its role.
#[tokio::test]
async fn only_a_persons_own_program_sets_sees_or_gets_a_secret() {
    let rig = with_skills().await;
    let job = Actor {
        origin: Origin::Review,
        job: Some(JobRef {
            id: "j1".to_owned(),
            fence: 1,
        }),
        ..agent("s1")
    };
    let schedule = Actor {
        origin: Origin::Schedule,
        ..person("boss", Role::Admin)
    };
    let turn = Actor {
        role: Role::Admin,
        ..agent("s1")
    };
    for actor in [job, schedule, turn] {
        let value = SecretValue::new("x");
        let outcomes = [
            rig.skills.set_secret(&actor, "API_TOKEN", value).await.map(drop),
            rig.skills.list_secrets(&actor).await.map(drop),
            rig.skills.delete_secret(&actor, "API_TOKEN").await.map(drop),
            rig.skills.deliver_secrets(&actor, "team/call").await.map(drop),
        ];
        for outcome in outcomes {
            let error = outcome.unwrap_err();
            assert_eq!(error.reason(), "GATE_REFUSED");
            assert!(
                error.metadata().contains(&("gate", "person_only".to_owned())),
                "{error:?}"
            );
        }
    }
}

/// `S-8`: what a skill declares and the team keeps goes to whoever runs the skill's commands; nothing else goes anywhere.
#[tokio::test]
async fn a_skill_that_the_team_let_in_gets_what_it_declares_and_no_other_does() {
    let rig = with_skills().await;
    let (ann, boss) = (person("ann", Role::Member), person("boss", Role::Maintainer));
    rig.skills
        .set_secret(&boss, "OTHER", SecretValue::new("not declared"))
        .await
        .unwrap();
    let (skill, delivered) = rig.skills.deliver_secrets(&ann, "call").await.unwrap();
    assert_eq!(skill.full_name(), "team/call");
    assert_eq!(delivered.values, [("API_TOKEN".to_owned(), SecretValue::new(VALUE))]);
    let missing = delivered.missing.iter().map(|variable| variable.name.as_str());
    assert_eq!(missing.collect::<Vec<_>>(), ["API_BASE"]);
    let refused = rig.skills.deliver_secrets(&ann, "mine").await.unwrap_err();
    assert!(
        refused.metadata().contains(&("gate", "own_skill".to_owned())),
        "{refused:?}"
    );
    let blue = Actor {
        team: steward_base::names::TeamId::parse("blue").unwrap(),
        ..boss
    };
    assert!(rig.skills.list_secrets(&blue).await.unwrap().is_empty());
}

/// `S-8`: a missing variable fails no load; what the team keeps is not missing, and no value is in any text.
#[tokio::test]
async fn a_view_says_what_is_missing_and_holds_no_value() {
    let rig = with_skills().await;
    let ann = person("ann", Role::Member);
    let surroundings = Surroundings {
        variables: BTreeSet::new(),
        known: true,
    };
    let names = |variables: &[Variable]| {
        let names = variables.iter().map(|variable| variable.name.clone());
        names.collect::<Vec<_>>().join(" ")
    };
    let team = rig.skills.view_skill_in(&ann, "call", "", &surroundings).await.unwrap();
    assert_eq!((names(&team.missing).as_str(), team.kept.len()), ("API_BASE", 1));
    let own = rig.skills.view_skill_in(&ann, "mine", "", &surroundings).await.unwrap();
    assert_eq!(
        (names(&own.missing).as_str(), own.kept.len()),
        ("API_BASE API_TOKEN", 0)
    );
    let unknown = rig.skills.view_skill(&ann, "mine", "").await.unwrap();
    assert!(unknown.missing.is_empty());
    let context = crate::commands::Context {
        surroundings,
        ..crate::commands::Context::default()
    };
    let typed = rig.skills.expand_command(&ann, "/call now", &context).await.unwrap();
    assert_eq!(names(&typed.missing), "API_BASE");
    let exported = rig
        .skills
        .export_skill(&ann, "teams/red/skills/call", "")
        .await
        .unwrap();
    let index = rig
        .skills
        .get_index(&ann, &crate::index::Filter::default())
        .await
        .unwrap();
    let everything = format!("{team:?} {own:?} {typed:?} {exported:?} {index:?}");
    assert!(!everything.contains(VALUE));
}
