//! What is read, repeated, restored and destroyed.

use super::*;

/// `S-12`, D-03.
#[tokio::test]
async fn an_agent_looks_before_it_writes() {
    let rig = rig();
    let skill = rig.made_by(&person(), "mine").await;
    let (first, second) = (turn("s1"), turn("s2"));
    assert_eq!(
        reason(rig.manage(&first, "mine", patch("Steps.", "x")).await),
        "NOT_READ"
    );
    rig.skills.view_skill(&second, "mine", "").await.unwrap();
    assert_eq!(
        reason(rig.manage(&first, "mine", patch("Steps.", "x")).await),
        "NOT_READ"
    );
    rig.skills.view_skill(&first, "mine", "").await.unwrap();
    let changed = rig.manage(&first, "mine", patch("Steps.", "One.")).await.unwrap();
    // Having written it, the session knows it; the other one does not.
    rig.manage(&first, "mine", patch("One.", "Two.")).await.unwrap();
    assert_eq!(
        reason(rig.manage(&second, "mine", patch("Two.", "x")).await),
        "STALE_REVISION"
    );
    let mut stale = rig.request("mine", patch("Two.", "x"));
    stale.base_revision = changed.skill.revision;
    assert_eq!(
        reason(rig.skills.manage_skill(&person(), &stale).await),
        "STALE_REVISION"
    );
    assert_ne!(skill.revision, stale.base_revision);
}

#[tokio::test]
async fn the_same_request_is_done_once() {
    let rig = rig();
    let request = rig.request("mine", create(&skill_md("mine", "x")));
    let first = rig.skills.manage_skill(&person(), &request).await.unwrap();
    assert_eq!(rig.skills.manage_skill(&person(), &request).await.unwrap(), first);
    let other = ManageRequest {
        request_hash: "other".to_owned(),
        ..request.clone()
    };
    assert_eq!(
        reason(rig.skills.manage_skill(&person(), &other).await),
        "REQUEST_ID_REUSED"
    );
    let dry = ManageRequest {
        validate_only: true,
        ..rig.request("mine", patch("Steps.", "x"))
    };
    rig.skills.manage_skill(&person(), &dry).await.unwrap();
    assert!(rig.text("mine").await.contains("Steps."));
}

/// `S-13`.
#[tokio::test]
async fn an_older_revision_comes_back_as_a_new_one() {
    let rig = rig();
    let first = rig.made_by(&person(), "mine").await;
    let second = rig
        .manage(&person(), "mine", patch("Steps.", "Other."))
        .await
        .unwrap()
        .skill;
    let request = crate::revisions::RestoreRequest {
        name: first.resource_name(),
        revision: first.revision.clone(),
        base_revision: second.revision.clone(),
        request_id: "restore".to_owned(),
        request_hash: "h".to_owned(),
    };
    let third = rig.skills.restore_revision(&person(), &request).await.unwrap();
    assert_eq!((third.tree.as_str(), third.number), (first.tree.as_str(), 3));
    assert_ne!(third.revision, first.revision);
    assert_eq!(rig.skills.restore_revision(&person(), &request).await.unwrap(), third);
    let (revisions, next) = rig
        .skills
        .list_revisions(&person(), &first.resource_name(), 2, "")
        .await
        .unwrap();
    let actions = revisions
        .iter()
        .map(|revision| revision.action.as_str())
        .collect::<Vec<_>>();
    assert_eq!(actions, ["restore_revision", "patch"]);
    let (older, end) = rig
        .skills
        .list_revisions(&person(), &first.resource_name(), 2, &next)
        .await
        .unwrap();
    assert_eq!((older.len(), end.as_str()), (1, ""));
    let diff = rig
        .skills
        .diff_revisions(&person(), &first.resource_name(), &first.revision, &second.revision)
        .await;
    assert!(diff.unwrap().contains("-Steps.\n+Other.\n"));
}

