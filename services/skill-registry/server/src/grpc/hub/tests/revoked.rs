//! The ways around a revocation: the archive, the history, a copy, the whole library. None leads a revoked tree into use.

use std::collections::BTreeSet;

use steward_base::{JobRef, Origin};
use steward_client::{ExchangeClient, LibraryClient, SkillProposalClient};
use steward_proto::hub::v1::HubStanding;
use steward_proto::skill::v1::transition_result::Outcome;

use super::withdraw::{installed, reinstate, withdraw};
use super::*;

const COPY: &str = "teams/red/users/ada/skills/tidy";

async fn revoke(rig: &Rig, skill: &pb::HubSkill) {
    let request = withdraw(skill, HubStanding::Revoked);
    rig.ada().withdraw_hub_tree(request).await.unwrap();
}

async fn uninstall(rig: &Rig) {
    let request = pb::UninstallHubSkillRequest { name: named("tidy") };
    rig.ada().uninstall_hub_skill(request).await.unwrap();
}

async fn restore(rig: &Rig, name: &str) -> Result<skill::RestoreSkillResponse, ClientError> {
    let request = skill::RestoreSkillRequest { name: name.to_owned() };
    rig.skills().restore_skill(request).await
}

async fn import(rig: &Rig, name: &str, body: &str, id: &str) -> Result<skill::ImportSkillResponse, ClientError> {
    let request = skill::ImportSkillRequest {
        parent: "teams/red/users/ada".to_owned(),
        files: vec![skill::SkillContent {
            path: "SKILL.md".to_owned(),
            content: skill_md(name, body).into(),
        }],
        request_id: id.to_owned(),
        ..skill::ImportSkillRequest::default()
    };
    let client = ExchangeClient::new(rig.built.local_client());
    let client = client.with_credentials(rig.credentials("red", Role::Maintainer));
    client.import_skill(request).await
}

fn refused_as_revoked<T: std::fmt::Debug>(answer: Result<T, ClientError>) {
    let error = answer.unwrap_err();
    assert_eq!(reason(&error), "GATE_REFUSED", "{error:?}");
    let gate = error.metadata.iter().find(|(name, _)| *name == "gate");
    assert_eq!(gate.map(|(_, gate)| gate.as_str()), Some("revoked"));
}

#[tokio::test]
async fn h_2_what_was_uninstalled_before_its_tree_was_revoked_stays_in_the_archive() {
    let rig = rig().await;
    let tidy = installed(&rig, "tidy").await;
    uninstall(&rig).await;
    revoke(&rig, &tidy).await;
    refused_as_revoked(restore(&rig, &tidy.skill).await);
    assert_eq!(reason(&rig.viewed("tidy").await.unwrap_err()), "ARCHIVED");
    rig.ada().reinstate_hub_tree(reinstate(&tidy)).await.unwrap();
    restore(&rig, &tidy.skill).await.unwrap();
    assert_eq!(rig.viewed("tidy").await.unwrap(), skill_md("tidy", SAFE));
}

#[tokio::test]
async fn h_2_what_is_yanked_comes_back_from_the_archive() {
    let rig = rig().await;
    let tidy = installed(&rig, "tidy").await;
    uninstall(&rig).await;
    let request = withdraw(&tidy, HubStanding::Yanked);
    rig.ada().withdraw_hub_tree(request).await.unwrap();
    restore(&rig, &tidy.skill).await.unwrap();
}

