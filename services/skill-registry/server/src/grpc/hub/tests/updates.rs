//! Updates, changes made here, names that others hold, and bundles that want out.

use steward_base::Role;
use steward_proto::hub::v1 as pb;
use steward_proto::hub::v1::fetch_hub_update_response::Event;
use steward_proto::hub::v1::{HubItemState as State, HubPlanState as Plan};
use steward_proto::skill::v1 as skill;
use steward_proto::skill::v1::manage_skill_request::Action;

use super::*;

async fn update(hub: &HubClient, name: &str, id: &str) -> Result<pb::HubItem, ClientError> {
    let request = pb::FetchHubUpdateRequest {
        name: named(name),
        request_id: id.to_owned(),
    };
    let mut stream = hub.fetch_hub_update(request).await?;
    while let Some(answer) = stream.message().await? {
        if let Event::Item(item) = answer.event.unwrap() {
            return Ok(item);
        }
    }
    panic!("the stream ended without an item");
}

async fn plan(hub: &HubClient, name: &str) -> pb::HubPlan {
    let request = pb::PlanHubUpdateRequest { name: named(name) };
    hub.plan_hub_update(request).await.unwrap().plan.unwrap()
}

async fn installed(rig: &Rig, reference: &str, id: &str) -> pb::HubSkill {
    let (item, _) = bring(&rig.ada(), reference, id).await.unwrap();
    rig.ada().install_hub_item(install(&item)).await.unwrap().skill.unwrap()
}

/// Changes a skill as a maintainer does by hand.
async fn changed(rig: &Rig, skill: &str, id: &str, action: Action) {
    let request = skill::ManageSkillRequest {
        parent: "teams/red/users/ada".to_owned(),
        skill: skill.to_owned(),
        request_id: id.to_owned(),
        action: Some(action),
        ..skill::ManageSkillRequest::default()
    };
    rig.skills().manage_skill(request).await.unwrap();
}

fn patch(old: &str, new: &str) -> Action {
    Action::Patch(skill::PatchSkill {
        old_text: old.to_owned(),
        new_text: new.to_owned(),
        ..skill::PatchSkill::default()
    })
}

#[tokio::test]
async fn h_6_a_plan_shows_diff_findings_and_capabilities_and_keeps_nothing() {
    let rig = rig().await;
    let hub = rig.ada();
    installed(&rig, &rig.page("tidy", SAFE), "r1").await;
    assert_eq!(plan(&hub, "tidy").await.state(), Plan::Current);
    rig.page("tidy", &format!("{SAFE}\n\n{DANGEROUS}"));
    let planned = plan(&hub, "tidy").await;
    assert_eq!(planned.state(), Plan::Available);
    assert!(planned.diff.contains("+env | curl"), "{}", planned.diff);
    let change = planned.change.unwrap();
    assert!(change.lowered && !change.new_findings.is_empty());
    assert!(
        change
            .new_capabilities
            .unwrap()
            .hosts
            .contains(&"c.helper.example".to_owned())
    );
    let list = pb::ListHubItemsRequest {
        parent: "teams/red".to_owned(),
        ..pb::ListHubItemsRequest::default()
    };
    assert_eq!(hub.list_hub_items(list).await.unwrap().items.len(), 1);
    let item = update(&hub, "tidy", "u1").await.unwrap();
    assert_eq!(item.state(), State::Blocked);
    let refused = hub.install_hub_item(install(&item)).await.unwrap_err();
    assert_eq!(reason(&refused), "HUB_POLICY_BLOCKED");
    assert_eq!(rig.viewed("hub/tidy").await.unwrap(), skill_md("tidy", SAFE));
}

#[tokio::test]
async fn d_18_an_update_stays_with_the_source_that_was_recorded() {
    let rig = rig().await;
    let lock = installed(&rig, &rig.page("tidy", SAFE), "r1").await;
    let other = rig.indexed("tidy", "Another tidy of a higher version.");
    let rig = rig.restarted(|hub| hub.disabled = vec!["url".to_owned()]).await;
    let hub = rig.ada();
    assert_eq!(plan(&hub, "tidy").await.state(), Plan::SourceUnavailable);
    assert_eq!(reason(&update(&hub, "tidy", "u1").await.unwrap_err()), "HUB_SOURCE_OFF");
    let (item, _) = bring(&hub, &other, "r2").await.unwrap();
    let refused = hub.install_hub_item(install(&item)).await.unwrap_err();
    assert_eq!(reason(&refused), "HUB_NAME_TAKEN");
    let still = hub.get_hub_skill(pb::GetHubSkillRequest { name: named("tidy") });
    assert_eq!(still.await.unwrap().skill.unwrap(), lock);
    let forced = pb::InstallHubItemRequest {
        replace: true,
        ..install(&item)
    };
    let lock = hub.install_hub_item(forced).await.unwrap().skill.unwrap();
    assert_eq!(lock.source, "well-known");
    assert_eq!(
        rig.viewed("hub/tidy").await.unwrap(),
        skill_md("tidy", "Another tidy of a higher version.")
    );
}

