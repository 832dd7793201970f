//! Skills on their way in and out, and what the hub installs.

mod merges;

use steward_base::{Fault as _, Role};

use super::*;
use crate::install_skill::{Beside, HubSkill, LocalChanges, Taken};
use crate::testing::{Rig, agent, files, person, rig, skill_md};

fn request(files: Files, id: &str) -> ImportRequest {
    ImportRequest {
        files,
        folder: String::new(),
        category: String::new(),
        in_team: false,
        replace: false,
        request_id: id.to_owned(),
        request_hash: id.to_owned(),
        validate_only: false,
        overwrite: false,
    }
}

/// What real skills have in them and a tidy writer would lose.
fn odd_files() -> Files {
    let mut odd = files(&[
        (
            "SKILL.md",
            "\u{feff}---\r\nname: pdf-merge\r\ndescription: 合并 PDF 文件\r\nversion: 1.0\r\n---\r\n# PDF\r\n$1 \\n",
        ),
        ("LICENSE.txt", "no newline at the end"),
        ("references/a/b.md", "x\n\n\n"),
        ("scripts/run.sh", "#!/bin/sh\nexit 0\n"),
    ]);
    odd.insert(SkillPath::parse("assets/图.bin").unwrap(), vec![0, 255, 13, 10, 0xfe]);
    odd
}

/// `S-1`.
#[tokio::test]
async fn what_comes_in_goes_out_byte_for_byte() {
    let (rig, ann) = (rig(), person("ann", Role::Member));
    let imported = rig
        .skills
        .import_skill(&ann, &request(odd_files(), "i1"))
        .await
        .unwrap();
    assert_eq!(imported.skill.provenance, Provenance::Imported);
    assert_eq!(imported.skill.description(), "合并 PDF 文件");
    assert!(
        !imported.report.conforms(),
        "a byte-order mark and a version are not the specification's"
    );
    let name = imported.skill.resource_name();
    let exported = rig.skills.export_skill(&ann, &name, "").await.unwrap();
    assert_eq!((exported.files, exported.folder.as_str()), (odd_files(), "pdf-merge"));
    assert_eq!(exported.tree, tree_hash(&manifest(&odd_files())));
    // An export is an import elsewhere.
    let again = request(odd_files(), "i2");
    let replaced = ImportRequest {
        replace: true,
        ..again.clone()
    };
    let unchanged = rig.skills.import_skill(&ann, &replaced).await.unwrap();
    assert!(unchanged.unchanged && unchanged.skill.revision == imported.skill.revision);
    assert_eq!(
        rig.skills.import_skill(&ann, &again).await.unwrap_err().reason(),
        "SKILL_EXISTS"
    );
}

#[tokio::test]
async fn a_foreign_name_becomes_one_and_stays_in_the_text() {
    let (rig, ann) = (rig(), person("ann", Role::Member));
    let text = "---\nname: PDF_Merge v2.0\ndescription: d\n---\nSteps.\n";
    let imported = rig
        .skills
        .import_skill(&ann, &request(files(&[("SKILL.md", text)]), "i1"))
        .await
        .unwrap();
    assert_eq!(imported.skill.name.as_str(), "pdf-merge-v20");
    // The skill can be changed, and only the name of its own making stays as it was.
    rig.patched(&ann, "pdf-merge-v20", "Steps.", "More steps.").await;
    let renamed = crate::manage_skill::Manage::Patch {
        path: String::new(),
        old: "PDF_Merge v2.0".to_owned(),
        new: "other".to_owned(),
        all: false,
    };
    assert_eq!(
        rig.manage(&ann, "pdf-merge-v20", renamed).await.unwrap_err().reason(),
        "SKILL_INVALID"
    );
    let foreign = |folder: &str| ImportRequest {
        folder: folder.to_owned(),
        ..request(files(&[("SKILL.md", "---\nname: 文档\ndescription: d\n---\nb")]), "i2")
    };
    assert_eq!(
        rig.skills.import_skill(&ann, &foreign("")).await.unwrap_err().reason(),
        "SKILL_INVALID"
    );
    let named = rig.skills.import_skill(&ann, &foreign("documents")).await.unwrap();
    assert_eq!(named.skill.name.as_str(), "documents");
}