#[tokio::test]
async fn h_2_an_older_revision_whose_tree_is_revoked_is_not_made_the_present_one() {
    let rig = rig().await;
    let tidy = installed(&rig, "tidy").await;
    let (item, _) = bring(&rig.ada(), &rig.page("tidy", "Mended."), "mended").await.unwrap();
    rig.ada().install_hub_item(install(&item)).await.unwrap();
    revoke(&rig, &tidy).await;
    let list = skill::ListRevisionsRequest {
        parent: tidy.skill.clone(),
        ..skill::ListRevisionsRequest::default()
    };
    let revisions = rig.skills().list_revisions(list).await.unwrap().revisions;
    assert_eq!(revisions.len(), 2);
    let back = |id: &str| skill::RestoreRevisionRequest {
        name: tidy.skill.clone(),
        revision: revisions[1].revision.clone(),
        request_id: id.to_owned(),
        ..skill::RestoreRevisionRequest::default()
    };
    refused_as_revoked(rig.skills().restore_revision(back("r1")).await);
    assert_eq!(rig.viewed("tidy").await.unwrap(), skill_md("tidy", "Mended."));
    rig.ada().reinstate_hub_tree(reinstate(&tidy)).await.unwrap();
    rig.skills().restore_revision(back("r2")).await.unwrap();
    assert_eq!(rig.viewed("tidy").await.unwrap(), skill_md("tidy", SAFE));
}

#[tokio::test]
async fn h_2_a_revoked_tree_is_neither_imported_nor_written_under_another_scope() {
    let rig = rig().await;
    let tidy = installed(&rig, "tidy").await;
    uninstall(&rig).await;
    revoke(&rig, &tidy).await;
    refused_as_revoked(import(&rig, "tidy", SAFE, "i1").await);
    let create = skill::ManageSkillRequest {
        parent: "teams/red/users/ada".to_owned(),
        skill: "tidy".to_owned(),
        request_id: "c1".to_owned(),
        action: Some(skill::manage_skill_request::Action::Create(skill::CreateSkill {
            content: skill_md("tidy", SAFE),
            scope: skill::SkillScope::Team.into(),
            ..skill::CreateSkill::default()
        })),
        ..skill::ManageSkillRequest::default()
    };
    refused_as_revoked(rig.skills().manage_skill(create).await);
    import(&rig, "tidy", "Another one.", "i2").await.unwrap();
}

#[tokio::test]
async fn h_2_a_library_is_put_back_without_what_is_revoked() {
    let rig = rig().await;
    let tidy = installed(&rig, "tidy").await;
    uninstall(&rig).await;
    import(&rig, "tidy", SAFE, "i1").await.unwrap();
    import(&rig, "other", SAFE, "i2").await.unwrap();
    let now = rig.clock.now();
    let (team, user) = (TeamId::parse("red").unwrap(), UserId::parse("ada").unwrap());
    let (id, fence) = ("run".to_owned(), 1);
    let tools = BTreeSet::from(["library_curate".to_owned()]);
    let claims = Claims::user("token", team, user, Role::Admin, now, now.plus(Duration::from_mins(10)));
    let claims = claims.for_job(JobRef { id, fence }, Origin::Curation, None, tools);
    let token = Credentials::token(&rig.signer.sign(&claims).unwrap()).unwrap();
    let client = |credentials| LibraryClient::new(rig.built.local_client()).with_credentials(credentials);
    let snapshot = skill::CreateSnapshotRequest {
        parent: "teams/red".to_owned(),
        run: "run".to_owned(),
    };
    client(token).create_snapshot(snapshot).await.unwrap();
    for name in [COPY, "teams/red/users/ada/skills/other"] {
        let request = skill::ArchiveSkillRequest { name: name.to_owned() };
        rig.skills().archive_skill(request).await.unwrap();
    }
    revoke(&rig, &tidy).await;
    refused_as_revoked(restore(&rig, COPY).await);
    let request = skill::RestoreSnapshotRequest {
        name: "teams/red/librarySnapshots/run".to_owned(),
        request_id: "b1".to_owned(),
    };
    let library = client(rig.credentials("red", Role::Maintainer));
    let results = library.restore_snapshot(request).await.unwrap().results;
    let told: Vec<_> = results
        .iter()
        .map(|result| (result.name.as_str(), result.outcome(), result.reason.as_str()))
        .collect();
    assert!(told.contains(&(COPY, Outcome::Refused, "revoked")), "{told:?}");
    assert!(
        told.contains(&("teams/red/users/ada/skills/other", Outcome::Applied, "")),
        "{told:?}"
    );
    assert_eq!(rig.viewed("other").await.unwrap(), skill_md("other", SAFE));
    assert_eq!(reason(&rig.viewed("user/tidy").await.unwrap_err()), "ARCHIVED");
}