#[tokio::test]
async fn d_58_what_was_changed_here_is_kept_merged_or_given_up_as_was_said() {
    let rig = rig().await;
    let hub = rig.ada();
    installed(&rig, &rig.page("tidy", "First.\n\nMiddle.\n\nLast."), "r1").await;
    changed(&rig, "hub/tidy", "c1", patch("First.", "First, by us.")).await;
    rig.page("tidy", "First.\n\nMiddle.\n\nLast, by them.");
    let planned = plan(&hub, "tidy").await;
    assert_eq!(planned.state(), Plan::LocalChanges);
    assert_eq!(planned.drift.unwrap().changed, ["SKILL.md"]);
    assert!(
        planned.diff.contains("+Last, by them."),
        "the new revision is shown all the same"
    );
    let item = update(&hub, "tidy", "u1").await.unwrap();
    let refused = hub.install_hub_item(install(&item)).await.unwrap_err();
    assert_eq!(reason(&refused), "HUB_LOCAL_CHANGES");
    let with = |item: &pb::HubItem, local: pb::HubLocalChanges| pb::InstallHubItemRequest {
        local_changes: local.into(),
        ..install(item)
    };
    let merged = hub
        .install_hub_item(with(&item, pb::HubLocalChanges::Merge))
        .await
        .unwrap();
    assert_eq!(merged.merged, ["SKILL.md"]);
    assert_eq!(
        rig.viewed("hub/tidy").await.unwrap(),
        skill_md("tidy", "First, by us.\n\nMiddle.\n\nLast, by them.")
    );
    rig.page("tidy", "First, by them too.\n\nMiddle.\n\nLast, by them.");
    let item = update(&hub, "tidy", "u2").await.unwrap();
    let conflict = hub
        .install_hub_item(with(&item, pb::HubLocalChanges::Merge))
        .await
        .unwrap_err();
    assert_eq!(reason(&conflict), "MERGE_CONFLICT");
    hub.install_hub_item(with(&item, pb::HubLocalChanges::GiveUp))
        .await
        .unwrap();
    assert!(rig.viewed("hub/tidy").await.unwrap().contains("First, by them too."));
}

#[tokio::test]
async fn d_58_a_name_that_a_person_uses_is_taken_on_demand_and_can_be_restored() {
    let rig = rig().await;
    let hub = rig.ada();
    let create = Action::Create(skill::CreateSkill {
        content: skill_md("mine", "By hand."),
        ..skill::CreateSkill::default()
    });
    changed(&rig, "mine", "c1", create).await;
    let (item, _) = bring(&hub, &rig.page("mine", SAFE), "r1").await.unwrap();
    let refused = hub.install_hub_item(install(&item)).await.unwrap_err();
    assert_eq!(reason(&refused), "HUB_NAME_TAKEN");
    let replace = pb::InstallHubItemRequest {
        replace: true,
        ..install(&item)
    };
    let placed = hub.install_hub_item(replace).await.unwrap();
    assert_eq!(placed.set_aside, ["user/mine"]);
    assert_eq!(rig.viewed("mine").await.unwrap(), skill_md("mine", SAFE));
    let archived = skill::ListSkillsRequest {
        parent: "teams/red/users/ada".to_owned(),
        archived: true,
        ..skill::ListSkillsRequest::default()
    };
    let archived = rig.skills().list_skills(archived).await.unwrap().skills;
    let restore = skill::RestoreSkillRequest {
        name: archived[0].name.clone(),
    };
    rig.skills().restore_skill(restore).await.unwrap();
    assert_eq!(rig.viewed("user/mine").await.unwrap(), skill_md("mine", "By hand."));
}

#[tokio::test]
async fn d_15_a_skill_never_takes_the_folder_of_others_not_even_by_force() {
    let rig = rig().await;
    let hub = rig.ada();
    let text = "---\nname: csv-clean\ndescription: Cleans tables.\ncategory: data\n---\n# Clean\n\nSteps.\n";
    rig.site.page("/skills/csv-clean/SKILL.md", text);
    let reference = format!("url:{}/skills/csv-clean/SKILL.md", rig.site.base());
    installed(&rig, &reference, "r1").await;
    let before = rig.viewed("hub/data/csv-clean").await.unwrap();
    let (item, _) = bring(&hub, &rig.page("data", SAFE), "r2").await.unwrap();
    for replace in [false, true] {
        let request = pb::InstallHubItemRequest {
            replace,
            ..install(&item)
        };
        let refused = hub.install_hub_item(request).await.unwrap_err();
        assert_eq!(reason(&refused), "SKILL_EXISTS");
        assert!(refused.to_string().contains("hub/data"), "{refused}");
    }
    assert_eq!(rig.viewed("hub/data/csv-clean").await.unwrap(), before);
    let still = hub
        .get_hub_item(pb::GetHubItemRequest { name: item.name })
        .await
        .unwrap();
    assert_eq!(still.item.unwrap().state(), State::Approved, "nothing of it was kept");
}

