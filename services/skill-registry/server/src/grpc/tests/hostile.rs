//! What people and models do to a registry that nobody planned for.

use futures::future::join_all;

use super::*;

/// Every RPC of the service, aimed at the skill `mine` of `ann` of team red.
async fn every_call(client: &SkillClient, revision: &str) -> Vec<(&'static str, Result<(), ClientError>)> {
    let name = || "teams/red/users/ann/skills/mine".to_owned();
    let list = pb::ListSkillsRequest {
        parent: ANN.to_owned(),
        ..pb::ListSkillsRequest::default()
    };
    let index = pb::GetIndexRequest {
        user: ANN.to_owned(),
        ..pb::GetIndexRequest::default()
    };
    let revisions = pb::ListRevisionsRequest {
        parent: name(),
        ..pb::ListRevisionsRequest::default()
    };
    let diff = pb::DiffRevisionsRequest {
        name: name(),
        from_revision: String::new(),
        to_revision: revision.to_owned(),
    };
    let restore = pb::RestoreRevisionRequest {
        name: name(),
        revision: revision.to_owned(),
        request_id: "x".to_owned(),
        base_revision: String::new(),
    };
    let pin = pb::PinSkillRequest {
        name: name(),
        pinned: true,
    };
    vec![
        (
            "GetSkill",
            client.get_skill(pb::GetSkillRequest { name: name() }).await.map(drop),
        ),
        ("ListSkills", client.list_skills(list).await.map(drop)),
        ("ViewSkill", view(client, ANN, "mine").await.map(drop)),
        (
            "ManageSkill",
            client
                .manage_skill(manage(ANN, "mine", "x", patch("Steps.", "x")))
                .await
                .map(drop),
        ),
        (
            "ArchiveSkill",
            client
                .archive_skill(pb::ArchiveSkillRequest { name: name() })
                .await
                .map(drop),
        ),
        (
            "RestoreSkill",
            client
                .restore_skill(pb::RestoreSkillRequest { name: name() })
                .await
                .map(drop),
        ),
        (
            "PurgeSkill",
            client
                .purge_skill(pb::PurgeSkillRequest { name: name() })
                .await
                .map(drop),
        ),
        ("PinSkill", client.pin_skill(pin).await.map(drop)),
        (
            "HideSkill",
            client
                .hide_skill(pb::HideSkillRequest {
                    name: name(),
                    hidden: true,
                    for_team: false,
                })
                .await
                .map(drop),
        ),
        (
            "BlameFile",
            client
                .blame_file(pb::BlameFileRequest {
                    name: name(),
                    ..pb::BlameFileRequest::default()
                })
                .await
                .map(drop),
        ),
        ("GetIndex", client.get_index(index).await.map(drop)),
        ("ListRevisions", client.list_revisions(revisions).await.map(drop)),
        ("DiffRevisions", client.diff_revisions(diff).await.map(drop)),
        ("RestoreRevision", client.restore_revision(restore).await.map(drop)),
    ]
}

/// D-38: nobody but the person reaches a person's skill, by any RPC, whatever the role.
#[tokio::test]
async fn no_rpc_reaches_another_persons_skill() {
    let rig = rig().await;
    let ann = rig.person("red", "ann");
    let made = ann
        .manage_skill(manage(ANN, "mine", "r1", create("mine")))
        .await
        .unwrap();
    let before = made.skill.unwrap();
    for (team, user) in [("red", "bob"), ("blue", "ann")] {
        let other = rig.client(&rig.claims(team, user, Role::Admin));
        let calls = every_call(&other, &before.revision).await;
        for (rpc, outcome) in &calls {
            let error = outcome.as_ref().expect_err(rpc);
            assert_eq!(
                (error.kind, reason(error)),
                (ErrorKind::NotFound, "SKILL_NOT_FOUND"),
                "{rpc}"
            );
        }
        // A new RPC has to be tried here too.
        let mut walked: Vec<&str> = calls.iter().map(|(rpc, _)| *rpc).collect();
        walked.sort_unstable();
        let service = "/steward.skill.v1.SkillService/";
        let mut all: Vec<&str> = steward_proto::methods::METHODS
            .iter()
            .filter_map(|method| method.path.strip_prefix(service))
            .collect();
        all.sort_unstable();
        assert_eq!(walked, all);
    }
    let name = before.name.clone();
    let after = ann.get_skill(pb::GetSkillRequest { name }).await.unwrap().skill;
    assert_eq!(after, Some(before));
}

