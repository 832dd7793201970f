//! Through the in-process client: commands, bundles and proposals.

use std::collections::BTreeSet;

use steward_base::{ErrorKind, Role};
use steward_client::{BundleClient, CommandClient, Credentials, SkillProposalClient};
use steward_grpc::Claims;
use steward_proto::skill::v1 as pb;

use super::super::tests::{ANN, Rig, caps, create, manage, reason, rig, view};

macro_rules! client {
    ($kind:ident, $rig:expr, $claims:expr) => {{
        let token = $rig.signer.sign(&$claims).unwrap();
        $kind::new($rig.built.local_client()).with_credentials(Credentials::token(&token).unwrap())
    }};
}

fn member(rig: &Rig) -> Claims {
    rig.claims("red", "ann", Role::Member)
}

fn expand(text: &str) -> pb::ExpandCommandRequest {
    pb::ExpandCommandRequest {
        parent: ANN.to_owned(),
        text: text.to_owned(),
        context: Some(pb::CommandContext {
            session: "s1".to_owned(),
            ..pb::CommandContext::default()
        }),
    }
}

#[tokio::test]
async fn a_bundle_is_saved_typed_and_opened() {
    let rig = rig().await;
    let (bundles, commands) = (
        client!(BundleClient, rig, member(&rig)),
        client!(CommandClient, rig, member(&rig)),
    );
    let save = pb::SaveBundleRequest {
        parent: ANN.to_owned(),
        slug: "My Morning".to_owned(),
        bundle: Some(pb::Bundle {
            description: "Begin the day".to_owned(),
            skills: vec!["plan".to_owned(), "none".to_owned()],
            instruction: "Start small.".to_owned(),
            ..pb::Bundle::default()
        }),
        ..pb::SaveBundleRequest::default()
    };
    let saved = bundles.save_bundle(save.clone()).await.unwrap().bundle.unwrap();
    assert_eq!(
        (saved.name.as_str(), saved.unresolved.as_slice()),
        ("teams/red/users/ann/bundles/my-morning", ["none".to_owned()].as_slice())
    );
    assert_eq!(bundles.save_bundle(save.clone()).await.unwrap().bundle.unwrap(), saved);
    let stale = pb::SaveBundleRequest {
        etag: "9".to_owned(),
        bundle: Some(pb::Bundle {
            skills: vec!["plan".to_owned()],
            ..pb::Bundle::default()
        }),
        ..save
    };
    let error = bundles.save_bundle(stale).await.unwrap_err();
    assert_eq!((error.kind, reason(&error)), (ErrorKind::Conflict, "ETAG_MISMATCH"));
    let listed = commands
        .list_commands(pb::ListCommandsRequest { parent: ANN.to_owned() })
        .await
        .unwrap()
        .commands;
    let slugs = listed
        .iter()
        .map(|command| command.slug.as_str())
        .collect::<BTreeSet<_>>();
    assert!(
        ["my-morning", "plan", "learn"].iter().all(|slug| slugs.contains(slug)),
        "{slugs:?}"
    );
    let done = commands.expand_command(expand("/my-morning do it")).await.unwrap();
    assert_eq!(
        (done.instruction.as_str(), done.problems.len(), done.exposures.len()),
        ("do it", 1, 1)
    );
    assert_eq!(
        (done.exposures[0].artifact.as_str(), done.exposures[0].stage.as_str()),
        ("builtins/skills/plan", "loaded")
    );
    let missing = commands.expand_command(expand("/nothing")).await.unwrap_err();
    assert_eq!(
        (missing.kind, reason(&missing)),
        (ErrorKind::NotFound, "COMMAND_NOT_FOUND")
    );
    let delete = pb::DeleteBundleRequest {
        name: saved.name.clone(),
    };
    bundles.delete_bundle(delete).await.unwrap();
    let gone = bundles
        .get_bundle(pb::GetBundleRequest { name: saved.name })
        .await
        .unwrap_err();
    assert_eq!(reason(&gone), "BUNDLE_NOT_FOUND");
}

