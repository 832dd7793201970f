//! Yanking, revoking and reinstating, as people and agents see it.

use steward_proto::hub::v1::HubStanding;

use super::*;

pub(super) async fn installed(rig: &Rig, name: &str) -> pb::HubSkill {
    let reference = rig.page(name, SAFE);
    let (item, _) = bring(&rig.ada(), &reference, &format!("bring {name}")).await.unwrap();
    let answer = rig.ada().install_hub_item(install(&item)).await.unwrap();
    answer.skill.unwrap()
}

pub(super) fn withdraw(skill: &pb::HubSkill, standing: HubStanding) -> pb::WithdrawHubTreeRequest {
    pb::WithdrawHubTreeRequest {
        name: format!("teams/red/hubWithdrawals/{}", skill.tree_sha256),
        standing: standing.into(),
        reason: "it phones home".to_owned(),
    }
}

pub(super) fn reinstate(skill: &pb::HubSkill) -> pb::ReinstateHubTreeRequest {
    pb::ReinstateHubTreeRequest {
        name: format!("teams/red/hubWithdrawals/{}", skill.tree_sha256),
        reason: "it was another one".to_owned(),
    }
}

/// The whole check of the team's skills.
async fn check(rig: &Rig) -> Vec<pb::CheckHubSkillsResponse> {
    let request = pb::CheckHubSkillsRequest {
        parent: "teams/red".to_owned(),
    };
    let mut stream = rig.ada().check_hub_skills(request).await.unwrap();
    let mut all = Vec::new();
    while let Some(answer) = stream.message().await.unwrap() {
        all.push(answer);
    }
    all
}

async fn index(rig: &Rig) -> String {
    let request = skill::GetIndexRequest {
        user: "teams/red/users/ada".to_owned(),
        ..skill::GetIndexRequest::default()
    };
    rig.skills().get_index(request).await.unwrap().text
}

#[tokio::test]
async fn h_2_a_revoked_skill_is_shown_to_no_agent_and_comes_back_by_a_maintainers_word_only() {
    let rig = rig().await;
    let tidy = installed(&rig, "tidy").await;
    let pin = skill::PinSkillRequest {
        name: tidy.skill.clone(),
        pinned: true,
    };
    rig.skills().pin_skill(pin).await.unwrap();
    assert!(index(&rig).await.contains("tidy"));
    let member = rig.hub("red", Role::Member);
    let denied = member
        .withdraw_hub_tree(withdraw(&tidy, HubStanding::Revoked))
        .await
        .unwrap_err();
    assert_eq!(reason(&denied), "METHOD_DENIED");
    let revoked = rig
        .ada()
        .withdraw_hub_tree(withdraw(&tidy, HubStanding::Revoked))
        .await
        .unwrap();
    let revoked = revoked.withdrawal.unwrap();
    assert_eq!(
        (revoked.standing(), revoked.skill.as_str()),
        (HubStanding::Revoked, tidy.name.as_str())
    );
    assert_eq!(revoked.cause, "person");
    assert!(!index(&rig).await.contains("tidy"), "a pin holds nothing up");
    assert_eq!(reason(&rig.viewed("tidy").await.unwrap_err()), "ARCHIVED");
    let restore = skill::RestoreSkillRequest {
        name: tidy.skill.clone(),
    };
    let refused = rig.skills().restore_skill(restore).await.unwrap_err();
    assert_eq!(reason(&refused), "GATE_REFUSED");
    let plan = pb::PlanHubUpdateRequest { name: named("tidy") };
    let plan = rig.ada().plan_hub_update(plan).await.unwrap().plan.unwrap();
    assert_eq!(plan.withdrawal.unwrap().standing(), HubStanding::Revoked);
    let (item, _) = bring(&rig.ada(), &rig.page("tidy", SAFE), "again").await.unwrap();
    assert_eq!(item.state(), State::AwaitingApproval);
    assert_eq!(item.withdrawal.as_ref().unwrap().standing(), HubStanding::Revoked);
    let release = pb::ReleaseHubItemRequest {
        name: item.name.clone(),
        reason: "mine".to_owned(),
        force: true,
    };
    let refused = rig.ada().release_hub_item(release).await.unwrap_err();
    assert_eq!(reason(&refused), "HUB_WITHDRAWN");
    rig.ada().reinstate_hub_tree(reinstate(&tidy)).await.unwrap();
    assert_eq!(rig.viewed("tidy").await.unwrap(), skill_md("tidy", SAFE));
    let verify = pb::VerifyHubSkillRequest { name: named("tidy") };
    assert!(rig.ada().verify_hub_skill(verify).await.unwrap().intact);
}

#[tokio::test]
async fn h_2_a_newer_revision_ends_the_absence_of_a_revoked_one() {
    let rig = rig().await;
    let tidy = installed(&rig, "tidy").await;
    rig.ada()
        .withdraw_hub_tree(withdraw(&tidy, HubStanding::Revoked))
        .await
        .unwrap();
    let (item, _) = bring(&rig.ada(), &rig.page("tidy", "Mended."), "mended").await.unwrap();
    rig.ada().install_hub_item(install(&item)).await.unwrap();
    assert_eq!(rig.viewed("tidy").await.unwrap(), skill_md("tidy", "Mended."));
    rig.ada().reinstate_hub_tree(reinstate(&tidy)).await.unwrap();
    assert_eq!(
        rig.viewed("tidy").await.unwrap(),
        skill_md("tidy", "Mended."),
        "what is installed stays"
    );
}

