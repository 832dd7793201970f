//! What a skill may become.

use super::*;

#[tokio::test]
async fn a_refused_patch_changes_nothing() {
    let rig = rig();
    let text = skill_md("mine", "Do a thing").replace("Steps.", "- retry limit 2\n- retry limit 5");
    let before = rig.manage(&person(), "mine", create(&text)).await.unwrap().skill;
    assert_eq!(
        reason(rig.manage(&person(), "mine", patch("retry limit 9", "x")).await),
        "NO_MATCH"
    );
    assert_eq!(
        reason(rig.manage(&person(), "mine", patch("retry limit", "x")).await),
        "AMBIGUOUS_MATCH"
    );
    assert_eq!(
        reason(rig.manage(&person(), "mine", patch("", "x")).await),
        "INVALID_REQUEST"
    );
    assert_eq!(
        reason(rig.manage(&person(), "mine", patch("retry", "retry")).await),
        "INVALID_REQUEST"
    );
    let closing = rig.manage(&person(), "mine", patch("\n---\n#", "\n#")).await;
    assert_eq!(reason(closing), "SKILL_INVALID");
    assert_eq!(
        reason(rig.manage(&person(), "mine", patch("name: mine", "name: other")).await),
        "SKILL_INVALID"
    );
    let after = rig.skills.resolve_active(&person(), "mine").await.unwrap();
    assert_eq!(
        (after.revision, after.version, after.usage.patches),
        (before.revision, 1, 0)
    );
    let applied = rig
        .manage(&person(), "mine", patch("retry  limit 2", "retry limit 3"))
        .await
        .unwrap();
    assert!(
        applied.approximate && applied.tool_text.contains("- retry limit 3"),
        "{}",
        applied.tool_text
    );
}

#[tokio::test]
async fn nothing_invalid_becomes_visible() {
    let rig = rig();
    let bad = [
        create(&skill_md("merge-pdf", "x")),
        create("hello"),
        create("---\nname: pdf-merge\ndescription: Fix CI: rerun\n---\nx"),
        create("---\nname: pdf-merge\ndescription: x\n---\n"),
    ];
    for action in bad {
        assert_eq!(
            reason(rig.manage(&person(), "pdf-merge", action).await),
            "SKILL_INVALID"
        );
    }
    assert_eq!(
        reason(rig.manage(&person(), "pdf-merge", create(" ")).await),
        "INVALID_REQUEST"
    );
    for name in ["../other", "C:thing", "Pdf", "a/b", "a--b"] {
        assert_eq!(
            reason(rig.manage(&person(), name, create(&skill_md("a", "x"))).await),
            "INVALID_REQUEST",
            "{name}"
        );
    }
    for category in ["../x", "/tmp/x", "a/b/c/d"] {
        let action = Manage::Create {
            content: skill_md("pdf-merge", "x"),
            category: category.to_owned(),
            in_team: false,
        };
        assert_eq!(
            reason(rig.manage(&person(), "pdf-merge", action).await),
            "INVALID_REQUEST",
            "{category}"
        );
    }
    assert_eq!(
        reason(rig.skills.view_skill(&person(), "pdf-merge", "").await),
        "SKILL_NOT_FOUND"
    );
    rig.made_by(&person(), "pdf-merge").await;
    assert_eq!(
        reason(
            rig.manage(&person(), "pdf-merge", create(&skill_md("pdf-merge", "x")))
                .await
        ),
        "SKILL_EXISTS"
    );
}

