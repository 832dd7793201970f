//! Proposals to their end, and the inbox that says what waits (`L-7`).

use super::*;

const DAY: Duration = Duration::from_hours(24);

fn inbox() -> pb::GetInboxRequest {
    pb::GetInboxRequest {
        parent: "teams/red".to_owned(),
    }
}

fn listed(state: pb::ProposalState) -> pb::ListProposalsRequest {
    pb::ListProposalsRequest {
        parent: "teams/red".to_owned(),
        state: state.into(),
        ..Default::default()
    }
}

fn approve(proposal: &pb::Proposal) -> pb::ApproveProposalRequest {
    pb::ApproveProposalRequest {
        name: proposal.name.clone(),
        ..Default::default()
    }
}

fn reject(proposal: &pb::Proposal) -> pb::RejectProposalRequest {
    pb::RejectProposalRequest {
        name: proposal.name.clone(),
        reason: "We deploy on Fridays".to_owned(),
    }
}

async fn propose(client: &MemoryClient, id: &str, content: &str) -> pb::Proposal {
    let answer = client.apply(request(TEAM, id, vec![add(content)])).await.unwrap();
    answer.proposal.expect("a member's team note is a proposal")
}

#[tokio::test]
async fn what_is_changed_before_it_is_approved_has_the_approver_as_its_author() {
    let rig = Rig::new("memory-edit").await;
    let max = rig.user("red", "max", Role::Maintainer);
    let proposal = propose(&rig.ann(), "r1", "Deploy on mondays").await;
    let edited = pb::ApproveProposalRequest {
        name: proposal.name,
        operations: vec![add("Deploys happen on Mondays before noon")],
    };
    let decided = max.approve_proposal(edited).await.unwrap().proposal.unwrap();
    assert_eq!((decided.operations.len(), decided.edited_operations.len()), (1, 1));
    let entries = max
        .list_entries(pb::ListEntriesRequest {
            parent: TEAM.to_owned(),
            ..Default::default()
        })
        .await
        .unwrap()
        .entries;
    assert_eq!(entries[0].content, "Deploys happen on Mondays before noon");
    let from = entries[0].provenance.clone().unwrap();
    assert_eq!(
        (from.author.as_str(), from.approved_by.as_str()),
        ("teams/red/users/max", "teams/red/users/max")
    );
}

#[tokio::test]
async fn a_rejected_candidate_is_not_proposed_again_for_ninety_days_in_whatever_order() {
    let rig = Rig::new("memory-rejected").await;
    let max = rig.user("red", "max", Role::Maintainer);
    let proposal = propose(&rig.ann(), "r1", "Deploy only on Mondays").await;
    max.reject_proposal(reject(&proposal)).await.unwrap();
    let again = rig
        .ann()
        .apply(request(TEAM, "r2", vec![add("On Mondays only: deploy!")]))
        .await
        .unwrap_err();
    assert_eq!(again.reason, "REJECTED_BEFORE");
    assert!(tool_text(&again).contains("We deploy on Fridays"));
    propose(&rig.ann(), "r3", "Deploy only on Tuesdays").await;
    rig.clock.advance(91 * DAY);
    propose(&rig.ann(), "r4", "Deploy only on Mondays").await;
}

#[tokio::test]
async fn the_same_candidate_waits_once() {
    let rig = Rig::new("memory-once").await;
    let first = propose(&rig.ann(), "r1", "Deploy only on Mondays").await;
    let second = propose(&rig.ann(), "r2", "deploy only on mondays").await;
    assert_eq!(first.name, second.name);
}

#[tokio::test]
async fn a_proposal_expires_and_silence_approves_nothing() {
    let rig = Rig::new("memory-expired").await;
    let max = || rig.user("red", "max", Role::Maintainer);
    let proposal = propose(&rig.ann(), "r1", "Deploy on Mondays").await;
    rig.clock.advance(29 * DAY);
    assert_eq!(
        max().get_inbox(inbox()).await.unwrap().inbox.unwrap().pending_proposals,
        1
    );
    rig.clock.advance(2 * DAY);
    assert_eq!(
        max().get_inbox(inbox()).await.unwrap().inbox.unwrap().pending_proposals,
        0
    );
    assert!(
        max()
            .list_proposals(listed(pb::ProposalState::Pending))
            .await
            .unwrap()
            .proposals
            .is_empty()
    );
    let expired = max()
        .list_proposals(listed(pb::ProposalState::Expired))
        .await
        .unwrap()
        .proposals;
    assert_eq!(expired[0].name, proposal.name);
    let late = max().approve_proposal(approve(&proposal)).await.unwrap_err();
    assert_eq!(late.reason, "PROPOSAL_DECIDED");
    assert!(contents(&max(), TEAM).await.is_empty());
}

/// `M-13`: a private word never feeds a shared scope.
#[tokio::test]
async fn what_a_review_draws_for_all_is_first_shown_to_the_person_alone() {
    let rig = Rig::new("memory-unshown").await;
    let max = rig.user("red", "max", Role::Maintainer);
    let mut write = request(TEAM, "job1/1/0", vec![add("The staging host is beta")]);
    write.evidence = Some(cited(common::Integrity::Person));
    let proposal = rig.review(1).apply(write).await.unwrap().proposal.unwrap();
    assert!(!proposal.shown);
    assert!(
        max.list_proposals(listed(pb::ProposalState::Pending))
            .await
            .unwrap()
            .proposals
            .is_empty()
    );
    let early = max.approve_proposal(approve(&proposal)).await.unwrap_err();
    assert_eq!(early.reason, "PROPOSAL_NOT_FOUND");

    let passed_on = rig
        .ann()
        .approve_proposal(approve(&proposal))
        .await
        .unwrap()
        .proposal
        .unwrap();
    assert_eq!((passed_on.state(), passed_on.shown), (pb::ProposalState::Pending, true));
    assert!(contents(&max, TEAM).await.is_empty());
    max.approve_proposal(approve(&proposal)).await.unwrap();
    assert_eq!(contents(&max, TEAM).await, ["The staging host is beta"]);
}

