//! Who may change what, and on what grounds.

use super::*;

/// A skill of every kind that is not the review's own, in the store as the hub or an operator would have put it there.
async fn put_foreign_skills(rig: &Rig) -> Vec<(SkillRecord, &'static str)> {
    let kinds = [
        ("bundled", Provenance::Builtin, "builtin"),
        ("hubbed", Provenance::Hub, "hub"),
        ("pinned", Provenance::AgentCreated, "pinned"),
        ("outside", Provenance::External, "external"),
        ("mine", Provenance::UserMade, "user_made"),
        ("brought", Provenance::Imported, "user_made"),
    ];
    let mut put = Vec::new();
    for (name, provenance, gate) in kinds {
        let (record, revision, mut files) = crate::testing::created("user", "", name, &skill_md(name, "Do a thing"));
        let note = SkillPath::parse("references/a.md").unwrap();
        files.insert(note, b"note".to_vec());
        let new = NewRevision {
            parent: None,
            action: "create",
            files: &files,
            by: revision.by,
            restored_from: None,
            created: revision.created,
        };
        let revision = new.seal(&record.uid);
        let record = SkillRecord {
            provenance,
            pinned: gate == "pinned",
            revision: revision.id.clone(),
            tree: revision.tree.clone(),
            ..record
        };
        let change = Change::of(record.clone(), None, Some((revision, files)));
        crate::store::SkillStore::commit(&*rig.store, change).await.unwrap();
        put.push((record, gate));
    }
    put
}

#[tokio::test]
async fn a_review_is_refused_on_every_skill_that_is_not_its_own() {
    let rig = rig();
    let foreign = put_foreign_skills(&rig).await;
    for origin in [Origin::Review, Origin::Curation, Origin::Schedule, Origin::Delegate] {
        let learner = job(origin, 1);
        for (skill, gate) in &foreign {
            let name = skill.name.as_str();
            rig.skills.view_skill(&learner, name, "").await.unwrap();
            let actions = [
                Manage::Edit {
                    content: skill_md(name, "Other"),
                },
                patch("Steps.", "Other steps."),
                write_file("references/b.md", "x"),
                remove_file("references/a.md"),
                Manage::Delete {
                    absorbed_into: Some(String::new()),
                },
            ];
            for action in actions {
                let error = rig.manage(&learner, name, action).await.unwrap_err();
                assert_eq!(error.reason(), "GATE_REFUSED");
                assert!(error.metadata().contains(&("gate", (*gate).to_owned())), "{error}");
                assert!(error.metadata().contains(&("origin", origin.to_string())), "{error}");
            }
        }
    }
    for (skill, _) in &foreign {
        let after = rig.skills.resolve_active(&person(), skill.name.as_str()).await.unwrap();
        assert_eq!(
            (&after.tree, &after.revision, after.version),
            (&skill.tree, &skill.revision, skill.version)
        );
    }
    rig.manage(&person(), "mine", patch("Steps.", "Mine.")).await.unwrap();
    rig.manage(
        &person(),
        "mine",
        Manage::Edit {
            content: skill_md("mine", "Still mine"),
        },
    )
    .await
    .unwrap();
}

/// `S-16`.
#[tokio::test]
async fn a_review_mends_its_own_skills_and_can_only_archive_them() {
    let rig = rig();
    let review = job(Origin::Review, 1);
    let learned = rig.made_by(&review, "learned").await;
    assert_eq!(learned.provenance, Provenance::AgentCreated);
    rig.manage(&review, "learned", patch("Steps.", "Better steps."))
        .await
        .unwrap();
    let archived = rig
        .manage(&review, "learned", Manage::Delete { absorbed_into: None })
        .await
        .unwrap()
        .skill;
    assert!(matches!(
        archived.state,
        State::Archived(Archival { deleted: false, .. })
    ));
    assert_eq!(
        rig.skills
            .restore_skill(&person(), &learned.resource_name())
            .await
            .unwrap()
            .tree,
        archived.tree
    );
}