#[tokio::test]
async fn files_are_written_and_removed_one_at_a_time() {
    let rig = rig();
    rig.made_by(&person(), "mine").await;
    for path in [
        "",
        "SKILL.md",
        "references/../../a.md",
        "/etc/x",
        "SKILL.md/../../b",
        "notes.md",
    ] {
        assert_eq!(
            reason(rig.manage(&person(), "mine", write_file(path, "hello")).await),
            "INVALID_REQUEST",
            "{path}"
        );
        assert_eq!(
            reason(rig.manage(&person(), "mine", remove_file(path)).await),
            "INVALID_REQUEST",
            "{path}"
        );
    }
    rig.manage(&person(), "mine", write_file("references/a.md", "a"))
        .await
        .unwrap();
    rig.manage(&person(), "mine", write_file("references/other/SKILL.md", "no skill"))
        .await
        .unwrap();
    assert_eq!(
        reason(rig.manage(&person(), "mine", write_file("references/A.md", "x")).await),
        "SKILL_INVALID"
    );
    assert_eq!(
        reason(rig.skills.view_skill(&person(), "other", "").await),
        "SKILL_NOT_FOUND"
    );
    rig.manage(&person(), "mine", remove_file("references/a.md"))
        .await
        .unwrap();
    assert_eq!(
        reason(rig.manage(&person(), "mine", remove_file("references/a.md")).await),
        "FILE_NOT_FOUND"
    );
    let files = rig.skills.view_skill(&person(), "mine", "").await.unwrap().files;
    assert_eq!(files.len(), 2);
    let deleted = rig
        .manage(&person(), "mine", Manage::Delete { absorbed_into: None })
        .await
        .unwrap()
        .skill;
    assert_eq!(reason(rig.skills.view_skill(&person(), "mine", "").await), "ARCHIVED");
    let restored = rig
        .skills
        .restore_skill(&person(), &deleted.resource_name())
        .await
        .unwrap();
    assert_eq!(restored.tree, deleted.tree);
}

#[tokio::test]
async fn limits_count_characters_and_are_no_trap() {
    let rig = rig();
    let agent = turn("s1");
    let with = |length: usize, letter: &str| create(&skill_md("mine", &letter.repeat(length)));
    let error = rig.manage(&agent, "mine", with(61, "x")).await.unwrap_err();
    assert!(error.to_string().contains("61 characters"), "{error}");
    rig.manage(&agent, "mine", with(60, "字")).await.unwrap();
    assert!(
        rig.skills
            .get_index(&agent, &crate::index::Filter::default())
            .await
            .unwrap()
            .text
            .contains(&"字".repeat(60))
    );
    // A person's longer description does not keep an agent from mending the text below it.
    rig.manage(
        &person(),
        "mine",
        Manage::Edit {
            content: skill_md("mine", &"y".repeat(300)),
        },
    )
    .await
    .unwrap();
    rig.skills.view_skill(&agent, "mine", "").await.unwrap();
    rig.manage(&agent, "mine", patch("Steps.", "Fewer steps."))
        .await
        .unwrap();

    let small = Settings {
        skill_md_chars: 400,
        ..Settings::default()
    };
    let store = Arc::clone(&rig.store) as _;
    let tight = Skills::new(store, Arc::new(MockClock::default()), Arc::new(SeqIds::new()), small);
    let long = format!("{}{}", skill_md("mine", "x"), "z".repeat(600));
    rig.manage(&person(), "mine", Manage::Edit { content: long })
        .await
        .unwrap();
    let grow = rig.request("mine", patch("Steps.", "More and more steps."));
    assert_eq!(reason(tight.manage_skill(&person(), &grow).await), "LIMIT_EXCEEDED");
    tight
        .manage_skill(&person(), &rig.request("mine", patch("Steps.", "Do.")))
        .await
        .unwrap();
}

#[tokio::test]
async fn damaged_bytes_are_noticed_and_not_shown() {
    let rig = rig();
    let skill = rig.made_by(&person(), "mine").await;
    let revision = rig.skills.load(&skill).await.unwrap().0;
    rig.store.damage_blob(&skill.team, &revision.files[0].sha256);
    assert_eq!(
        reason(rig.skills.view_skill(&person(), "mine", "").await),
        "DATA_DAMAGED"
    );
}
