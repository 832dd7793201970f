//! What a skill may become.

use super::*;

/// `S-10`, D-13.
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

/// D-15: a folder is a skill or a category, never both.
#[tokio::test]
async fn a_new_skill_never_takes_the_place_of_a_category_that_holds_others() {
    let rig = rig();
    let in_category = |name: &str, category: &str| Manage::Create {
        content: skill_md(name, "Do a thing"),
        category: category.to_owned(),
        in_team: false,
    };
    let held = [("csv-clean", "data"), ("parquet", "data/deep")];
    for (name, category) in held {
        rig.manage(&person(), name, in_category(name, category)).await.unwrap();
    }
    let refused = rig
        .manage(&person(), "data", create(&skill_md("data", "Do a thing")))
        .await;
    let Err(Error::SkillExists { in_the_way, .. }) = refused else {
        panic!("{refused:?}");
    };
    assert_eq!(in_the_way.len(), 2, "{in_the_way:?}");
    assert!(
        in_the_way.iter().any(|name| name.ends_with("data/csv-clean")),
        "{in_the_way:?}"
    );
    assert!(
        in_the_way.iter().any(|name| name.ends_with("data/deep/parquet")),
        "{in_the_way:?}"
    );
    let nested = rig.manage(&person(), "deep", in_category("deep", "data")).await;
    assert_eq!(reason(nested), "SKILL_EXISTS");
    for (name, _) in held {
        assert_eq!(rig.skills.resolve_active(&person(), name).await.unwrap().version, 1);
    }
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

/// `S-11`, D-53.
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

#[tokio::test]
async fn a_damaged_file_hides_no_other_of_its_skill() {
    let rig = rig();
    rig.made_by(&person(), "mine").await;
    for (path, content) in [("references/bad.md", "bad"), ("references/good.md", "good")] {
        rig.manage(&person(), "mine", write_file(path, content)).await.unwrap();
    }
    let skill = rig.skills.resolve_active(&person(), "mine").await.unwrap();
    let revision = rig.skills.load(&skill).await.unwrap().0;
    let bad = revision
        .files
        .iter()
        .find(|file| file.path.as_str() == "references/bad.md")
        .unwrap();
    rig.store.damage_blob(&skill.team, &bad.sha256);
    assert!(rig.text("mine").await.contains("Steps."));
    let good = rig
        .skills
        .view_skill(&person(), "mine", "references/good.md")
        .await
        .unwrap();
    assert_eq!((good.content.as_str(), good.files.len()), ("good", 0));
    assert_eq!(
        reason(rig.skills.view_skill(&person(), "mine", "references/bad.md").await),
        "DATA_DAMAGED"
    );
    assert_eq!(
        reason(rig.manage(&person(), "mine", patch("Steps.", "x")).await),
        "DATA_DAMAGED",
        "a change rests on all files"
    );
}

/// `SKILL.md` files and patches of the skill `mine`, none of which leaves a valid skill of that name.
/// A whole `SKILL.md` with these lines between its fences, and a text.
fn edited(header: &str) -> Manage {
    Manage::Edit {
        content: format!("---\n{header}\n---\nb"),
    }
}

fn raw(content: &str) -> Manage {
    Manage::Edit {
        content: content.to_owned(),
    }
}

/// Names that are not the skill's, or not one name.
fn tricks_with_names() -> Vec<(&'static str, Manage)> {
    vec![
        ("another name", edited("name: other\ndescription: d")),
        ("a name in capitals", edited("name: Mine\ndescription: d")),
        ("a name behind a mark", edited("name: \u{feff}mine\ndescription: d")),
        ("two names", edited("name: mine\nname: mine\ndescription: d")),
        ("a quoted twin", edited("name: mine\n\"name\": mine\ndescription: d")),
        ("two documents", edited("name: mine\ndescription: d\n...\nname: other")),
        ("a list of names", edited("name: [mine]\ndescription: d")),
        ("no description", edited("name: mine\ndescription:")),
        ("a blank description", edited("name: mine\ndescription: \"  \"")),
        ("a patched name", patch("name: mine", "name: other")),
        ("a second name", patch("name: mine", "name: mine\nname: mine")),
    ]
}

/// Fences that are none, or stand elsewhere.
fn tricks_with_fences() -> Vec<(&'static str, Manage)> {
    vec![
        ("a rule in quotes", edited("name: mine\ndescription: \"a\n---\nb\"")),
        (
            "a blank before the fence",
            raw(" ---\nname: mine\ndescription: d\n---\nb"),
        ),
        (
            "two marks",
            raw("\u{feff}\u{feff}---\nname: mine\ndescription: d\n---\nb"),
        ),
        ("old line ends", raw("---\rname: mine\rdescription: d\r---\rb")),
        ("no text", raw("---\nname: mine\ndescription: d\n---\n \n")),
        ("a fence pulled up", patch("name: mine", "---\nname: mine")),
        ("a lost fence", patch("---\n#", "#")),
    ]
}

/// YAML that is more than its lines.
fn tricks_with_yaml() -> Vec<(&'static str, Manage)> {
    let bomb = (0..20).fold("a0: &a0 [x]".to_owned(), |text, at| {
        format!("{text}\na{}: &a{} [*a{at}, *a{at}]", at + 1, at + 1)
    });
    let deep = format!("x: {}{}", "[".repeat(5_000), "]".repeat(5_000));
    vec![
        ("a bomb", edited(&format!("name: mine\ndescription: d\n{bomb}"))),
        ("a deep nest", edited(&format!("name: mine\ndescription: d\n{deep}"))),
        ("a merge", edited("base: &b {name: mine}\n<<: *b\ndescription: d")),
        ("a tag", edited("name: !!binary bWluZQ==\ndescription: [d]")),
    ]
}

/// D-50, D-51, D-54: on every way in, the header is the first block, says the skill's name once, and is plain YAML.
#[tokio::test]
async fn no_trick_in_the_front_matter_gets_a_skill_another_name_or_none() {
    let rig = rig();
    rig.made_by(&person(), "mine").await;
    let before = rig.skills.resolve_active(&person(), "mine").await.unwrap();
    for (what, action) in [tricks_with_names(), tricks_with_fences(), tricks_with_yaml()].concat() {
        assert_eq!(
            reason(rig.manage(&person(), "mine", action).await),
            "SKILL_INVALID",
            "{what}"
        );
    }
    for path in [
        "SKILL.md",
        "skill.md",
        "./SKILL.md",
        "references/../SKILL.md",
        "SKILL.md/",
    ] {
        let written = rig.manage(&person(), "mine", write_file(path, "hello")).await;
        assert_eq!(reason(written), "INVALID_REQUEST", "{path}");
    }
    let after = rig.skills.resolve_active(&person(), "mine").await.unwrap();
    assert_eq!((after.version, after.revision), (before.version, before.revision));

    let body = "a\n---\nb\n```yaml\n---\nname: other\n---\n```\n";
    let windows = format!("\u{feff}---\r\nname: mine\r\ndescription: d\r\n---\r\n{body}");
    let action = Manage::Edit {
        content: windows.clone(),
    };
    rig.manage(&person(), "mine", action).await.unwrap();
    assert_eq!(rig.text("mine").await, windows, "byte for byte");
}