/// `T-9`: a request that is sent several times at once is done once, and every sender hears the same.
#[tokio::test]
async fn a_request_that_arrives_several_times_at_once_is_done_once() {
    let rig = rig().await;
    let person = rig.person("red", "ann");
    let mut base = String::new();
    for (id, action, based) in [
        ("create", create("mine"), false),
        ("patch", patch("Steps.", "Parts."), true),
        ("delete", Action::Delete(pb::DeleteSkill { absorbed_into: None }), true),
    ] {
        let request = pb::ManageSkillRequest {
            base_revision: if based { base.clone() } else { String::new() },
            ..manage(ANN, "mine", id, action)
        };
        let sent = (0..12).map(|_| person.manage_skill(request.clone()));
        let answers: Vec<pb::ManageSkillResponse> = join_all(sent)
            .await
            .into_iter()
            .map(|answer| answer.expect(id))
            .collect();
        assert!(answers.iter().all(|answer| *answer == answers[0]), "{id}");
        base = answers[0].skill.clone().unwrap().revision;
    }
}

/// D-39: what many write at once to one skill is all there, and each person's skills are that person's.
#[tokio::test]
async fn fifty_parallel_writes_all_survive() {
    let rig = rig().await;
    let people = [("ann", ANN), ("bob", "teams/red/users/bob")];
    let write = async |number: usize, user: &str, parent: &str| {
        let name = format!("{user}-{number}");
        let client = rig.person("red", user);
        client
            .manage_skill(manage(parent, &name, &name, create(&name)))
            .await
            .unwrap();
    };
    let all = (0..50).flat_map(|number| people.map(|(user, parent)| (number, user, parent)));
    join_all(all.map(|(number, user, parent)| write(number, user, parent))).await;
    for (user, parent) in people {
        let list = pb::ListSkillsRequest {
            parent: parent.to_owned(),
            page_size: 200,
            ..pb::ListSkillsRequest::default()
        };
        let listed = rig.person("red", user).list_skills(list).await.unwrap().skills;
        let own = listed.iter().filter(|skill| skill.name.starts_with(parent)).count();
        assert_eq!(own, 50, "{user}");
        let other = if user == "ann" { "bob-" } else { "ann-" };
        assert!(listed.iter().all(|skill| !skill.name.contains(other)));
    }

    let ann = rig.person("red", "ann");
    let lines = (0..50).map(|number| {
        let path = format!("references/{number}.md");
        let file = Action::WriteFile(pb::WriteSkillFile {
            path,
            content: "x".to_owned(),
        });
        ann.manage_skill(manage(ANN, "ann-0", &format!("f{number}"), file))
    });
    for written in join_all(lines).await {
        written.unwrap();
    }
    assert_eq!(view(&ann, ANN, "ann-0").await.unwrap().files.len(), 51);
}

/// D-12: credentials are kept of nobody, in no field.
#[tokio::test]
async fn a_credential_is_kept_neither_in_a_file_nor_in_a_reason() {
    let rig = rig().await;
    let token = format!("ghp_{}", "a1B2".repeat(9));
    let person = rig.person("red", "ann");
    person
        .manage_skill(manage(ANN, "mine", "r1", create("mine")))
        .await
        .unwrap();
    let file = Action::WriteFile(pb::WriteSkillFile {
        path: "scripts/a.sh".to_owned(),
        content: format!("curl -H {token}"),
    });
    for (id, action) in [("r2", patch("Steps.", &token)), ("r3", file)] {
        let error = person.manage_skill(manage(ANN, "mine", id, action)).await.unwrap_err();
        assert_eq!(reason(&error), "CONTENT_BLOCKED");
        assert!(!format!("{error:?}").contains(&token));
    }
    let told = pb::ManageSkillRequest {
        reason: format!("he said {token}"),
        ..manage(ANN, "mine", "r4", patch("Steps.", "x"))
    };
    let error = person.manage_skill(told).await.unwrap_err();
    assert_eq!(error.violations[0].field, "reason");
    assert!(!format!("{error:?}").contains(&token));
}

/// `S-7`: no skill and no shelf has a name that some system cannot have as a folder.
#[tokio::test]
async fn names_that_systems_keep_for_themselves_are_refused() {
    let rig = rig().await;
    let person = rig.person("red", "ann");
    for name in [
        "con", "nul", "aux", "com1", "lpt9", "Con", "..", "a/b", "c:thing", "a--b", "",
    ] {
        let error = person
            .manage_skill(manage(ANN, name, "r", create(name)))
            .await
            .unwrap_err();
        assert_eq!(
            (error.kind, error.violations[0].field.as_str()),
            (ErrorKind::InvalidInput, "skill"),
            "{name}"
        );
    }
    for category in ["../x", "/tmp/x", "ops/prn", "a/b/c/d", "Ops", "a//b"] {
        let action = Action::Create(pb::CreateSkill {
            content: skill_md("fine"),
            category: category.to_owned(),
            ..pb::CreateSkill::default()
        });
        let error = person.manage_skill(manage(ANN, "fine", "r", action)).await.unwrap_err();
        assert_eq!(error.violations[0].field, "create.category", "{category}");
    }
}