#[tokio::test]
async fn h_2_a_skill_that_left_its_source_is_kept_with_a_warning_and_installed_by_nobody() {
    let rig = rig().await;
    let tidy = installed(&rig, "tidy").await;
    let (waiting, _) = bring(&rig.ada(), &rig.page("tidy", SAFE), "second").await.unwrap();
    rig.site.remove("/skills/tidy/SKILL.md");
    let checked = check(&rig).await.remove(0);
    assert!(checked.changed && checked.problem.is_empty(), "{checked:?}");
    let yanked = checked.withdrawal.unwrap();
    assert_eq!(
        (yanked.standing(), yanked.cause.as_str(), yanked.by.as_str()),
        (HubStanding::Yanked, "source url", "policy")
    );
    assert_eq!(
        rig.viewed("tidy").await.unwrap(),
        skill_md("tidy", SAFE),
        "what is yanked stays"
    );
    let list = pb::ListHubSkillsRequest {
        parent: "teams/red".to_owned(),
        ..pb::ListHubSkillsRequest::default()
    };
    let listed = rig.ada().list_hub_skills(list).await.unwrap().skills.remove(0);
    assert_eq!(listed.withdrawal, Some(yanked));
    let uninstall = pb::UninstallHubSkillRequest { name: named("tidy") };
    rig.ada().uninstall_hub_skill(uninstall).await.unwrap();
    let refused = rig.ada().install_hub_item(install(&waiting)).await.unwrap_err();
    assert_eq!(reason(&refused), "HUB_WITHDRAWN");
    let list = pb::ListHubWithdrawalsRequest {
        parent: "teams/red".to_owned(),
        ..pb::ListHubWithdrawalsRequest::default()
    };
    let all = rig
        .hub("red", Role::Viewer)
        .list_hub_withdrawals(list.clone())
        .await
        .unwrap();
    assert_eq!(all.withdrawals.len(), 1);
    assert_eq!(all.withdrawals[0].skill, "", "nothing is installed with it");
    let blue = pb::ListHubWithdrawalsRequest {
        parent: "teams/blue".to_owned(),
        ..list
    };
    let other = rig.hub("blue", Role::Viewer).list_hub_withdrawals(blue).await.unwrap();
    assert!(other.withdrawals.is_empty(), "another team has none of it");
    rig.ada().reinstate_hub_tree(reinstate(&tidy)).await.unwrap();
    rig.ada().install_hub_item(install(&waiting)).await.unwrap();
}

#[tokio::test]
async fn h_2_the_background_follows_the_advisories_of_the_operator() {
    let rig = rig().await;
    let list = format!("{}/advisories.json", rig.site.base());
    rig.site.page("/advisories.json", "[]");
    let rig = rig.restarted(|hub| hub.advisories = vec![list]).await;
    let tidy = installed(&rig, "tidy").await;
    let advisory = format!(
        r#"{{"advisories": [{{"id": "A-7", "summary": "It steals.", "affected": [{{"database_specific": {{"digests": ["{}"], "effect": "revoke"}}}}]}}]}}"#,
        tidy.tree_sha256
    );
    rig.site.page("/advisories.json", advisory);
    let mut rig = rig;
    rig.built.start_background(&rig.boot.tasks);
    while rig.viewed("tidy").await.is_ok() {
        tokio::task::yield_now().await;
    }
    let get = pb::GetHubSkillRequest { name: named("tidy") };
    let found = rig.ada().get_hub_skill(get).await.unwrap().skill.unwrap();
    let revoked = found.withdrawal.unwrap();
    assert_eq!(
        (revoked.standing(), revoked.cause.as_str()),
        (HubStanding::Revoked, "advisory A-7")
    );
    assert_eq!(revoked.reason, "It steals.");
}

#[tokio::test]
async fn wrong_withdrawals_are_told_by_their_fields() {
    let rig = rig().await;
    let tidy = installed(&rig, "tidy").await;
    for (name, standing, reason_given, told) in [
        (
            "teams/red/hubWithdrawals/00",
            HubStanding::Yanked,
            "why",
            "INVALID_REQUEST",
        ),
        (
            &*format!("teams/blue/hubWithdrawals/{}", tidy.tree_sha256),
            HubStanding::Yanked,
            "why",
            "HUB_WITHDRAWAL_NOT_FOUND",
        ),
        (
            &*format!("teams/red/hubWithdrawals/{}", tidy.tree_sha256),
            HubStanding::Reinstated,
            "why",
            "INVALID_REQUEST",
        ),
        (
            &*format!("teams/red/hubWithdrawals/{}", tidy.tree_sha256),
            HubStanding::Yanked,
            "",
            "HUB_FORCE_WITHOUT_REASON",
        ),
    ] {
        let request = pb::WithdrawHubTreeRequest {
            name: name.to_owned(),
            standing: standing.into(),
            reason: reason_given.to_owned(),
        };
        let refused = rig.ada().withdraw_hub_tree(request).await.unwrap_err();
        assert_eq!(reason(&refused), told, "{name} {standing:?}");
    }
    let none = rig.ada().reinstate_hub_tree(reinstate(&tidy)).await.unwrap_err();
    assert_eq!(reason(&none), "HUB_WITHDRAWAL_NOT_FOUND");
}
