//! The write gates through the wire, with the tokens of real jobs (`S-14`, `S-15`, D-06).

use super::*;

/// Names of skills, what their rows are turned into, and the gate that keeps automatic writers from them.
const KINDS: [(&str, &str, &str); 8] = [
    (
        "learned",
        "UPDATE skills SET provenance = 'agent_created' WHERE name = 'learned'",
        "",
    ),
    (
        "mine",
        "UPDATE skills SET provenance = 'user_made' WHERE name = 'mine'",
        "user_made",
    ),
    (
        "hubbed",
        "UPDATE skills SET provenance = 'hub' WHERE name = 'hubbed'",
        "hub",
    ),
    (
        "outside",
        "UPDATE skills SET provenance = 'external' WHERE name = 'outside'",
        "external",
    ),
    (
        "brought",
        "UPDATE skills SET provenance = 'imported' WHERE name = 'brought'",
        "user_made",
    ),
    (
        "bundled",
        "UPDATE skills SET provenance = 'builtin' WHERE name = 'bundled'",
        "builtin",
    ),
    (
        "pinned",
        "UPDATE skills SET provenance = 'agent_created', pinned = 1 WHERE name = 'pinned'",
        "pinned",
    ),
    (
        "unknown",
        "UPDATE skills SET provenance = 'galaxy' WHERE name = 'unknown'",
        "unreadable",
    ),
];

fn actions(name: &str) -> Vec<Action> {
    vec![
        Action::Edit(pb::EditSkill {
            content: skill_md(name).replace("Steps.", "Other steps."),
        }),
        patch("steps", "parts"),
        Action::WriteFile(pb::WriteSkillFile {
            path: "references/b.md".to_owned(),
            content: "b".to_owned(),
        }),
        Action::RemoveFile(pb::RemoveSkillFile {
            path: "references/a.md".to_owned(),
        }),
        Action::Delete(pb::DeleteSkill {
            absorbed_into: Some(String::new()),
        }),
    ]
}

/// A skill of every kind, each with a supporting file.
async fn every_kind() -> Rig {
    let rig = rig().await;
    let person = rig.person("red", "ann");
    for (name, _, _) in KINDS {
        person
            .manage_skill(manage(ANN, name, name, create(name)))
            .await
            .unwrap();
        let note = Action::WriteFile(pb::WriteSkillFile {
            path: "references/a.md".to_owned(),
            content: "note".to_owned(),
        });
        person
            .manage_skill(manage(ANN, name, &format!("{name}/a"), note))
            .await
            .unwrap();
    }
    rig.edited_by_hand(&KINDS.map(|(_, statement, _)| statement)).await
}

async fn revisions(rig: &Rig) -> Vec<(String, String)> {
    let list = pb::ListSkillsRequest {
        parent: ANN.to_owned(),
        ..pb::ListSkillsRequest::default()
    };
    let listed = rig.person("red", "ann").list_skills(list).await.unwrap();
    assert_eq!(listed.broken.len(), 1, "one record cannot be read, and hides no other");
    let all = listed.skills.into_iter();
    all.map(|skill| (skill.name, skill.revision)).collect()
}

/// `S-14`, D-06.
#[tokio::test]
async fn an_automatic_writer_changes_its_own_kind_and_no_other() {
    for origin in [Origin::Review, Origin::Curation] {
        let rig = every_kind().await;
        let before = revisions(&rig).await;
        let job = rig.job(origin, 1);
        for (name, _, gate) in KINDS.into_iter().filter(|(_, _, gate)| !gate.is_empty()) {
            let seen = view(&job, ANN, name).await;
            assert_eq!(seen.is_err(), gate == "unreadable", "{name}");
            for (at, action) in actions(name).into_iter().enumerate() {
                let request = with_evidence(manage(ANN, name, &format!("{name}/{at}"), action));
                let error = job.manage_skill(request.clone()).await.unwrap_err();
                if gate == "unreadable" {
                    assert_eq!(reason(&error), "RECORD_DAMAGED");
                } else {
                    assert_eq!(reason(&error), "GATE_REFUSED", "{name} {at}");
                    for (key, value) in [("gate", gate), ("origin", origin.as_str())] {
                        let found = error.metadata.iter().find(|(name, _)| *name == key);
                        assert_eq!(found.map(|(_, value)| value.as_str()), Some(value), "{name} {at}");
                    }
                }
                let again = job.manage_skill(request).await.unwrap_err();
                assert_eq!(
                    reason(&again),
                    reason(&error),
                    "a refusal that is asked for again is one"
                );
            }
        }
        assert_eq!(revisions(&rig).await, before, "nothing changed");

        view(&job, ANN, "learned").await.unwrap();
        for (at, action) in actions("learned").into_iter().enumerate() {
            let request = with_evidence(manage(ANN, "learned", &format!("ok/{at}"), action));
            job.manage_skill(request).await.unwrap();
        }
        let left = revisions(&rig).await;
        assert_eq!(left.len(), before.len() - 1, "and what it deleted is set aside");
    }
}

#[tokio::test]
async fn a_person_in_the_foreground_changes_all_but_what_has_another_master() {
    let rig = every_kind().await;
    let person = rig.person("red", "ann");
    for (name, _, gate) in KINDS {
        for (at, action) in actions(name).into_iter().enumerate() {
            // A builtin may be set aside, but not changed; the hub removes what it brought.
            let refused = match (gate, matches!(action, Action::Delete(_))) {
                ("external", _) | ("builtin", false) | ("hub", true) => Some("GATE_REFUSED"),
                ("unreadable", _) => Some("RECORD_DAMAGED"),
                ("pinned", true) => Some("PINNED"),
                _ => None,
            };
            let request = manage(ANN, name, &format!("{name}/p{at}"), action);
            let outcome = person.manage_skill(request).await;
            assert_eq!(outcome.as_ref().err().map(reason), refused, "{name} {at}");
        }
    }
}