/// `S-16`.
#[tokio::test]
async fn only_an_archived_skill_is_purged_and_then_it_is_gone() {
    let rig = rig();
    let first = rig.made_by(&person(), "mine").await;
    let name = first.resource_name();
    assert_eq!(
        reason(rig.skills.purge_skill(&person(), &name).await),
        "INVALID_REQUEST"
    );
    rig.skills.archive_skill(&person(), &name).await.unwrap();
    // Two archived copies of one name are told apart by their own names.
    rig.made_by(&person(), "mine").await;
    rig.skills.archive_skill(&person(), &name).await.unwrap();
    assert_eq!(
        reason(rig.skills.restore_skill(&person(), &name).await),
        "SKILL_AMBIGUOUS"
    );
    let exact = name::resource_name(&first.team, &first.scope, &name::archived_id(&first.name, &first.uid));
    assert_eq!(rig.skills.purge_skill(&person(), &exact).await.unwrap(), 2);
    assert_eq!(
        rig.skills.restore_skill(&person(), &name).await.unwrap().name.as_str(),
        "mine"
    );
    assert_eq!(reason(rig.skills.get_skill(&person(), &exact).await), "SKILL_NOT_FOUND");
}

/// `S-9`.
#[tokio::test]
async fn views_by_learners_are_no_use() {
    let rig = rig();
    rig.made_by(&person(), "mine").await;
    rig.skills
        .view_skill(&job(Origin::Review, 1), "mine", "")
        .await
        .unwrap();
    rig.skills
        .view_skill(&job(Origin::Curation, 1), "mine", "")
        .await
        .unwrap();
    rig.skills.view_skill(&turn("s1"), "mine", "").await.unwrap();
    let usage = rig.skills.resolve_active(&person(), "mine").await.unwrap().usage;
    assert_eq!((usage.uses, usage.review_views), (1, 2));
}

#[tokio::test]
async fn a_list_is_paged_without_gaps_and_can_be_narrowed_to_a_category() {
    let rig = rig();
    for (category, name) in [("ops", "a"), ("ops/db", "b"), ("opsy", "c"), ("", "d")] {
        let content = skill_md(name, "Do a thing");
        let action = Manage::Create {
            content,
            category: category.to_owned(),
            in_team: false,
        };
        rig.manage(&person(), name, action).await.unwrap();
    }
    let mut request = crate::list_skills::ListRequest {
        page_size: 3,
        ..Default::default()
    };
    let mut names = Vec::new();
    loop {
        let page = rig.skills.list_skills(&person(), &request).await.unwrap();
        assert!(page.skills.len() <= 3);
        names.extend(page.skills.iter().map(SkillRecord::full_name));
        if page.next_page_token.is_empty() {
            break;
        }
        request.page_token = page.next_page_token;
    }
    let expected = [
        "user/d",
        "user/ops/a",
        "user/ops/db/b",
        "user/opsy/c",
        "builtin/work/find-the-fault",
        "builtin/work/hand-over",
        "builtin/work/plan",
        "builtin/work/review-a-change",
        "builtin/work/write-a-skill",
    ];
    assert_eq!(names, expected);
    let narrowed = crate::list_skills::ListRequest {
        category: "ops".to_owned(),
        ..Default::default()
    };
    let listed = rig.skills.list_skills(&person(), &narrowed).await.unwrap();
    assert_eq!(
        listed.tool_text,
        "2 skills; skill_view opens one\nops:\n- a: Do a thing [user, user_made]\nops/db:\n- b: Do a thing [user, user_made]"
    );
    let mixed = crate::list_skills::ListRequest {
        page_token: request.page_token,
        ..narrowed
    };
    assert_eq!(
        reason(rig.skills.list_skills(&person(), &mixed).await),
        "INVALID_REQUEST"
    );
}