#[tokio::test]
async fn an_import_passes_the_limits_the_guard_and_the_gates() {
    let (rig, ann) = (rig(), person("ann", Role::Member));
    let import = async |request: ImportRequest| match rig.skills.import_skill(&ann, &request).await {
        Ok(_) => "ok",
        Err(error) => error.reason(),
    };
    let with = |path: &str, text: &str| {
        let mut all = files(&[("SKILL.md", &skill_md("mine", "d"))]);
        all.insert(SkillPath::parse(path).unwrap(), text.as_bytes().to_vec());
        request(all, path)
    };
    let token = format!("ghp_{}", "a1B2".repeat(9));
    assert_eq!(import(with("scripts/a.sh", &token)).await, "CONTENT_BLOCKED");
    assert_eq!(
        import(with("assets/a", &"x".repeat(1024 * 1024 + 1))).await,
        "LIMIT_EXCEEDED"
    );
    assert_eq!(import(with("skill.md", "x")).await, "SKILL_INVALID");
    for (broken, text) in [
        ("a", "hello"),
        ("b", "---\nname: a\ndescription: Fix CI: rerun\n---\nb"),
        ("c", "---\nname: a\n---\nb"),
    ] {
        assert_eq!(
            import(request(files(&[("SKILL.md", text)]), broken)).await,
            "SKILL_INVALID",
            "{text}"
        );
    }
    assert_eq!(
        import(request(files(&[("README.md", "x")]), "none")).await,
        "SKILL_INVALID"
    );
    let team = ImportRequest {
        in_team: true,
        ..with("LICENSE", "x")
    };
    assert_eq!(import(team).await, "ROLE_REQUIRED");
    let only_checked = ImportRequest {
        validate_only: true,
        ..with("LICENSE", "x")
    };
    assert_eq!(import(only_checked).await, "ok");
    assert!(
        rig.skills.resolve_active(&ann, "mine").await.is_err(),
        "a simulation kept something"
    );
    assert_eq!(import(with("LICENSE", "x")).await, "ok");
    assert_eq!(import(with("LICENSE", "x")).await, "ok", "the same request again");
    let reused = ImportRequest {
        request_hash: "other".to_owned(),
        ..with("LICENSE", "x")
    };
    assert_eq!(import(reused).await, "REQUEST_ID_REUSED");
}

/// Nothing stands beside the library.
struct Alone<'a>(&'a Skills);

#[async_trait::async_trait]
impl Beside for Alone<'_> {
    async fn commit(&self, changes: Vec<Change>) -> Result<(), CommitError> {
        for change in changes {
            self.0.store.commit(change).await?;
        }
        Ok(())
    }
}

/// Installs over what was approved last, if there was anything.
async fn install(
    rig: &Rig,
    actor: &Actor,
    all: Files,
    base: Option<&Files>,
    local: LocalChanges,
) -> Result<Taken, Error> {
    let skill = HubSkill {
        name: "tidy".to_owned(),
        files: all,
        base_tree: base.map(|base| tree_hash(&manifest(base))),
        source: "https://hub.example/tidy at 1".to_owned(),
        replace: false,
        local,
    };
    rig.skills.install_from_hub(actor, &skill, &Alone(&rig.skills)).await
}

fn tidy(first: &str, last: &str) -> Files {
    let text = format!("---\nname: tidy\ndescription: Tidy up\n---\n{first}\n\nmiddle\n\n{last}\n");
    files(&[("SKILL.md", &text), ("references/a.md", "a\n")])
}

/// D-58.
#[tokio::test]
async fn an_update_meets_local_changes_and_never_loses_them_unasked() {
    use LocalChanges::{GiveUp, Keep, Merge};
    let (rig, boss) = (rig(), person("ann", Role::Maintainer));
    let [one, two, three] = ["one", "two", "three"].map(|first| tidy(first, "end"));
    let first = install(&rig, &boss, one.clone(), None, Keep).await.unwrap();
    assert_eq!(
        (first.skill.full_name().as_str(), first.skill.provenance),
        ("hub/tidy", Provenance::Hub)
    );
    // Untouched, it becomes what the source has.
    let second = install(&rig, &boss, two.clone(), Some(&one), Keep).await.unwrap();
    assert_eq!((second.merged.len(), second.skill.number), (0, 2));
    // Changed here at another place, both changes stand where that is asked for.
    rig.patched(&boss, "tidy", "end", "our end").await;
    let kept = install(&rig, &boss, three.clone(), Some(&two), Keep).await.unwrap_err();
    assert_eq!(kept.reason(), "STALE_REVISION");
    let both = install(&rig, &boss, three.clone(), Some(&two), Merge).await.unwrap();
    assert_eq!(both.merged, [SkillPath::skill_md()]);
    let text = rig.text(&boss, "tidy").await;
    assert!(text.contains("three") && text.contains("our end"), "{text}");
    // At the same place, nothing happens unless ours is given up, and then the old state stays in the history.
    let clash = tidy("three", "their end");
    let refused = install(&rig, &boss, clash.clone(), Some(&three), Merge)
        .await
        .unwrap_err();
    assert_eq!(refused.reason(), "MERGE_CONFLICT");
    assert_eq!(rig.text(&boss, "tidy").await, text);
    let forced = install(&rig, &boss, clash, Some(&three), GiveUp).await.unwrap();
    assert!(rig.text(&boss, "tidy").await.contains("their end"));
    let (history, _) = rig
        .skills
        .list_revisions(&boss, &forced.skill.resource_name(), 0, "")
        .await
        .unwrap();
    let actions = history
        .iter()
        .map(|revision| revision.action.as_str())
        .collect::<Vec<_>>();
    assert_eq!(actions, ["install", "merge", "install", "patch", "install", "install"]);
    assert_eq!(history[0].by.origin, Origin::Hub);
}

