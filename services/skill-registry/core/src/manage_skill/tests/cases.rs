//! Whole cases with their exact inputs: what is refused, what it says, and what is as it was afterwards.

use super::*;
use crate::list_skills::ListRequest;

/// D-13: five patches, of which the four wrong ones say what to do and change nothing, and the loose one says so.
#[tokio::test]
async fn a_patch_hits_the_exact_place_or_says_that_it_did_not() {
    let rig = rig();
    let body = "## A\n\nretry limit 2\n\n## B\n\nretry limit 5\n";
    let text = skill_md("mine", "Do a thing").replace("Steps.\n", body);
    let before = rig.manage(&person(), "mine", create(&text)).await.unwrap().skill;
    let line_of = |wanted: &str| text.lines().position(|line| line == wanted).unwrap() + 1;
    let (in_a, in_b) = (line_of("retry limit 2"), line_of("retry limit 5"));

    let refusals: [(&str, &str, &str, &[String]); 4] = [
        (
            "retry limit 9",
            "retry limit 3",
            "NO_MATCH",
            &[
                format!("line {in_a}: \"retry limit 2\""),
                format!("line {in_b}: \"retry limit 5\""),
            ],
        ),
        (
            "retry limit",
            "tries",
            "AMBIGUOUS_MATCH",
            &[format!("line {in_a}"), format!("line {in_b}"), "replace all".to_owned()],
        ),
        ("", "x", "INVALID_REQUEST", &["copied from the file".to_owned()]),
        (
            "retry limit 2",
            "retry limit 2",
            "INVALID_REQUEST",
            &["must differ from the text to replace".to_owned()],
        ),
    ];
    for (old, new, wanted, says) in refusals {
        let error = rig.manage(&person(), "mine", patch(old, new)).await.unwrap_err();
        assert_eq!(error.reason(), wanted, "{old:?}");
        let said = format!("{error} {:?}", error.violations());
        assert!(says.iter().all(|part| said.contains(part.as_str())), "{said}");
        let after = rig.skills.resolve_active(&person(), "mine").await.unwrap();
        assert_eq!(
            (after, rig.skills.load(&before).await.unwrap().1.len()),
            (before.clone(), 1)
        );
    }

    let loose = rig
        .manage(&person(), "mine", patch("retry  limit 2", "retry limit 3"))
        .await
        .unwrap();
    assert!(loose.approximate);
    assert!(
        loose.tool_text.contains(&format!("{in_a}: retry limit 3")) && loose.tool_text.contains("other white space"),
        "{}",
        loose.tool_text
    );
    assert_eq!(rig.text("mine").await, text.replace("retry limit 2", "retry limit 3"));
}

/// D-14: one check on every way to name a place. A folder that is a link is a matter of folders outside; see there.
#[tokio::test]
async fn no_name_category_or_path_leads_out_of_the_skill() {
    let rig = rig();
    let before = rig.made_by(&person(), "mine").await;
    assert_eq!(
        reason(rig.skills.view_skill(&person(), "../other", "").await),
        "INVALID_REQUEST"
    );
    assert_eq!(
        reason(rig.skills.view_skill(&person(), "mine", "../other").await),
        "INVALID_REQUEST"
    );
    for category in ["../x", "/tmp/x"] {
        let action = Manage::Create {
            content: skill_md("new", "Do a thing"),
            category: category.to_owned(),
            in_team: false,
        };
        let error = rig.manage(&person(), "new", action).await.unwrap_err();
        assert_eq!(error.violations()[0].field, "create.category", "{category}");
    }
    let error = rig
        .manage(&person(), "C:thing", create(&skill_md("thing", "Do a thing")))
        .await
        .unwrap_err();
    assert_eq!(error.violations()[0].field, "skill");
    for path in ["references/../../a.md", "/etc/x", "SKILL.md/../../b"] {
        for action in [write_file(path, "hello"), remove_file(path)] {
            let error = rig.manage(&person(), "mine", action).await.unwrap_err();
            assert!(error.violations()[0].field.ends_with("_file.path"), "{path}: {error:?}");
        }
    }
    // Rows hold no links: a part that elsewhere is a link is a plain folder here and stays inside the skill.
    rig.manage(&person(), "mine", write_file("references/link/a.md", "inside"))
        .await
        .unwrap();
    let inside = rig
        .skills
        .view_skill(&person(), "mine", "references/link/a.md")
        .await
        .unwrap();
    assert_eq!(inside.content, "inside");
    let all = rig
        .skills
        .list_skills(&person(), &ListRequest::default())
        .await
        .unwrap();
    let own = all.skills.iter().filter(|skill| skill.scope.label() == "user");
    assert_eq!(own.map(|skill| skill.uid.as_str()).collect::<Vec<_>>(), [before.uid]);
}