#[tokio::test]
async fn a_pinned_skill_is_kept_from_automatic_writers_and_from_deletion() {
    let rig = rig();
    let review = job(Origin::Review, 1);
    let learned = rig.made_by(&review, "learned").await;
    rig.skills
        .pin_skill(&person(), &learned.resource_name(), true)
        .await
        .unwrap();
    assert_eq!(
        reason(rig.manage(&review, "learned", patch("Steps.", "x")).await),
        "GATE_REFUSED"
    );
    assert_eq!(
        reason(
            rig.manage(&person(), "learned", Manage::Delete { absorbed_into: None })
                .await
        ),
        "PINNED"
    );
    rig.manage(&person(), "learned", patch("Steps.", "x")).await.unwrap();
}

#[tokio::test]
async fn an_unreadable_record_is_refused_and_hides_nothing_else() {
    let rig = rig();
    let learned = rig.made_by(&job(Origin::Review, 1), "learned").await;
    rig.made_by(&person(), "mine").await;
    rig.store.damage_record(&learned.team, &learned.uid);
    for actor in [person(), job(Origin::Review, 1)] {
        assert_eq!(
            reason(rig.manage(&actor, "learned", patch("Steps.", "x")).await),
            "RECORD_DAMAGED"
        );
    }
    let listed = rig
        .skills
        .list_skills(&person(), &crate::list_skills::ListRequest::default())
        .await
        .unwrap();
    assert_eq!(listed.broken.len(), 1);
    assert!(listed.skills.iter().any(|skill| skill.name.as_str() == "mine"));
}

/// D-24: what takes the content over is there, is another skill, and is not set aside itself.
#[tokio::test]
async fn a_curation_says_where_the_content_went() {
    let rig = rig();
    let curation = job(Origin::Curation, 1);
    rig.made_by(&curation, "narrow").await;
    rig.made_by(&curation, "umbrella").await;
    let delete = |into: Option<&str>| Manage::Delete {
        absorbed_into: into.map(str::to_owned),
    };
    for into in [None, Some("no-such-skill"), Some("narrow")] {
        assert_eq!(
            reason(rig.manage(&curation, "narrow", delete(into)).await),
            "GATE_REFUSED",
            "{into:?}"
        );
    }
    let gone = rig
        .manage(&curation, "narrow", delete(Some("umbrella")))
        .await
        .unwrap()
        .skill;
    assert!(matches!(gone.state, State::Archived(Archival { absorbed_into, .. }) if absorbed_into == "umbrella"));
    rig.manage(&curation, "umbrella", delete(Some(""))).await.unwrap();
    rig.made_by(&curation, "late").await;
    assert_eq!(
        reason(rig.manage(&curation, "late", delete(Some("umbrella"))).await),
        "GATE_REFUSED",
        "an archived skill holds nobody's content"
    );
}

#[tokio::test]
async fn a_review_needs_trusted_evidence_of_its_own_session() {
    let rig = rig();
    let review = job(Origin::Review, 1);
    let mut request = rig.request("learned", create(&skill_md("learned", "x")));
    request.evidence = None;
    assert_eq!(
        reason(rig.skills.manage_skill(&review, &request).await),
        "EVIDENCE_REQUIRED"
    );
    request.evidence = evidence().map(|evidence| Evidence {
        session: "teams/red/sessions/s2".to_owned(),
        ..evidence
    });
    assert_eq!(
        reason(rig.skills.manage_skill(&review, &request).await),
        "EVIDENCE_REQUIRED"
    );
    request.evidence = evidence().map(|evidence| Evidence {
        integrity: Some(Integrity::External),
        ..evidence
    });
    let waits = rig.skills.manage_skill(&review, &request).await.unwrap();
    assert!(!waits.proposal.is_empty(), "it only proposes (`L-6`)");
    request.evidence = evidence();
    request.request_id = "another".to_owned();
    let unbound = Actor {
        session: None,
        ..review.clone()
    };
    assert_eq!(
        reason(rig.skills.manage_skill(&unbound, &request).await),
        "EVIDENCE_REQUIRED",
        "who looks at no session has nothing to cite"
    );
    rig.skills.manage_skill(&review, &request).await.unwrap();
}

