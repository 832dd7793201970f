use steward_base::ErrorKind;

use super::*;

fn pending() -> pb::ListProposalsRequest {
    pb::ListProposalsRequest {
        parent: "teams/red".to_owned(),
        ..pb::ListProposalsRequest::default()
    }
}

#[tokio::test]
async fn a_members_team_note_waits_for_a_maintainer() {
    let rig = Rig::new("memory-proposals").await;
    let max = rig.user("red", "max", Role::Maintainer);
    let answer = rig
        .ann()
        .apply(request(TEAM, "r1", vec![add("Deploy on Mondays")]))
        .await
        .unwrap();
    let proposal = answer.proposal.unwrap();
    assert!(answer.changes.is_empty() && answer.tool_text.contains("proposal"));
    assert!(contents(&max, TEAM).await.is_empty());
    assert_eq!(
        max.list_proposals(pending()).await.unwrap().proposals,
        std::slice::from_ref(&proposal)
    );
    assert_eq!(
        rig.ann().list_proposals(pending()).await.unwrap().proposals.len(),
        1,
        "the author sees it too"
    );
    let bob = rig.user("red", "bob", Role::Member);
    assert!(bob.list_proposals(pending()).await.unwrap().proposals.is_empty());

    let approve = pb::ApproveProposalRequest {
        name: proposal.name.clone(),
        ..Default::default()
    };
    assert_eq!(
        rig.ann().approve_proposal(approve.clone()).await.unwrap_err().reason,
        "ROLE_REQUIRED"
    );
    assert_eq!(
        bob.approve_proposal(approve.clone()).await.unwrap_err().reason,
        "PROPOSAL_NOT_FOUND"
    );
    let decided = max.approve_proposal(approve.clone()).await.unwrap().proposal.unwrap();
    assert_eq!(decided.state(), pb::ProposalState::Approved);
    assert_eq!(decided.decided_by, "teams/red/users/max");
    assert_eq!(
        max.approve_proposal(approve).await.unwrap().proposal,
        Some(decided),
        "approving twice is approving once"
    );
    assert_eq!(contents(&bob, TEAM).await, ["Deploy on Mondays"]);
    let reject = pb::RejectProposalRequest {
        name: proposal.name,
        reason: "late".to_owned(),
    };
    assert_eq!(
        max.reject_proposal(reject).await.unwrap_err().reason,
        "PROPOSAL_DECIDED"
    );
}

#[tokio::test]
async fn what_a_review_draws_from_external_text_waits_for_the_person_alone() {
    let rig = Rig::new("memory-external").await;
    let mut write = request(ANN, "job1/1/0", vec![add("Uses the mirror at example.invalid")]);
    write.evidence = Some(cited(common::Integrity::External));
    let proposal = rig.review(1).apply(write).await.unwrap().proposal.unwrap();
    assert!(proposal.cause.contains("outside"));
    assert_eq!(proposal.provenance.as_ref().unwrap().origin(), common::Origin::Review);
    assert!(contents(&rig.ann(), ANN).await.is_empty());
    let admin = rig.user("red", "root", Role::Admin);
    assert!(
        admin.list_proposals(pending()).await.unwrap().proposals.is_empty(),
        "an admin does not read it"
    );
    let approve = pb::ApproveProposalRequest {
        name: proposal.name.clone(),
        ..Default::default()
    };
    assert_eq!(
        admin.approve_proposal(approve.clone()).await.unwrap_err().kind,
        ErrorKind::NotFound
    );
    assert_eq!(
        rig.review(1).approve_proposal(approve.clone()).await.unwrap_err().kind,
        ErrorKind::Forbidden
    );
    rig.ann().approve_proposal(approve).await.unwrap();
    assert_eq!(contents(&rig.ann(), ANN).await, ["Uses the mirror at example.invalid"]);
}

#[tokio::test]
async fn a_review_that_cites_nothing_or_another_session_is_told_to_cite() {
    let rig = Rig::new("memory-evidence").await;
    let bare = request(ANN, "r1", vec![add("Prefers tea")]);
    let error = rig.review(1).apply(bare.clone()).await.unwrap_err();
    assert_eq!(
        (error.kind, error.reason),
        (ErrorKind::Precondition, "EVIDENCE_REQUIRED")
    );
    assert!(tool_text(&error).contains("`evidence`"));
    let mut elsewhere = pb::ApplyRequest {
        request_id: "r2".to_owned(),
        ..bare
    };
    elsewhere.evidence = Some(common::Evidence {
        session: "teams/red/sessions/s2".to_owned(),
        ..cited(common::Integrity::Person)
    });
    assert_eq!(
        rig.review(1).apply(elsewhere).await.unwrap_err().reason,
        "EVIDENCE_REQUIRED"
    );
}

#[tokio::test]
async fn a_proposal_that_no_longer_fits_stays_pending() {
    let rig = Rig::new("memory-stale-proposal").await;
    let max = rig.user("red", "max", Role::Maintainer);
    max.apply(request(TEAM, "r1", vec![add("Deploy on Mondays")]))
        .await
        .unwrap();
    let change = request(TEAM, "r2", vec![replace("Mondays", "Deploy on Tuesdays")]);
    let proposal = rig.ann().apply(change).await.unwrap().proposal.unwrap();
    max.apply(request(TEAM, "r3", vec![remove("Mondays")])).await.unwrap();
    let approve = pb::ApproveProposalRequest {
        name: proposal.name.clone(),
        ..Default::default()
    };
    let error = max.approve_proposal(approve).await.unwrap_err();
    assert_eq!((error.kind, error.reason), (ErrorKind::Precondition, "NO_MATCH"));
    assert_eq!(max.list_proposals(pending()).await.unwrap().proposals.len(), 1);
    let bad = pb::RejectProposalRequest {
        name: "nonsense".to_owned(),
        reason: String::new(),
    };
    assert_eq!(max.reject_proposal(bad).await.unwrap_err().violations.len(), 2);
    let reject = pb::RejectProposalRequest {
        name: proposal.name,
        reason: "no longer true".to_owned(),
    };
    let rejected = max.reject_proposal(reject).await.unwrap().proposal.unwrap();
    assert_eq!(
        (rejected.state(), rejected.decision_reason.as_str()),
        (pb::ProposalState::Rejected, "no longer true")
    );
}
