//! A skill's way into the team's library.

use steward_base::Fault as _;

use super::*;
use crate::testing::{Rig, person, rig};

fn propose(skill: &str, id: &str) -> ProposeRequest {
    ProposeRequest {
        skill: skill.to_owned(),
        reason: "it works".to_owned(),
        category: "ops".to_owned(),
        request_id: id.to_owned(),
    }
}

fn people() -> (Actor, Actor, Actor) {
    (
        person("ann", Role::Member),
        person("bob", Role::Member),
        person("max", Role::Maintainer),
    )
}

async fn proposed(rig: &Rig, actor: &Actor, skill: &str, id: &str) -> String {
    rig.skills
        .propose_skill(actor, &propose(skill, id))
        .await
        .unwrap()
        .resource_name()
}

/// `S-20`.
#[tokio::test]
async fn a_skill_is_private_until_a_maintainer_takes_it_for_the_team() {
    let (rig, (ann, bob, max)) = (rig(), people());
    let made = rig.made(&ann, "mine", false).await;
    assert_eq!(
        rig.skills.view_skill(&bob, "mine", "").await.unwrap_err().reason(),
        "SKILL_NOT_FOUND"
    );
    let name = proposed(&rig, &ann, "mine", "p1").await;
    assert_eq!(proposed(&rig, &ann, "mine", "p1").await, name, "the same request again");
    let twice = rig
        .skills
        .propose_skill(&ann, &propose("mine", "p2"))
        .await
        .unwrap_err();
    assert_eq!(twice.reason(), "PROPOSAL_EXISTS");
    // What is proposed is the state that was proposed.
    rig.patched(&ann, "mine", "Steps.", "Later steps.").await;
    assert_eq!(
        rig.skills.get_proposal(&bob, &name).await.unwrap_err().reason(),
        "PROPOSAL_NOT_FOUND"
    );
    let seen = rig.skills.get_proposal(&max, &name).await.unwrap();
    assert!(
        seen.diff.contains("+Steps.") && seen.conflicts.is_empty(),
        "{}",
        seen.diff
    );
    assert_eq!(
        rig.skills
            .approve_proposal(&ann, &name, "", None)
            .await
            .unwrap_err()
            .reason(),
        "ROLE_REQUIRED"
    );
    let approved = rig.skills.approve_proposal(&max, &name, "good", None).await.unwrap();
    assert_eq!(approved.state, ProposalState::Approved);
    assert!(rig.text(&bob, "mine").await.contains("\nSteps.\n"));
    let taken = rig.skills.resolve_active(&bob, "mine").await.unwrap();
    assert_eq!(
        (taken.full_name().as_str(), taken.provenance, taken.author.as_ref()),
        ("team/ops/mine", Provenance::UserMade, made.author.as_ref())
    );
    assert_eq!(
        rig.skills
            .approve_proposal(&max, &name, "", None)
            .await
            .unwrap_err()
            .reason(),
        "PROPOSAL_DECIDED"
    );
    let (pending, _) = rig
        .skills
        .list_proposals(&max, ProposalState::Pending, 0, "")
        .await
        .unwrap();
    assert_eq!(pending, []);
    let (decided, _) = rig
        .skills
        .list_proposals(&ann, ProposalState::Approved, 0, "")
        .await
        .unwrap();
    assert_eq!(decided, [approved]);
}