#[tokio::test]
async fn an_old_claim_of_a_job_cannot_write() {
    let rig = rig();
    rig.made_by(&job(Origin::Review, 2), "learned").await;
    rig.skills
        .view_skill(&job(Origin::Review, 1), "learned", "")
        .await
        .unwrap();
    let stale = rig
        .manage(&job(Origin::Review, 1), "learned", patch("Steps.", "x"))
        .await;
    assert_eq!(reason(stale), "STALE_FENCE");
}

#[tokio::test]
async fn the_team_library_is_its_maintainers() {
    let rig = rig();
    let maintainer = Actor {
        role: Role::Maintainer,
        ..person()
    };
    let for_team = |name: &str| Manage::Create {
        content: skill_md(name, "x"),
        category: "ops".to_owned(),
        in_team: true,
    };
    assert_eq!(
        reason(rig.manage(&person(), "shared", for_team("shared")).await),
        "ROLE_REQUIRED"
    );
    let review = Actor {
        role: Role::Maintainer,
        ..job(Origin::Review, 1)
    };
    assert_eq!(
        reason(rig.manage(&review, "shared", for_team("shared")).await),
        "GATE_REFUSED"
    );
    rig.manage(&maintainer, "shared", for_team("shared")).await.unwrap();
    assert_eq!(
        reason(rig.manage(&person(), "shared", patch("Steps.", "x")).await),
        "ROLE_REQUIRED"
    );
    // A namesake of one's own: the bare name is no longer exact, the full ones are.
    rig.made_by(&person(), "shared").await;
    let error = rig
        .manage(&maintainer, "shared", patch("Steps.", "x"))
        .await
        .unwrap_err();
    assert!(
        error.to_string().contains("user/shared") && error.to_string().contains("team/ops/shared"),
        "{error}"
    );
    rig.manage(&maintainer, "team/ops/shared", patch("Steps.", "x"))
        .await
        .unwrap();
    // The form with a colon means the same skill: it is the text that is not found in it.
    assert_eq!(
        reason(rig.manage(&maintainer, "ops:shared", patch("never said", "y")).await),
        "NO_MATCH"
    );
    let stranger = Actor {
        user: UserId::parse("bob").ok(),
        ..person()
    };
    assert_eq!(
        reason(rig.skills.view_skill(&stranger, "user/shared", "").await),
        "SKILL_NOT_FOUND"
    );
}

#[tokio::test]
async fn builtins_are_there_and_stay_as_they_are() {
    let rig = rig();
    let maintainer = Actor {
        role: Role::Maintainer,
        ..person()
    };
    let view = rig.skills.view_skill(&person(), "plan", "").await.unwrap();
    assert!(
        view.skill.protected && view.tool_text.contains("builtin/work/plan"),
        "{}",
        view.tool_text
    );
    assert_eq!(
        reason(rig.manage(&maintainer, "plan", patch("# Plan", "# P")).await),
        "GATE_REFUSED"
    );
    assert_eq!(
        reason(
            rig.manage(&maintainer, "plan", Manage::Delete { absorbed_into: None })
                .await
        ),
        "GATE_REFUSED"
    );
    let aside = rig
        .skills
        .archive_skill(&maintainer, "builtins/skills/find-the-fault")
        .await
        .unwrap();
    assert!(!aside.is_active());
    assert_eq!(
        reason(
            rig.skills
                .archive_skill(&person(), "builtins/skills/write-a-skill")
                .await
        ),
        "ROLE_REQUIRED"
    );
    // Set aside, it is not seeded again.
    let store = Arc::clone(&rig.store) as _;
    let again = Skills::new(
        store,
        Arc::new(MockClock::default()),
        Arc::new(SeqIds::new()),
        Settings::default(),
    );
    assert_eq!(
        reason(again.view_skill(&person(), "find-the-fault", "").await),
        "ARCHIVED"
    );
}