/// D-50: the folder's name and the header's are one.
#[tokio::test]
async fn a_header_that_says_another_name_is_refused_with_both_names() {
    let rig = rig();
    let both = |error: Error| {
        let said = format!("{:?}", error.violations());
        assert_eq!(error.reason(), "SKILL_INVALID");
        assert!(said.contains("merge-pdf") && said.contains("pdf-merge"), "{said}");
    };
    let wrong = create(&skill_md("merge-pdf", "Merge PDF files"));
    both(rig.manage(&person(), "pdf-merge", wrong).await.unwrap_err());
    assert_eq!(
        reason(rig.skills.view_skill(&person(), "pdf-merge", "").await),
        "SKILL_NOT_FOUND"
    );
    let made = rig.made_by(&person(), "pdf-merge").await;
    let renamed = patch("name: pdf-merge", "name: merge-pdf");
    both(rig.manage(&person(), "pdf-merge", renamed).await.unwrap_err());
    let after = rig.skills.resolve_active(&person(), "pdf-merge").await.unwrap();
    assert_eq!(after.revision, made.revision);
}

/// D-51: what is not valid is never visible, and the old file stays byte for byte.
#[tokio::test]
async fn a_skill_file_is_judged_before_it_is_seen() {
    let rig = rig();
    rig.made_by(&person(), "mine").await;
    let before = rig.text("mine").await;
    let edit = |content: &str| Manage::Edit {
        content: content.to_owned(),
    };
    let refused = [
        (patch("---\n#", "#"), "SKILL_INVALID"),
        (
            edit("---\nname: mine\ndescription: Fix CI: rerun flaky jobs\n---\nb\n"),
            "SKILL_INVALID",
        ),
        (edit("---\nname: mine\ndescription: d\n---\n"), "SKILL_INVALID"),
        (write_file("SKILL.md", "hello"), "INVALID_REQUEST"),
    ];
    for (action, wanted) in refused {
        assert_eq!(reason(rig.manage(&person(), "mine", action).await), wanted);
        assert_eq!(rig.text("mine").await, before);
    }
}

/// D-52: removing does what it says, and the answer is what is stored.
#[tokio::test]
async fn a_deleted_skill_is_in_the_archive_with_all_its_files_and_nowhere_else() {
    let rig = rig();
    rig.made_by(&person(), "mine").await;
    for path in ["references/a.md", "references/b.md"] {
        rig.manage(&person(), "mine", write_file(path, path)).await.unwrap();
    }
    for path in ["", "SKILL.md"] {
        assert_eq!(
            reason(rig.manage(&person(), "mine", remove_file(path)).await),
            "INVALID_REQUEST"
        );
    }
    let removed = rig
        .manage(&person(), "mine", remove_file("references/a.md"))
        .await
        .unwrap();
    assert!(
        removed.tool_text.ends_with("references/a.md removed"),
        "{}",
        removed.tool_text
    );
    let left = rig.skills.view_skill(&person(), "mine", "").await.unwrap().files;
    let left: Vec<&str> = left.iter().map(|file| file.path.as_str()).collect();
    assert_eq!(left, ["SKILL.md", "references/b.md"]);

    let delete = Manage::Delete { absorbed_into: None };
    let deleted = rig.manage(&person(), "mine", delete).await.unwrap();
    assert!(
        deleted.tool_text.starts_with("deleted user/mine"),
        "{}",
        deleted.tool_text
    );
    assert_eq!(reason(rig.skills.view_skill(&person(), "mine", "").await), "ARCHIVED");
    let list = async |archived| {
        let request = ListRequest {
            archived,
            ..ListRequest::default()
        };
        let listed = rig.skills.list_skills(&person(), &request).await.unwrap();
        listed.skills.iter().map(SkillRecord::full_name).collect::<Vec<_>>()
    };
    assert!(!list(false).await.contains(&"user/mine".to_owned()));
    assert_eq!(list(true).await, ["user/mine"]);
    assert_eq!(rig.skills.load(&deleted.skill).await.unwrap().1.len(), 2);
}

