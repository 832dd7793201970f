//! Bringing a skill up to its source once it was changed here (D-58).

use super::*;

/// The skill `tidy` as its source has it, by its first and last line.
fn update(first: &str, last: &str, id: &str) -> ImportRequest {
    ImportRequest {
        replace: true,
        ..request(tidy(first, last), id)
    }
}

async fn actions(rig: &Rig, ann: &Actor) -> Vec<String> {
    let name = "teams/red/users/ann/skills/tidy";
    let (history, _) = rig.skills.list_revisions(ann, name, 0, "").await.unwrap();
    history.into_iter().map(|revision| revision.action).collect()
}

#[tokio::test]
async fn an_update_by_import_keeps_what_was_changed_here_again_and_again() {
    let (rig, ann) = (rig(), person("ann", Role::Member));
    let import = async |request: ImportRequest| rig.skills.import_skill(&ann, &request).await;
    import(update("one", "end", "i1")).await.unwrap();
    rig.patched(&ann, "tidy", "end", "our end").await;
    // The source did not move on: nothing happens, and what is here stays.
    let same = import(update("one", "end", "i2")).await.unwrap();
    assert!(same.unchanged && same.skill.number == 2);
    for (round, first) in ["two", "three", "four"].into_iter().enumerate() {
        let both = import(update(first, "end", first)).await.unwrap();
        assert_eq!((both.merged.len(), both.unchanged), (1, false), "round {round}");
        let text = rig.text(&ann, "tidy").await;
        assert!(text.contains(first) && text.contains("our end"), "{text}");
        let again = import(update(first, "end", first)).await.unwrap();
        assert_eq!(
            (again.skill, again.merged),
            (both.skill, both.merged),
            "the same request"
        );
    }
    let told = [
        "merge", "import", "merge", "import", "merge", "import", "patch", "import",
    ];
    assert_eq!(actions(&rig, &ann).await, told);
    // A line that was written here is still that patch's, whatever was merged around it (`S-13`).
    let name = "teams/red/users/ann/skills/tidy";
    let blame = rig.skills.blame_file(&ann, name, "", "").await.unwrap();
    let of = |wanted: &str| {
        let lines = blame.lines.iter().find(|lines| lines.text.contains(wanted)).unwrap();
        blame.revisions[lines.revision].action.clone()
    };
    assert_eq!((of("our end").as_str(), of("four").as_str()), ("patch", "merge"));
}

#[tokio::test]
async fn where_both_changed_the_same_lines_nothing_happens_until_somebody_decides() {
    let (rig, ann) = (rig(), person("ann", Role::Member));
    let import = async |request: ImportRequest| rig.skills.import_skill(&ann, &request).await;
    import(update("one", "end", "i1")).await.unwrap();
    let ours = rig.patched(&ann, "tidy", "end", "our end").await;
    let clash = update("two", "their end", "i2");
    let error = import(clash.clone()).await.unwrap_err();
    assert_eq!(error.reason(), "MERGE_CONFLICT");
    assert!(
        error.metadata().contains(&("paths", "SKILL.md".to_owned())),
        "{error:?}"
    );
    let looked = ImportRequest {
        validate_only: true,
        ..clash.clone()
    };
    let shown = import(looked).await.unwrap().conflicts;
    assert_eq!(shown.len(), 1);
    assert!(shown[0].diff.contains("-our end\n+their end\n"), "{}", shown[0].diff);
    let now = rig.skills.resolve_active(&ann, "tidy").await.unwrap();
    assert_eq!((now.revision, now.version), (ours.revision.clone(), ours.version));
    let decided = ImportRequest {
        overwrite: true,
        request_id: "i3".to_owned(),
        ..clash
    };
    let taken = import(decided).await.unwrap();
    assert_eq!(taken.overwritten, [SkillPath::skill_md()]);
    assert!(rig.text(&ann, "tidy").await.contains("their end"));
    let (_, before) = rig.skills.files_of(&taken.skill, &ours.revision).await.unwrap();
    let before = String::from_utf8(before[&SkillPath::skill_md()].clone()).unwrap();
    assert!(before.contains("our end"), "what was given up is in the history");
}

/// What was written here by hand never came from anywhere, so an import of that name gives way to it.
#[tokio::test]
async fn an_import_over_a_skill_of_ones_own_making_is_a_conflict() {
    let (rig, ann) = (rig(), person("ann", Role::Member));
    rig.made(&ann, "tidy", false).await;
    let before = rig.text(&ann, "tidy").await;
    let error = rig
        .skills
        .import_skill(&ann, &update("one", "end", "i1"))
        .await
        .unwrap_err();
    assert_eq!(error.reason(), "MERGE_CONFLICT");
    assert_eq!(rig.text(&ann, "tidy").await, before);
}