/// A list that is read page by page while others write has no gap and nothing twice.
#[tokio::test]
async fn pages_stay_whole_while_others_write() {
    let rig = rig().await;
    let person = rig.person("red", "ann");
    let add = async |name: String| {
        person
            .manage_skill(manage(ANN, &name, &name, create(&name)))
            .await
            .unwrap();
    };
    join_all((0..40).map(|number| add(format!("steady-{number:02}")))).await;
    let (mut seen, mut token, mut round) = (Vec::new(), String::new(), 0);
    loop {
        let list = pb::ListSkillsRequest {
            parent: ANN.to_owned(),
            page_size: 7,
            page_token: token,
            ..pb::ListSkillsRequest::default()
        };
        let page = person.list_skills(list).await.unwrap();
        seen.extend(page.skills.into_iter().map(|skill| skill.name));
        token = page.next_page_token;
        if token.is_empty() {
            break;
        }
        add(format!("a-late-{round}")).await;
        add(format!("z-late-{round}")).await;
        round += 1;
    }
    let steady: Vec<&String> = seen.iter().filter(|name| name.contains("steady-")).collect();
    assert_eq!(steady.len(), 40);
    let distinct: BTreeSet<&String> = seen.iter().collect();
    assert_eq!(distinct.len(), seen.len());
}

/// An error is an error on the network too, however much there is to name in it.
#[tokio::test]
async fn errors_that_have_much_to_say_arrive_over_the_network() {
    let rig = rig().await;
    let token = rig.signer.sign(&rig.claims("red", "ann", Role::Member)).unwrap();
    let listener = steward_grpc::Listener::bind("127.0.0.1:0").await.unwrap();
    let serving = steward_grpc::serve(listener, rig.built, &rig.boot.tasks).unwrap();
    let wire = steward_client::Wire::connect(&serving.endpoint).unwrap();
    let person = SkillClient::new(wire).with_credentials(Credentials::token(&token).unwrap());
    let long_name = "n".repeat(64);
    for round in 0..50 {
        person
            .manage_skill(manage(ANN, &long_name, &format!("c{round}"), create(&long_name)))
            .await
            .unwrap();
        let delete = Action::Delete(pb::DeleteSkill { absorbed_into: None });
        person
            .manage_skill(manage(ANN, &long_name, &format!("d{round}"), delete))
            .await
            .unwrap();
    }
    let name = format!("{ANN}/skills/{long_name}");
    let error = person.get_skill(pb::GetSkillRequest { name }).await.unwrap_err();
    assert_eq!(reason(&error), "SKILL_AMBIGUOUS");

    let line = "\u{8bb0}".repeat(90);
    let body = (0..400).fold(String::new(), |text, at| text + &format!("{line} {at}\n"));
    let content = format!("{}{body}", skill_md("wide"));
    let create = Action::Create(pb::CreateSkill {
        content,
        ..pb::CreateSkill::default()
    });
    person.manage_skill(manage(ANN, "wide", "w1", create)).await.unwrap();
    let huge = "\u{8bb0}".repeat(100_000);
    for (id, action, wanted) in [
        ("w2", patch(&line, "x"), "AMBIGUOUS_MATCH"),
        ("w3", patch(&format!("{line}!"), "x"), "NO_MATCH"),
        (
            "w4",
            patch("name: wide", &format!("name: {}", "n".repeat(60_000))),
            "SKILL_INVALID",
        ),
        ("w5", patch("Do wide", &huge), "LIMIT_EXCEEDED"),
        (
            "w6",
            Action::RemoveFile(pb::RemoveSkillFile { path: huge.clone() }),
            "INVALID_REQUEST",
        ),
        (&"\u{1f600}".repeat(129), patch("a", "b"), "INVALID_REQUEST"),
    ] {
        let error = person.manage_skill(manage(ANN, "wide", id, action)).await.unwrap_err();
        assert_eq!(reason(&error), wanted, "{error:?}");
    }
    let based = pb::ManageSkillRequest {
        base_revision: huge,
        ..manage(ANN, "wide", "w7", patch("Do wide", "Do it"))
    };
    assert_eq!(reason(&person.manage_skill(based).await.unwrap_err()), "STALE_REVISION");
    rig.boot.tasks.shutdown(Duration::from_secs(30)).await;
}