/// D-53: 61 characters are refused with their number, 60 pass in any script and stand uncut in the index; what is over a
/// limit may shrink and not grow.
#[tokio::test]
async fn a_limit_counts_characters_says_its_number_and_is_no_trap() {
    let rig = rig();
    let agent = turn("s1");
    let of = |description: &str| create(&skill_md("mine", description));
    let error = rig.manage(&agent, "mine", of(&"x".repeat(61))).await.unwrap_err();
    assert!(error.to_string().contains("61 characters; at most 60"), "{error}");
    for (name, description) in [("plain", "x".repeat(60)), ("chinese", "字".repeat(60))] {
        let action = create(&skill_md(name, &description));
        rig.manage(&agent, name, action).await.unwrap();
        let index = rig.skills.get_index(&agent, &crate::index::Filter::default()).await;
        let line = format!("- {name}: {description}\n");
        assert!(index.unwrap().text.contains(&line));
    }
    // A file that came to be 10 % too long, by another limit of earlier days.
    let limit = Settings::default().skill_md_chars;
    let store = Arc::clone(&rig.store) as _;
    let roomy = Settings {
        skill_md_chars: 2 * limit,
        ..Settings::default()
    };
    let earlier = Skills::new(
        store,
        Arc::new(MockClock::default()),
        Arc::new(SeqIds::for_source(9)),
        roomy,
    );
    let line = "0123456789\n";
    let long = format!("{}START{}", skill_md("long", "Do a thing"), line.repeat(limit / 10));
    let request = rig.request("long", create(&long));
    earlier.manage_skill(&person(), &request).await.unwrap();
    let shorter = patch(&format!("START{}", line.repeat(limit / 500)), "START");
    rig.manage(&person(), "long", shorter).await.unwrap();
    let still = rig.text("long").await.chars().count();
    assert!(still > limit, "{still}");
    let longer = patch("START", "START and more");
    assert_eq!(reason(rig.manage(&person(), "long", longer).await), "LIMIT_EXCEEDED");
}

/// D-64: every archived copy has a name of its own by which exactly it comes back, where it was and with its use.
#[tokio::test]
async fn each_archived_copy_is_restored_by_the_name_that_the_list_gives_it() {
    let rig = rig();
    let on_shelf = |text: &str| Manage::Create {
        content: skill_md("csv-clean", text),
        category: "data/tables".to_owned(),
        in_team: false,
    };
    let mut uids = Vec::new();
    for text in ["First", "Second"] {
        let made = rig.manage(&person(), "csv-clean", on_shelf(text)).await.unwrap().skill;
        rig.text("csv-clean").await;
        rig.skills
            .archive_skill(&person(), &made.resource_name())
            .await
            .unwrap();
        uids.push(made.uid);
    }
    let archived = ListRequest {
        archived: true,
        ..ListRequest::default()
    };
    let listed = rig.skills.list_skills(&person(), &archived).await.unwrap().skills;
    assert_eq!(listed.len(), 2);
    for (at, uid) in uids.iter().enumerate() {
        let record = listed.iter().find(|record| record.uid == *uid).unwrap();
        let exact = name::archived_id(&record.name, &record.uid);
        let exact = name::resource_name(&record.team, &record.scope, &exact);
        let back = rig.skills.restore_skill(&person(), &exact).await.unwrap();
        assert_eq!(
            (&back.uid, back.full_name().as_str(), back.usage.uses),
            (uid, "user/data/tables/csv-clean", 1)
        );
        let other = &listed[usize::from(listed[0].uid == *uid)];
        let other = name::archived_id(&other.name, &other.uid);
        let other = name::resource_name(&back.team, &back.scope, &other);
        let refused = rig.skills.restore_skill(&person(), &other).await;
        assert_eq!(
            reason(refused),
            "SKILL_EXISTS",
            "a live namesake stands in the way of copy {at}"
        );
        rig.skills
            .archive_skill(&person(), &back.resource_name())
            .await
            .unwrap();
    }
}