#[tokio::test]
async fn a_turn_types_commands_only_where_it_may_view_skills() {
    let rig = rig().await;
    let session = || steward_base::names::SessionId::parse("s1").unwrap();
    let turn = |tools: &[&str]| member(&rig).for_turn(session(), "t1", caps(tools));
    let preload = || pb::PreloadSkillsRequest {
        parent: ANN.to_owned(),
        skills: vec!["plan".to_owned()],
        context: None,
    };
    let denied = client!(CommandClient, rig, turn(&["skills_list"]))
        .preload_skills(preload())
        .await
        .unwrap_err();
    assert_eq!((denied.kind, reason(&denied)), (ErrorKind::Forbidden, "METHOD_DENIED"));
    let opened = client!(CommandClient, rig, turn(&["skill_view"]))
        .preload_skills(preload())
        .await
        .unwrap();
    assert!(
        opened.text.contains("--- skill builtin/work/plan ---"),
        "{}",
        opened.text
    );
}

/// `S-20`.
#[tokio::test]
async fn a_maintainer_decides_what_becomes_the_teams() {
    let rig = rig().await;
    rig.person("red", "ann")
        .manage_skill(manage(ANN, "mine", "r1", create("mine")))
        .await
        .unwrap();
    let (author, maintainer) = (
        client!(SkillProposalClient, rig, member(&rig)),
        client!(SkillProposalClient, rig, rig.claims("red", "max", Role::Maintainer)),
    );
    let propose = pb::ProposeSkillRequest {
        parent: ANN.to_owned(),
        skill: "mine".to_owned(),
        reason: "it works".to_owned(),
        request_id: "p1".to_owned(),
        ..pb::ProposeSkillRequest::default()
    };
    let proposal = author.propose_skill(propose).await.unwrap().proposal.unwrap();
    assert_eq!(
        (proposal.target.as_str(), proposal.author.as_str()),
        ("teams/red/skills/mine", ANN)
    );
    let list = pb::ListProposalsRequest {
        parent: "teams/red".to_owned(),
        ..pb::ListProposalsRequest::default()
    };
    assert_eq!(
        maintainer.list_proposals(list).await.unwrap().proposals,
        std::slice::from_ref(&proposal)
    );
    let seen = maintainer
        .get_proposal(pb::GetProposalRequest {
            name: proposal.name.clone(),
        })
        .await
        .unwrap();
    assert!(seen.diff.contains("+Steps."), "{}", seen.diff);
    let approve = || pb::ApproveProposalRequest {
        name: proposal.name.clone(),
        reason: "good".to_owned(),
        content: None,
    };
    let denied = author.approve_proposal(approve()).await.unwrap_err();
    assert_eq!((denied.kind, reason(&denied)), (ErrorKind::Forbidden, "ROLE_REQUIRED"));
    let approved = maintainer.approve_proposal(approve()).await.unwrap().proposal.unwrap();
    assert_eq!(
        (approved.state(), approved.decided_by.as_str()),
        (pb::SkillProposalState::Approved, "teams/red/users/max")
    );
    let bob = rig.person("red", "bob");
    let shared = view(&bob, "teams/red/users/bob", "mine").await.unwrap().skill.unwrap();
    assert_eq!(shared.name, "teams/red/skills/mine");
    let twice = maintainer.approve_proposal(approve()).await.unwrap_err();
    assert_eq!(
        (twice.kind, reason(&twice)),
        (ErrorKind::Precondition, "PROPOSAL_DECIDED")
    );
    let other = client!(SkillProposalClient, rig, rig.claims("blue", "max", Role::Admin));
    let hidden = other
        .get_proposal(pb::GetProposalRequest {
            name: proposal.name.clone(),
        })
        .await
        .unwrap_err();
    assert_eq!(reason(&hidden), "PROPOSAL_NOT_FOUND");
}
