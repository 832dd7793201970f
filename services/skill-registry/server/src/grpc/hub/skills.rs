//! What is installed: installing, looking, comparing, removing, planning an update.

use steward_base::{FieldViolations, page};
use steward_proto::hub::v1 as pb;
use steward_skill_hub::error::Error;
use steward_skill_hub::hub::{Choice, Hub};
use steward_skill_hub::store::Local;

use super::convert::{Known, drift_to_pb, plan_to_pb, report_to_pb, skill_to_pb};
use super::items::diff_between;
use super::{DEFAULT_PAGE, MAX_PAGE, Person};

pub(super) async fn install_hub_item(
    hub: &Hub,
    person: &Person,
    request: pb::InstallHubItemRequest,
) -> Result<pb::InstallHubItemResponse, Error> {
    let choice = Choice {
        replace: request.replace,
        local: match request.local_changes() {
            pb::HubLocalChanges::Unspecified | pb::HubLocalChanges::Keep => Local::Keep,
            pb::HubLocalChanges::Merge => Local::Merge,
            pb::HubLocalChanges::GiveUp => Local::GiveUp,
        },
    };
    let id = person.item(&request.name)?;
    let outcome = hub.install(person.actor(), id, choice).await?;
    let known = Known::read(hub, person.team.as_str()).await?;
    Ok(pb::InstallHubItemResponse {
        skill: Some(skill_to_pb(person.team.as_str(), &outcome.installed.lock, &known)),
        merged: outcome.placed.merged,
        set_aside: outcome.placed.set_aside,
    })
}

pub(super) async fn get_hub_skill(
    hub: &Hub,
    person: &Person,
    request: pb::GetHubSkillRequest,
) -> Result<pb::GetHubSkillResponse, Error> {
    let team = person.team.as_str();
    let installed = hub.installed(team, person.skill(&request.name)?).await?;
    Ok(pb::GetHubSkillResponse {
        skill: Some(skill_to_pb(team, &installed.lock, &Known::read(hub, team).await?)),
        report: Some(report_to_pb(&installed.report)),
    })
}

pub(super) async fn list_hub_skills(
    hub: &Hub,
    person: &Person,
    request: pb::ListHubSkillsRequest,
) -> Result<pb::ListHubSkillsResponse, Error> {
    let mut violations = FieldViolations::new();
    person.check_parent(&mut violations, &request.parent);
    violations.into_result()?;
    let size = page::size(request.page_size, DEFAULT_PAGE, MAX_PAGE)?;
    let bound = ["hubSkills", request.parent.as_str()];
    let after = page::decode(&bound, &request.page_token)?.unwrap_or_default();
    let size = usize::try_from(size).unwrap_or_default();
    let team = person.team.as_str();
    let mut locks: Vec<_> = hub
        .list(team)
        .await?
        .into_iter()
        .map(|installed| installed.lock)
        .collect();
    locks.retain(|lock| lock.name > after);
    let more = locks.len() > size;
    locks.truncate(size);
    let last = locks.last().filter(|_| more);
    let known = Known::read(hub, team).await?;
    Ok(pb::ListHubSkillsResponse {
        next_page_token: last.map_or_else(String::new, |lock| page::encode(&bound, &lock.name)),
        skills: locks.iter().map(|lock| skill_to_pb(team, lock, &known)).collect(),
    })
}

pub(super) async fn verify_hub_skill(
    hub: &Hub,
    person: &Person,
    request: pb::VerifyHubSkillRequest,
) -> Result<pb::VerifyHubSkillResponse, Error> {
    let drift = hub.verify(person.team.as_str(), person.skill(&request.name)?).await?;
    Ok(pb::VerifyHubSkillResponse {
        intact: drift.is_none(),
        drift: Some(drift_to_pb(drift)),
    })
}

pub(super) async fn uninstall_hub_skill(
    hub: &Hub,
    person: &Person,
    request: pb::UninstallHubSkillRequest,
) -> Result<pb::UninstallHubSkillResponse, Error> {
    let lock = hub.uninstall(person.actor(), person.skill(&request.name)?).await?;
    let known = Known::read(hub, person.team.as_str()).await?;
    let skill = Some(skill_to_pb(person.team.as_str(), &lock, &known));
    Ok(pb::UninstallHubSkillResponse { skill })
}

pub(super) async fn plan_hub_update(
    hub: &Hub,
    person: &Person,
    request: pb::PlanHubUpdateRequest,
) -> Result<pb::PlanHubUpdateResponse, Error> {
    let team = person.team.as_str();
    let preview = hub.preview(team, person.skill(&request.name)?).await?;
    // A folder that is no skill may have paths that nothing here can name.
    let next = preview.next.as_ref().filter(|next| next.problems.is_empty());
    let diff = match next {
        Some(next) => diff_between(&next.before, &next.after)?,
        None => String::new(),
    };
    let known = Known::read(hub, team).await?;
    let plan = Some(plan_to_pb(team, preview, diff, &known));
    Ok(pb::PlanHubUpdateResponse { plan })
}