#[tokio::test]
async fn where_the_team_moved_on_both_changes_stand_or_nothing_does() {
    let (rig, (ann, _, max)) = (rig(), people());
    rig.made(&max, "shared", true).await;
    rig.made(&ann, "shared", false).await;
    rig.patched(&ann, "user/shared", "# shared", "# Shared well").await;
    let name = proposed(&rig, &ann, "user/shared", "p1").await;
    rig.patched(&max, "team/shared", "Steps.", "Team steps.").await;
    rig.skills.approve_proposal(&max, &name, "", None).await.unwrap();
    let text = rig.text(&max, "team/shared").await;
    assert!(text.contains("# Shared well") && text.contains("Team steps."), "{text}");
    // Both at the same line.
    rig.patched(&ann, "user/shared", "Steps.", "My steps.").await;
    let name = proposed(&rig, &ann, "user/shared", "p2").await;
    rig.patched(&max, "team/shared", "Team steps.", "Other team steps.")
        .await;
    let seen = rig.skills.get_proposal(&ann, &name).await.unwrap();
    assert_eq!(seen.conflicts, [SkillPath::skill_md()]);
    let before = rig.text(&max, "team/shared").await;
    assert_eq!(
        rig.skills
            .approve_proposal(&max, &name, "", None)
            .await
            .unwrap_err()
            .reason(),
        "MERGE_CONFLICT"
    );
    assert_eq!(rig.text(&max, "team/shared").await, before);
    assert_eq!(
        rig.skills.get_proposal(&ann, &name).await.unwrap().proposal.state,
        ProposalState::Pending
    );
}

#[tokio::test]
async fn a_proposal_is_turned_down_with_a_reason_or_withdrawn() {
    let (rig, (ann, bob, max)) = (rig(), people());
    for name in ["one", "two"] {
        rig.made(&ann, name, false).await;
    }
    let (first, second) = (
        proposed(&rig, &ann, "one", "p1").await,
        proposed(&rig, &ann, "two", "p2").await,
    );
    assert_eq!(
        rig.skills
            .reject_proposal(&max, &first, " ")
            .await
            .unwrap_err()
            .reason(),
        "INVALID_REQUEST"
    );
    assert_eq!(
        rig.skills
            .reject_proposal(&bob, &first, "no")
            .await
            .unwrap_err()
            .reason(),
        "PROPOSAL_NOT_FOUND"
    );
    let rejected = rig.skills.reject_proposal(&max, &first, "too special").await.unwrap();
    assert_eq!(rejected.decision.unwrap().reason, "too special");
    rig.skills
        .reject_proposal(&ann, &second, "changed my mind")
        .await
        .unwrap();
    assert_eq!(
        rig.skills
            .reject_proposal(&ann, &second, "again")
            .await
            .unwrap_err()
            .reason(),
        "PROPOSAL_DECIDED"
    );
    // Decided, the skill can be proposed anew.
    proposed(&rig, &ann, "one", "p3").await;
}

#[tokio::test]
async fn only_ones_own_usable_skill_is_proposed_and_pages_have_no_gaps() {
    let (rig, (ann, bob, max)) = (rig(), people());
    rig.made(&max, "ours", true).await;
    assert_eq!(
        rig.skills
            .propose_skill(&ann, &propose("ours", "p0"))
            .await
            .unwrap_err()
            .reason(),
        "INVALID_REQUEST"
    );
    assert_eq!(
        rig.skills
            .propose_skill(&ann, &propose("plan", "p0"))
            .await
            .unwrap_err()
            .reason(),
        "INVALID_REQUEST"
    );
    for (number, actor) in [&ann, &bob, &ann].into_iter().enumerate() {
        let name = format!("own-{number}");
        rig.made(actor, &name, false).await;
        proposed(&rig, actor, &name, &format!("q{number}")).await;
    }
    let (mut seen, mut token) = (Vec::new(), String::new());
    loop {
        let (page, next) = rig
            .skills
            .list_proposals(&max, ProposalState::Pending, 2, &token)
            .await
            .unwrap();
        seen.extend(page.into_iter().map(|proposal| proposal.name.to_string()));
        token = next;
        if token.is_empty() {
            break;
        }
    }
    assert_eq!(seen, ["own-0", "own-1", "own-2"]);
    let (own, _) = rig
        .skills
        .list_proposals(&bob, ProposalState::Pending, 0, "")
        .await
        .unwrap();
    assert_eq!(own.len(), 1);
}