#[tokio::test]
async fn an_install_takes_no_place_of_another_and_repeats_nothing() {
    use LocalChanges::Keep;
    let (rig, hub) = (rig(), person("hub", Role::Maintainer));
    let (one, two) = (tidy("one", "end"), tidy("two", "end"));
    let first = install(&rig, &hub, one.clone(), None, Keep).await.unwrap();
    let twice = install(&rig, &hub, one.clone(), None, Keep).await.unwrap_err();
    assert_eq!(twice.reason(), "SKILL_EXISTS");
    let same = install(&rig, &hub, one.clone(), Some(&one), Keep).await.unwrap();
    assert_eq!(same.skill.revision, first.skill.revision);
    // What a person pinned is not changed by the hub.
    rig.skills
        .pin_skill(&hub, &first.skill.resource_name(), true)
        .await
        .unwrap();
    let pinned = install(&rig, &hub, two, Some(&one), Keep).await;
    assert_eq!(pinned.unwrap_err().reason(), "GATE_REFUSED");
}

/// `S-13`.
#[tokio::test]
async fn each_line_says_where_it_comes_from_through_restored_revisions_too() {
    let (rig, ann) = (rig(), person("ann", Role::Member));
    let made = rig.made(&ann, "mine", false).await;
    let patched = rig.patched(&ann, "mine", "Steps.", "Steps.\nMore.").await;
    rig.patched(&ann, "mine", "Steps.\nMore.", "Gone.").await;
    let name = made.resource_name();
    let restore = crate::revisions::RestoreRequest {
        name: name.clone(),
        revision: patched.revision.clone(),
        base_revision: String::new(),
        request_id: "r1".to_owned(),
        request_hash: "h".to_owned(),
    };
    rig.skills.restore_revision(&ann, &restore).await.unwrap();
    let blame = rig.skills.blame_file(&ann, &name, "", "").await.unwrap();
    let told = blame
        .lines
        .iter()
        .map(|lines| (lines.count, blame.revisions[lines.revision].number))
        .collect::<Vec<_>>();
    assert_eq!(told, [(7, 1), (1, 2)], "{:?}", blame.lines);
    let before = rig
        .skills
        .blame_file(&ann, &name, "SKILL.md", &made.revision)
        .await
        .unwrap();
    assert_eq!((before.lines.len(), before.revisions.len()), (1, 1));
    assert_eq!(
        rig.skills
            .blame_file(&ann, &name, "references/x", "")
            .await
            .unwrap_err()
            .reason(),
        "FILE_NOT_FOUND"
    );
}

/// `S-5`.
#[tokio::test]
async fn what_is_hidden_leaves_the_index_and_opens_by_name() {
    let (rig, ann, bob) = (rig(), person("ann", Role::Maintainer), person("bob", Role::Member));
    let made = rig.made(&ann, "shared", true).await;
    let filter = crate::index::Filter::default();
    let shows = async |actor: &Actor| {
        rig.skills
            .get_index(actor, &filter)
            .await
            .unwrap()
            .text
            .contains("- shared:")
    };
    assert!(shows(&ann).await && shows(&bob).await);
    let name = made.resource_name();
    rig.skills.hide_skill(&bob, &name, true, false).await.unwrap();
    assert!(shows(&ann).await && !shows(&bob).await);
    assert!(rig.skills.view_skill(&bob, "shared", "").await.is_ok());
    // A person's list has it with a mark; the agent's has it not.
    rig.skills.hide_skill(&ann, &name, true, false).await.unwrap();
    let list = crate::list_skills::ListRequest::default();
    let (own, agents) = (
        rig.skills.list_skills(&ann, &list).await.unwrap(),
        rig.skills.list_skills(&agent("s1"), &list).await.unwrap(),
    );
    let has = |listed: &crate::list_skills::Listed| listed.skills.iter().any(|skill| skill.uid == made.uid);
    assert!(has(&own) && own.hidden.contains(&made.uid) && !has(&agents));
    rig.skills.hide_skill(&ann, &name, false, false).await.unwrap();
    assert_eq!(
        rig.skills
            .hide_skill(&bob, &name, true, true)
            .await
            .unwrap_err()
            .reason(),
        "ROLE_REQUIRED"
    );
    rig.skills.hide_skill(&ann, &name, true, true).await.unwrap();
    assert!(!shows(&ann).await);
    rig.skills.hide_skill(&ann, &name, false, true).await.unwrap();
    rig.skills.hide_skill(&bob, &name, false, false).await.unwrap();
    assert!(shows(&ann).await && shows(&bob).await);
    // The same state gives the very same index, rendered once.
    let (one, two) = (
        rig.skills.get_index(&ann, &filter).await.unwrap(),
        rig.skills.get_index(&ann, &filter).await.unwrap(),
    );
    assert!(std::sync::Arc::ptr_eq(&one, &two));
    rig.patched(&ann, "shared", "Do a thing", "Do another").await;
    assert!(
        rig.skills
            .get_index(&ann, &filter)
            .await
            .unwrap()
            .text
            .contains("Do another")
    );
}