/// `M-13`.
#[tokio::test]
async fn the_agent_cannot_carry_a_persons_own_memory_into_shared_notes() {
    let rig = Rig::new("memory-private").await;
    let private = "Ann has a hearing next Tuesday and works from home until noon";
    rig.ann().apply(request(ANN, "r1", vec![add(private)])).await.unwrap();
    let told = "For planning: Ann has a hearing next Tuesday and is out";
    let refused = rig
        .turn("t1")
        .apply(request(TEAM, "r2", vec![add(told)]))
        .await
        .unwrap_err();
    assert_eq!(refused.reason, "PRIVATE_CONTENT");
    let max = rig.user("red", "max", Role::Maintainer);
    assert!(
        max.list_proposals(listed(pb::ProposalState::Pending))
            .await
            .unwrap()
            .proposals
            .is_empty()
    );
    assert!(
        propose(&rig.ann(), "r3", told).await.shown,
        "a person who writes by hand knows what they share"
    );
}

#[tokio::test]
async fn a_watched_inbox_is_sent_at_once_and_whenever_it_changes() {
    let rig = Rig::new("memory-watch").await;
    let max = rig.user("red", "max", Role::Maintainer);
    let watch = pb::WatchInboxRequest {
        parent: "teams/red".to_owned(),
    };
    let mut inboxes = max.watch_inbox(watch.clone()).await.unwrap();
    assert_eq!(
        inboxes.message().await.unwrap().unwrap().inbox.unwrap(),
        pb::Inbox::default()
    );
    // A write that makes nothing wait is not told.
    rig.ann().apply(request(ANN, "r0", vec![add("own")])).await.unwrap();
    let proposal = propose(&rig.ann(), "r1", "Deploy on Mondays").await;
    let now = inboxes.message().await.unwrap().unwrap().inbox.unwrap();
    assert_eq!(
        (now.pending_proposals, now.oldest_create_time),
        (1, proposal.create_time)
    );
    max.reject_proposal(reject(&proposal)).await.unwrap();
    assert_eq!(
        inboxes
            .message()
            .await
            .unwrap()
            .unwrap()
            .inbox
            .unwrap()
            .pending_proposals,
        0
    );
    let other = rig.user("blue", "max", Role::Maintainer);
    assert_eq!(other.get_inbox(inbox()).await.unwrap_err().reason, "STORE_NOT_FOUND");
    assert!(other.watch_inbox(watch).await.is_err());
}

/// `L-7`, `M-13`: who may see a proposal gets it whatever became of it; to others it does not exist.
#[tokio::test]
async fn one_proposal_is_given_to_who_may_see_it_whatever_became_of_it() {
    let rig = Rig::new("memory-get-proposal").await;
    let max = rig.user("red", "max", Role::Maintainer);
    let proposal = propose(&rig.ann(), "r1", "Deploy on Mondays").await;
    let get = pb::GetProposalRequest {
        name: proposal.name.clone(),
    };
    for client in [&max, &rig.ann()] {
        let found = client.get_proposal(get.clone()).await.unwrap().proposal.unwrap();
        assert_eq!(found, proposal);
    }
    for stranger in [
        rig.user("red", "bob", Role::Member),
        rig.user("blue", "max", Role::Admin),
    ] {
        let refused = stranger.get_proposal(get.clone()).await.unwrap_err();
        assert_eq!(refused.reason, "PROPOSAL_NOT_FOUND");
    }
    max.reject_proposal(reject(&proposal)).await.unwrap();
    let decided = rig.ann().get_proposal(get).await.unwrap().proposal.unwrap();
    assert_eq!(
        (decided.state(), decided.decision_reason.as_str()),
        (pb::ProposalState::Rejected, "We deploy on Fridays")
    );
    let malformed = pb::GetProposalRequest {
        name: "teams/red/proposals/p1".to_owned(),
    };
    assert_eq!(max.get_proposal(malformed).await.unwrap_err().reason, "INVALID_REQUEST");
}

#[tokio::test]
async fn what_no_longer_holds_in_a_project_is_counted_in_the_inbox() {
    let rig = Rig::new("memory-stale-project").await;
    let max = rig.user("red", "max", Role::Maintainer);
    let mut write = request(
        "teams/red/projects/web/memory/notes",
        "r1",
        vec![add("The freeze lasts until Friday")],
    );
    let (seconds, nanos) = rig.clock.now().plus(DAY).to_parts();
    write.holds = Some(pb::Holds {
        until_time: Some(prost_types::Timestamp { seconds, nanos }),
        ..Default::default()
    });
    max.apply(write).await.unwrap();
    let stale = async || rig.ann().get_inbox(inbox()).await.unwrap().inbox.unwrap().stale_entries;
    assert_eq!(stale().await, 0);
    rig.clock.advance(2 * DAY);
    assert_eq!(stale().await, 1);
}