async fn create(rig: &Rig, skill: &str, scope: skill::SkillScope, validate_only: bool) -> Result<String, ClientError> {
    let create = skill::ManageSkillRequest {
        parent: "teams/red/users/ada".to_owned(),
        skill: skill.to_owned(),
        request_id: format!("create {skill} {scope:?}"),
        validate_only,
        action: Some(skill::manage_skill_request::Action::Create(skill::CreateSkill {
            content: skill_md(skill, SAFE),
            scope: scope.into(),
            ..skill::CreateSkill::default()
        })),
        ..skill::ManageSkillRequest::default()
    };
    let managed = rig.skills().manage_skill(create).await?;
    Ok(managed.skill.unwrap_or_default().name)
}

/// Copies in the library of a person and of the team, made before anybody knew; the digest says where they are.
#[tokio::test]
async fn h_2_a_revocation_reaches_every_copy_in_the_team_and_so_does_its_end() {
    let rig = rig().await;
    let mine = create(&rig, "tidy", skill::SkillScope::User, false).await.unwrap();
    let ours = create(&rig, "tidy", skill::SkillScope::Team, false).await.unwrap();
    create(&rig, "other", skill::SkillScope::User, false).await.unwrap();
    let pin = skill::PinSkillRequest {
        name: mine.clone(),
        pinned: true,
    };
    rig.skills().pin_skill(pin).await.unwrap();
    let (item, _) = bring(&rig.ada(), &rig.page("tidy", SAFE), "bring").await.unwrap();
    let tree = item.report.unwrap().tree_sha256;
    let digest = pb::HubSkill {
        tree_sha256: tree,
        ..pb::HubSkill::default()
    };
    revoke(&rig, &digest).await;
    for copy in ["user/tidy", "team/tidy"] {
        assert_eq!(reason(&rig.viewed(copy).await.unwrap_err()), "ARCHIVED", "{copy}");
    }
    for copy in [&mine, &ours] {
        refused_as_revoked(restore(&rig, copy).await);
    }
    assert_eq!(rig.viewed("other").await.unwrap(), skill_md("other", SAFE));
    let list = pb::ListHubAuditEntriesRequest {
        parent: "teams/red".to_owned(),
        ..pb::ListHubAuditEntriesRequest::default()
    };
    let log = rig.ada().list_hub_audit_entries(list).await.unwrap().entries;
    assert_eq!(log.iter().filter(|entry| entry.action == "withdraw").count(), 1);
    rig.ada().reinstate_hub_tree(reinstate(&digest)).await.unwrap();
    for copy in ["user/tidy", "team/tidy"] {
        assert_eq!(rig.viewed(copy).await.unwrap(), skill_md("tidy", SAFE), "{copy}");
    }
}

