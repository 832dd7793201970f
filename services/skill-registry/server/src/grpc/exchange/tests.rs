//! Through the in-process client: bytes, reports and who may.

use steward_base::{ErrorKind, Role};
use steward_client::{Credentials, ExchangeClient, LibraryClient};
use steward_grpc::Claims;
use steward_proto::skill::v1 as pb;

use super::super::tests::{ANN, Rig, create, manage, patch, reason, rig, view};

const RAW: &[u8] = b"\xef\xbb\xbf---\r\nname: pdf-merge\r\ndescription: Merge\r\nplatforms: [linux]\r\n---\r\n$1\\n";

fn content(path: &str, content: &[u8]) -> pb::SkillContent {
    pb::SkillContent {
        path: path.to_owned(),
        content: content.to_vec().into(),
    }
}

fn import(id: &str) -> pb::ImportSkillRequest {
    pb::ImportSkillRequest {
        parent: ANN.to_owned(),
        files: vec![content("SKILL.md", RAW), content("assets/x.bin", &[0, 255, 13])],
        request_id: id.to_owned(),
        ..pb::ImportSkillRequest::default()
    }
}

fn exchange(rig: &Rig, claims: &Claims) -> ExchangeClient {
    let token = rig.signer.sign(claims).unwrap();
    ExchangeClient::new(rig.built.local_client()).with_credentials(Credentials::token(&token).unwrap())
}

/// `S-1`.
#[tokio::test]
async fn files_go_through_the_wire_unchanged_with_a_report_of_their_own() {
    let rig = rig().await;
    let client = exchange(&rig, &rig.claims("red", "ann", Role::Member));
    let checked = pb::CheckSkillRequest {
        files: import("").files,
        folder: "pdf".to_owned(),
    };
    let checked = client.check_skill(checked).await.unwrap();
    let report = checked.report.unwrap();
    let rules = report
        .findings
        .iter()
        .map(|finding| finding.rule.as_str())
        .collect::<Vec<_>>();
    assert_eq!(rules, ["byte-order-mark", "name-folder", "flow-style", "unknown-field"]);
    assert_eq!((report.conforms, checked.skill.as_str()), (false, "pdf-merge"));
    let imported = client.import_skill(import("i1")).await.unwrap();
    assert_eq!(client.import_skill(import("i1")).await.unwrap(), imported);
    let skill = imported.skill.unwrap();
    assert_eq!(
        (skill.provenance(), skill.full_name.as_str()),
        (pb::SkillProvenance::Import, "user/pdf-merge")
    );
    let export = pb::ExportSkillRequest {
        name: skill.name,
        revision: String::new(),
    };
    let exported = client.export_skill(export).await.unwrap();
    assert_eq!(exported.files, import("").files);
    // D-38: another person's is as if it did not exist.
    let theirs = pb::ExportSkillRequest {
        name: "teams/red/users/ann/skills/pdf-merge".to_owned(),
        revision: String::new(),
    };
    for (team, user) in [("red", "bob"), ("blue", "ann")] {
        let other = exchange(&rig, &rig.claims(team, user, Role::Admin));
        let refused = other.export_skill(theirs.clone()).await.unwrap_err();
        assert_eq!(
            (refused.kind, reason(&refused)),
            (ErrorKind::NotFound, "SKILL_NOT_FOUND")
        );
        assert!(other.import_skill(import("i9")).await.is_err(), "{team} {user}");
    }
    let twice = pb::ImportSkillRequest {
        files: vec![content("SKILL.md", RAW), content("SKILL.md", RAW), content("../x", b"")],
        ..import("i2")
    };
    let error = client.import_skill(twice).await.unwrap_err();
    let fields = error
        .violations
        .iter()
        .map(|violation| violation.field.as_str())
        .collect::<Vec<_>>();
    assert_eq!(fields, ["files[1].path", "files[2].path"]);
}