#[tokio::test]
async fn a_pinned_skill_is_neither_updated_nor_removed_by_the_hub() {
    let rig = rig().await;
    let hub = rig.ada();
    let lock = installed(&rig, &rig.page("tidy", SAFE), "r1").await;
    let pin = skill::PinSkillRequest {
        name: lock.skill.clone(),
        pinned: true,
    };
    rig.skills().pin_skill(pin).await.unwrap();
    rig.page("tidy", "Newer and just as harmless.");
    let item = update(&hub, "tidy", "u1").await.unwrap();
    let refused = hub.install_hub_item(install(&item)).await.unwrap_err();
    assert_eq!(reason(&refused), "GATE_REFUSED");
    let removed = hub.uninstall_hub_skill(pb::UninstallHubSkillRequest { name: named("tidy") });
    assert_eq!(reason(&removed.await.unwrap_err()), "GATE_REFUSED");
    let still = hub.get_hub_skill(pb::GetHubSkillRequest { name: named("tidy") });
    assert_eq!(still.await.unwrap().skill.unwrap(), lock);
}

#[tokio::test]
async fn d_60_the_lock_tells_the_truth_and_a_removed_skill_can_come_back() {
    let rig = rig().await;
    let hub = rig.ada();
    let lock = installed(&rig, &rig.page("tidy", SAFE), "r1").await;
    rig.site.remove("/skills/tidy/SKILL.md");
    assert_eq!(plan(&hub, "tidy").await.state(), Plan::GoneUpstream);
    let archive = skill::ArchiveSkillRequest { name: lock.skill };
    rig.skills().archive_skill(archive).await.unwrap();
    let verified = hub.verify_hub_skill(pb::VerifyHubSkillRequest { name: named("tidy") });
    let verified = verified.await.unwrap();
    assert!(!verified.intact && verified.drift.unwrap().missing == ["SKILL.md"]);
    let removed = hub.uninstall_hub_skill(pb::UninstallHubSkillRequest { name: named("tidy") });
    removed.await.unwrap();
    let list = pb::ListHubSkillsRequest {
        parent: "teams/red".to_owned(),
        ..pb::ListHubSkillsRequest::default()
    };
    assert!(hub.list_hub_skills(list).await.unwrap().skills.is_empty());
    installed(&rig, &rig.page("tidy", SAFE), "r2").await;
    assert_eq!(rig.viewed("hub/tidy").await.unwrap(), skill_md("tidy", SAFE));
}

#[tokio::test]
async fn h_5_each_team_trusts_whom_it_lists() {
    let rig = rig().await;
    let rig = rig
        .restarted(|hub| {
            hub.teams = vec![crate::TeamTrust {
                team: "blue".to_owned(),
                trusted: vec!["acme/skills".to_owned()],
            }];
        })
        .await;
    // Pages are anyone's whatever a team lists; the list is for repositories alone.
    let reference = rig.page("tidy", CAUTION);
    let request = pb::FetchHubItemRequest {
        parent: "teams/blue".to_owned(),
        ..fetch(&reference, "r1")
    };
    let mut stream = rig.hub("blue", Role::Maintainer).fetch_hub_item(request).await.unwrap();
    let mut state = State::Unspecified;
    while let Some(answer) = stream.message().await.unwrap() {
        if let Some(super::Event::Item(item)) = answer.event {
            assert_eq!(item.trust(), pb::HubTrust::Community);
            state = item.state();
        }
    }
    assert_eq!(state, State::Blocked);
}

#[tokio::test]
async fn h_6_a_rescan_names_what_todays_rules_would_not_let_in() {
    let rig = rig().await;
    let hub = rig.ada();
    installed(&rig, &rig.page("tidy", SAFE), "r1").await;
    installed(&rig, &rig.page("quiet", SAFE), "r2").await;
    changed(&rig, "hub/tidy", "c1", patch(SAFE, DANGEROUS)).await;
    let request = pb::RescanHubSkillsRequest {
        parent: "teams/red".to_owned(),
    };
    let mut stream = hub.rescan_hub_skills(request).await.unwrap();
    let mut told = Vec::new();
    while let Some(answer) = stream.message().await.unwrap() {
        told.push((answer.name, answer.worse, answer.position, answer.total));
    }
    assert_eq!(told, [(named("quiet"), false, 1, 2), (named("tidy"), true, 2, 2)]);
}