/// A copy whose name was used again stays in the archive, holds up no other, and can be restored when the name is free.
#[tokio::test]
async fn h_2_a_copy_whose_place_is_taken_comes_back_when_it_is_free() {
    let rig = rig().await;
    let tidy = installed(&rig, "tidy").await;
    let mine = create(&rig, "tidy", skill::SkillScope::User, false).await.unwrap();
    revoke(&rig, &tidy).await;
    import(&rig, "tidy", "Another one.", "i1").await.unwrap();
    rig.ada().reinstate_hub_tree(reinstate(&tidy)).await.unwrap();
    assert_eq!(rig.viewed("hub/tidy").await.unwrap(), skill_md("tidy", SAFE));
    assert_eq!(rig.viewed("user/tidy").await.unwrap(), skill_md("tidy", "Another one."));
    let list = skill::ListSkillsRequest {
        parent: "teams/red/users/ada".to_owned(),
        archived: true,
        ..skill::ListSkillsRequest::default()
    };
    let set_aside = rig.skills().list_skills(list).await.unwrap().skills;
    let copy = set_aside.iter().find(|skill| skill.name.starts_with(&mine)).unwrap();
    let request = skill::ArchiveSkillRequest { name: mine.clone() };
    rig.skills().archive_skill(request).await.unwrap();
    restore(&rig, &copy.name).await.unwrap();
    assert_eq!(rig.viewed("user/tidy").await.unwrap(), skill_md("tidy", SAFE));
}

#[tokio::test]
async fn h_2_a_dry_run_answers_of_a_revoked_tree_what_a_real_run_does_and_keeps_nothing() {
    let rig = rig().await;
    let tidy = installed(&rig, "tidy").await;
    uninstall(&rig).await;
    let dry = |body: &str| skill::ImportSkillRequest {
        parent: "teams/red/users/ada".to_owned(),
        files: vec![skill::SkillContent {
            path: "SKILL.md".to_owned(),
            content: skill_md("tidy", body).into(),
        }],
        request_id: format!("dry {body}"),
        replace: true,
        validate_only: true,
        ..skill::ImportSkillRequest::default()
    };
    let client = ExchangeClient::new(rig.built.local_client());
    let client = client.with_credentials(rig.credentials("red", Role::Maintainer));
    client.import_skill(dry(SAFE)).await.unwrap();
    create(&rig, "tidy", skill::SkillScope::Team, true).await.unwrap();
    revoke(&rig, &tidy).await;
    refused_as_revoked(client.import_skill(dry(SAFE)).await);
    refused_as_revoked(create(&rig, "tidy", skill::SkillScope::Team, true).await);
    assert_eq!(reason(&rig.viewed("user/tidy").await.unwrap_err()), "SKILL_NOT_FOUND");
    import(&rig, "tidy", "Another one.", "i1").await.unwrap();
    client.import_skill(dry("A third.")).await.unwrap();
    refused_as_revoked(client.import_skill(dry(SAFE)).await);
    assert_eq!(rig.viewed("user/tidy").await.unwrap(), skill_md("tidy", "Another one."));
}

/// The proposal is made before its tree is revoked; it waits on.
#[tokio::test]
async fn h_2_a_proposal_whose_tree_is_revoked_is_not_accepted_and_waits_on() {
    let rig = rig().await;
    let tidy = installed(&rig, "tidy").await;
    uninstall(&rig).await;
    let mine = create(&rig, "tidy", skill::SkillScope::User, false).await.unwrap();
    let client = SkillProposalClient::new(rig.built.local_client());
    let client = client.with_credentials(rig.credentials("red", Role::Maintainer));
    let propose = skill::ProposeSkillRequest {
        parent: "teams/red/users/ada".to_owned(),
        skill: mine,
        request_id: "p1".to_owned(),
        ..skill::ProposeSkillRequest::default()
    };
    let proposal = client.propose_skill(propose).await.unwrap().proposal.unwrap();
    revoke(&rig, &tidy).await;
    let accept = || skill::ApproveProposalRequest {
        name: proposal.name.clone(),
        ..skill::ApproveProposalRequest::default()
    };
    refused_as_revoked(client.approve_proposal(accept()).await);
    assert_eq!(reason(&rig.viewed("team/tidy").await.unwrap_err()), "SKILL_NOT_FOUND");
    rig.ada().reinstate_hub_tree(reinstate(&tidy)).await.unwrap();
    client.approve_proposal(accept()).await.unwrap();
    assert_eq!(rig.viewed("team/tidy").await.unwrap(), skill_md("tidy", SAFE));
}