/// `S-8`.
#[tokio::test]
async fn what_is_missing_is_named_and_keeps_nothing_from_being_opened() {
    let rig = rig().await;
    let person = rig.person("red", "ann");
    let text = "---\nname: mail\ndescription: d\nrequired_environment_variables:\n  - name: MAIL_TOKEN\n    prompt: Token\n  - name: MAIL_HOST\n---\nb";
    let action = pb::manage_skill_request::Action::Create(pb::CreateSkill {
        content: text.to_owned(),
        ..pb::CreateSkill::default()
    });
    let made = person
        .manage_skill(manage(ANN, "mail", "r1", action))
        .await
        .unwrap()
        .skill
        .unwrap();
    assert_eq!(made.required_variables, ["MAIL_HOST", "MAIL_TOKEN"]);
    let opened = |known: bool| pb::ViewSkillRequest {
        parent: ANN.to_owned(),
        skill: "mail".to_owned(),
        variables: vec!["MAIL_HOST".to_owned()],
        variables_known: known,
        ..pb::ViewSkillRequest::default()
    };
    let viewed = person.view_skill(opened(true)).await.unwrap();
    assert!(viewed.setup_needed && viewed.content == text);
    assert_eq!(viewed.missing.len(), 1);
    assert_eq!(
        (viewed.missing[0].name.as_str(), viewed.missing[0].prompt.as_str()),
        ("MAIL_TOKEN", "Token")
    );
    assert!(
        viewed.tool_text.contains("setup needed: MAIL_TOKEN is not set"),
        "{}",
        viewed.tool_text
    );
    let unknown = person.view_skill(opened(false)).await.unwrap();
    assert!(!unknown.setup_needed && unknown.missing.is_empty());
}

#[tokio::test]
async fn lines_are_told_apart_and_what_a_schedule_names_is_kept() {
    let rig = rig().await;
    let person = rig.person("red", "ann");
    let made = person
        .manage_skill(manage(ANN, "mine", "r1", create("mine")))
        .await
        .unwrap()
        .skill
        .unwrap();
    person
        .manage_skill(manage(ANN, "mine", "r2", patch("Steps.", "Steps.\nMore.")))
        .await
        .unwrap();
    let blame = pb::BlameFileRequest {
        name: made.name.clone(),
        ..pb::BlameFileRequest::default()
    };
    let blame = person.blame_file(blame).await.unwrap();
    assert_eq!(blame.lines.iter().map(|lines| lines.count).collect::<Vec<_>>(), [7, 1]);
    assert_eq!(blame.revisions[1].action, "patch");
    let token = rig.signer.sign(&rig.hub()).unwrap();
    let service = LibraryClient::new(rig.built.local_client()).with_credentials(Credentials::token(&token).unwrap());
    let names = pb::SetReferencesRequest {
        parent: ANN.to_owned(),
        holder: "teams/red/schedules/nightly".to_owned(),
        skills: vec!["mine".to_owned(), "none".to_owned()],
    };
    let found = service.set_references(names).await.unwrap();
    assert_eq!(
        (found.skills, found.unresolved),
        (vec![made.name], vec!["none".to_owned()])
    );
}

#[tokio::test]
async fn a_maintainer_puts_a_whole_library_back() {
    let rig = rig().await;
    let person = rig.person("red", "ann");
    person
        .manage_skill(manage(ANN, "mine", "r1", create("mine")))
        .await
        .unwrap();
    let job = rig.curation_claims("run");
    let token = rig.signer.sign(&job).unwrap();
    let run = LibraryClient::new(rig.built.local_client()).with_credentials(Credentials::token(&token).unwrap());
    let (parent, run_id) = ("teams/red".to_owned(), "run".to_owned());
    run.create_snapshot(pb::CreateSnapshotRequest {
        parent: parent.clone(),
        run: run_id,
    })
    .await
    .unwrap();
    person
        .manage_skill(manage(ANN, "mine", "r2", patch("Steps.", "Other.")))
        .await
        .unwrap();
    person
        .manage_skill(manage(ANN, "late", "r3", create("late")))
        .await
        .unwrap();
    let token = rig.signer.sign(&rig.claims("red", "ann", Role::Maintainer)).unwrap();
    let maintainer = LibraryClient::new(rig.built.local_client()).with_credentials(Credentials::token(&token).unwrap());
    let list = || pb::ListSnapshotsRequest { parent: parent.clone() };
    let snapshots = maintainer.list_snapshots(list()).await.unwrap().snapshots;
    assert_eq!(snapshots.len(), 1);
    let restore = pb::RestoreSnapshotRequest {
        name: snapshots[0].name.clone(),
        request_id: "b1".to_owned(),
    };
    let back = maintainer.restore_snapshot(restore.clone()).await.unwrap();
    assert_eq!(
        back.snapshot.as_ref().unwrap().name,
        "teams/red/librarySnapshots/restore-b1"
    );
    assert_eq!(back.results.len(), 2, "{:?}", back.results);
    assert!(view(&person, ANN, "mine").await.unwrap().content.contains("Steps."));
    assert_eq!(reason(&view(&person, ANN, "late").await.unwrap_err()), "ARCHIVED");
    assert_eq!(
        maintainer.restore_snapshot(restore).await.unwrap().results.len(),
        2,
        "the second try tells the same"
    );
    assert_eq!(maintainer.list_snapshots(list()).await.unwrap().snapshots.len(), 2);
}