/// `S-6`, D-17, D-55: a name in a list or in the index opens what it stands for, and a name for two is no guess.
#[tokio::test]
async fn a_list_the_index_and_a_view_agree_about_names() {
    let rig = rig();
    let maintainer = Actor {
        role: Role::Maintainer,
        ..person()
    };
    let shelf = |category: &str, in_team| Manage::Create {
        content: skill_md("backup", "Back up"),
        category: category.to_owned(),
        in_team,
    };
    rig.manage(&maintainer, "backup", shelf("ops", true)).await.unwrap();
    rig.manage(&maintainer, "backup", shelf("home/tools", false))
        .await
        .unwrap();
    rig.made_by(&maintainer, "invoice").await;
    rig.made_by(&maintainer, "letters").await;
    for inside in ["templates/invoice.md", "references/invoice/SKILL.md"] {
        rig.manage(&maintainer, "letters", write_file(inside, "no skill"))
            .await
            .unwrap();
    }
    let all = crate::list_skills::ListRequest::default();
    let listed = rig.skills.list_skills(&maintainer, &all).await.unwrap();
    let index = rig
        .skills
        .get_index(&maintainer, &crate::index::Filter::default())
        .await
        .unwrap();
    for text in [&listed.tool_text, &index.text] {
        let names = text
            .lines()
            .filter_map(|line| line.strip_prefix("- ")?.split_once(": "));
        let names = names.map(|(name, _)| name).collect::<Vec<_>>();
        assert!(
            names.contains(&"team/ops/backup") && names.contains(&"user/home/tools/backup"),
            "{names:?}"
        );
        for name in names {
            let viewed = rig.skills.view_skill(&maintainer, name, "").await.unwrap();
            assert!(viewed.skill.full_name().ends_with(name), "{name}");
        }
    }
    let open = async |name: &str| rig.skills.view_skill(&maintainer, name, "").await;
    let error = open("backup").await.unwrap_err().to_string();
    assert!(
        error.contains("team/ops/backup") && error.contains("user/home/tools/backup"),
        "{error}"
    );
    for (name, scope) in [("ops/backup", "team"), ("ops:backup", "team"), ("tools/backup", "user")] {
        assert_eq!(open(name).await.unwrap().skill.scope.label(), scope, "{name}");
    }
    assert_eq!(open("invoice").await.unwrap().skill.full_name(), "user/invoice");
    assert_eq!(reason(open("references/invoice").await), "SKILL_NOT_FOUND");
}

/// `S-3` levels 2 and 3, `S-8`: a view is the whole file, and what it needs is said and does not fail it.
#[tokio::test]
async fn a_view_is_whole_and_says_what_else_there_is_and_what_is_needed() {
    let rig = rig();
    let text = "---\nname: mine\ndescription: Do x\nrequired_environment_variables: [API_BASE]\n---\n\n# X\n\ttab\n";
    rig.manage(&person(), "mine", create(text)).await.unwrap();
    rig.manage(&person(), "mine", write_file("references/a.md", "detail"))
        .await
        .unwrap();
    let whole = rig.skills.view_skill(&person(), "mine", "").await.unwrap();
    assert_eq!(whole.content, text);
    let paths = whole.files.iter().map(|file| file.path.as_str()).collect::<Vec<_>>();
    assert_eq!(paths, ["SKILL.md", "references/a.md"]);
    for said in ["references/a.md (6 bytes)", "API_BASE", "follows to the end"] {
        assert!(whole.tool_text.contains(said), "{}", whole.tool_text);
    }
    let one = rig
        .skills
        .view_skill(&person(), "mine", "references/a.md")
        .await
        .unwrap();
    assert_eq!((one.content.as_str(), one.binary), ("detail", false));
    let absent = rig
        .skills
        .view_skill(&person(), "mine", "references/b.md")
        .await
        .unwrap_err();
    assert!(
        absent.to_string().contains("it has SKILL.md, references/a.md"),
        "{absent}"
    );
}
