//! `steward.hub.v1.HubService`: skills from outside. Each RPC decodes, calls the hub and encodes.

mod convert;
mod items;
mod log;
mod publications;
mod skills;
mod streams;
#[cfg(test)]
mod tests;
mod withdrawals;

use std::sync::Arc;

use steward_base::names::{SkillId, TeamId, parse_team, segments, user_name};
use steward_base::{Clock, FieldViolations, Role};
use steward_proto::hub::v1 as pb;
use steward_proto::hub::v1::hub_service_server::HubService;
use steward_skill_core::Skills;
use steward_skill_hub::error::Error;
use steward_skill_hub::hub::{Actor, Hub};
use tonic::{Request, Response, Status};

use crate::hub::Hubs;

/// `ErrorInfo.domain` of the hub.
const DOMAIN: &str = "hub.steward.dev";
const DEFAULT_PAGE: u32 = 50;
const MAX_PAGE: u32 = 200;
/// Longest reason that people give, in characters.
const MAX_REASON_CHARS: usize = 500;

/// The RPCs of the hub.
#[derive(Debug, Clone)]
pub(crate) struct HubHandlers {
    hubs: Hubs,
    skills: Arc<Skills>,
    /// Whether what is published is served.
    serving: bool,
    clock: Arc<dyn Clock>,
}

impl HubHandlers {
    pub(crate) fn new(hubs: Hubs, skills: Arc<Skills>, serving: bool, clock: Arc<dyn Clock>) -> Self {
        Self {
            hubs,
            skills,
            serving,
            clock,
        }
    }

    /// The person and their team's hub.
    fn person<T>(&self, request: &Request<T>) -> Result<(Person, Hub), Status> {
        let caller = steward_grpc::caller(request)?;
        let (Some(team), Some(user)) = (&caller.team, &caller.user) else {
            return Err(fail(
                FieldViolations::one("parent", "is for a person's credential").into(),
            ));
        };
        let person = Person {
            team: team.clone(),
            user: user_name(team, user),
            role: caller.role,
        };
        let hub = self.hubs.of(person.team.as_str()).clone();
        Ok((person, hub))
    }
}

/// Who calls.
#[derive(Debug, Clone)]
struct Person {
    team: TeamId,
    user: String,
    role: Role,
}

impl Person {
    fn actor(&self) -> Actor<'_> {
        Actor {
            team: self.team.as_str(),
            user: &self.user,
            role: self.role,
        }
    }

    /// Whether `parent` is the person's team.
    fn check_parent(&self, violations: &mut FieldViolations, parent: &str) {
        if violations
            .take("parent", parse_team(parent))
            .is_some_and(|team| team != self.team)
        {
            violations.add("parent", "is not the caller's team");
        }
    }

    /// The id at the end of a resource name. What is another team's is not there.
    fn child<'n>(
        &self,
        name: &'n str,
        collection: &'static str,
        pattern: &'static str,
        missing: impl FnOnce(&str) -> Error,
    ) -> Result<&'n str, Error> {
        let [team, id] = segments(name, ["teams", collection], pattern)
            .map_err(|problem| FieldViolations::one("name", problem.to_string()))?;
        if team == self.team.as_str() {
            Ok(id)
        } else {
            Err(missing(id))
        }
    }

    fn item<'n>(&self, name: &'n str) -> Result<&'n str, Error> {
        self.child(name, "hubItems", "teams/{team}/hubItems/{item}", |id| Error::NoItem {
            id: id.to_owned(),
        })
    }

    fn skill<'n>(&self, name: &'n str) -> Result<&'n str, Error> {
        let missing = |id: &str| Error::NotInstalled { name: id.to_owned() };
        let id = self.child(name, "hubSkills", "teams/{team}/hubSkills/{skill}", missing)?;
        match SkillId::parse(id) {
            Ok(_) => Ok(id),
            Err(problem) => Err(FieldViolations::one("name", problem.to_string()).into()),
        }
    }
}

fn check_reason(violations: &mut FieldViolations, reason: &str) {
    if reason.chars().count() > MAX_REASON_CHARS {
        violations.add("reason", format!("must have at most {MAX_REASON_CHARS} characters"));
    }
}

fn check_request_id(violations: &mut FieldViolations, request_id: &str) {
    if !(1..=128).contains(&request_id.chars().count()) {
        violations.add("request_id", "must have 1 to 128 characters");
    }
}

/// The one way from an error of the hub to a status. What the library refuses keeps its own domain.
#[expect(clippy::needless_pass_by_value, reason = "made to be used with map_err")]
fn fail(error: Error) -> Status {
    let domain = match &error {
        Error::Library(_) => super::DOMAIN,
        _ => DOMAIN,
    };
    steward_grpc::status(&error, domain)
}

#[tonic::async_trait]
impl HubService for HubHandlers {
    type FetchHubItemStream = streams::Streamed<pb::FetchHubItemResponse>;
    type FetchHubUpdateStream = streams::Streamed<pb::FetchHubUpdateResponse>;
    type RescanHubSkillsStream = streams::Streamed<pb::RescanHubSkillsResponse>;
    type CheckHubSkillsStream = streams::Streamed<pb::CheckHubSkillsResponse>;

    async fn search_hub(
        &self,
        request: Request<pb::SearchHubRequest>,
    ) -> Result<Response<pb::SearchHubResponse>, Status> {
        let (person, hub) = self.person(&request)?;
        let answer = items::search_hub(&hub, &person, request.into_inner()).await;
        answer.map(Response::new).map_err(fail)
    }

    async fn fetch_hub_item(
        &self,
        request: Request<pb::FetchHubItemRequest>,
    ) -> Result<Response<Self::FetchHubItemStream>, Status> {
        let (person, hub) = self.person(&request)?;
        let stream = streams::fetch_hub_item(hub, person, request.into_inner());
        stream.map(Response::new).map_err(fail)
    }

    async fn fetch_hub_update(
        &self,
        request: Request<pb::FetchHubUpdateRequest>,
    ) -> Result<Response<Self::FetchHubUpdateStream>, Status> {
        let (person, hub) = self.person(&request)?;
        let stream = streams::fetch_hub_update(hub, person, request.into_inner());
        stream.map(Response::new).map_err(fail)
    }

    async fn rescan_hub_skills(
        &self,
        request: Request<pb::RescanHubSkillsRequest>,
    ) -> Result<Response<Self::RescanHubSkillsStream>, Status> {
        let (person, hub) = self.person(&request)?;
        let request = request.into_inner();
        let stream = streams::rescan_hub_skills(hub, person, &request).await;
        stream.map(Response::new).map_err(fail)
    }

    async fn check_hub_audit_entry(
        &self,
        request: Request<pb::CheckHubAuditEntryRequest>,
    ) -> Result<Response<pb::CheckHubAuditEntryResponse>, Status> {
        let (person, hub) = self.person(&request)?;
        let now = self.clock.now();
        let answer = log::check_hub_audit_entry(&hub, &person, request.into_inner(), now).await;
        answer.map(Response::new).map_err(fail)
    }

    async fn get_hub_item(
        &self,
        request: Request<pb::GetHubItemRequest>,
    ) -> Result<Response<pb::GetHubItemResponse>, Status> {
        let (person, hub) = self.person(&request)?;
        let answer = items::get_hub_item(&hub, &person, request.into_inner()).await;
        answer.map(Response::new).map_err(fail)
    }

    async fn list_hub_items(
        &self,
        request: Request<pb::ListHubItemsRequest>,
    ) -> Result<Response<pb::ListHubItemsResponse>, Status> {
        let (person, hub) = self.person(&request)?;
        let answer = items::list_hub_items(&hub, &person, request.into_inner()).await;
        answer.map(Response::new).map_err(fail)
    }

    async fn release_hub_item(
        &self,
        request: Request<pb::ReleaseHubItemRequest>,
    ) -> Result<Response<pb::ReleaseHubItemResponse>, Status> {
        let (person, hub) = self.person(&request)?;
        let answer = items::release_hub_item(&hub, &person, request.into_inner()).await;
        answer.map(Response::new).map_err(fail)
    }

    async fn reject_hub_item(
        &self,
        request: Request<pb::RejectHubItemRequest>,
    ) -> Result<Response<pb::RejectHubItemResponse>, Status> {
        let (person, hub) = self.person(&request)?;
        let answer = items::reject_hub_item(&hub, &person, request.into_inner()).await;
        answer.map(Response::new).map_err(fail)
    }

    async fn accept_hub_finding(
        &self,
        request: Request<pb::AcceptHubFindingRequest>,
    ) -> Result<Response<pb::AcceptHubFindingResponse>, Status> {
        let (person, hub) = self.person(&request)?;
        let answer = items::accept_hub_finding(&hub, &person, request.into_inner()).await;
        answer.map(Response::new).map_err(fail)
    }

    async fn export_hub_findings(
        &self,
        request: Request<pb::ExportHubFindingsRequest>,
    ) -> Result<Response<pb::ExportHubFindingsResponse>, Status> {
        let (person, hub) = self.person(&request)?;
        let answer = items::export_hub_findings(&hub, &person, request.into_inner()).await;
        answer.map(Response::new).map_err(fail)
    }

    async fn install_hub_item(
        &self,
        request: Request<pb::InstallHubItemRequest>,
    ) -> Result<Response<pb::InstallHubItemResponse>, Status> {
        let (person, hub) = self.person(&request)?;
        let answer = skills::install_hub_item(&hub, &person, request.into_inner()).await;
        answer.map(Response::new).map_err(fail)
    }

    async fn get_hub_skill(
        &self,
        request: Request<pb::GetHubSkillRequest>,
    ) -> Result<Response<pb::GetHubSkillResponse>, Status> {
        let (person, hub) = self.person(&request)?;
        let answer = skills::get_hub_skill(&hub, &person, request.into_inner()).await;
        answer.map(Response::new).map_err(fail)
    }

    async fn list_hub_skills(
        &self,
        request: Request<pb::ListHubSkillsRequest>,
    ) -> Result<Response<pb::ListHubSkillsResponse>, Status> {
        let (person, hub) = self.person(&request)?;
        let answer = skills::list_hub_skills(&hub, &person, request.into_inner()).await;
        answer.map(Response::new).map_err(fail)
    }

    async fn verify_hub_skill(
        &self,
        request: Request<pb::VerifyHubSkillRequest>,
    ) -> Result<Response<pb::VerifyHubSkillResponse>, Status> {
        let (person, hub) = self.person(&request)?;
        let answer = skills::verify_hub_skill(&hub, &person, request.into_inner()).await;
        answer.map(Response::new).map_err(fail)
    }

    async fn uninstall_hub_skill(
        &self,
        request: Request<pb::UninstallHubSkillRequest>,
    ) -> Result<Response<pb::UninstallHubSkillResponse>, Status> {
        let (person, hub) = self.person(&request)?;
        let answer = skills::uninstall_hub_skill(&hub, &person, request.into_inner()).await;
        answer.map(Response::new).map_err(fail)
    }

    async fn plan_hub_update(
        &self,
        request: Request<pb::PlanHubUpdateRequest>,
    ) -> Result<Response<pb::PlanHubUpdateResponse>, Status> {
        let (person, hub) = self.person(&request)?;
        let answer = skills::plan_hub_update(&hub, &person, request.into_inner()).await;
        answer.map(Response::new).map_err(fail)
    }

    async fn withdraw_hub_tree(
        &self,
        request: Request<pb::WithdrawHubTreeRequest>,
    ) -> Result<Response<pb::WithdrawHubTreeResponse>, Status> {
        let (person, hub) = self.person(&request)?;
        let answer = withdrawals::withdraw_hub_tree(&hub, &person, request.into_inner()).await;
        answer.map(Response::new).map_err(fail)
    }

    async fn reinstate_hub_tree(
        &self,
        request: Request<pb::ReinstateHubTreeRequest>,
    ) -> Result<Response<pb::ReinstateHubTreeResponse>, Status> {
        let (person, hub) = self.person(&request)?;
        let answer = withdrawals::reinstate_hub_tree(&hub, &person, request.into_inner()).await;
        answer.map(Response::new).map_err(fail)
    }

    async fn list_hub_withdrawals(
        &self,
        request: Request<pb::ListHubWithdrawalsRequest>,
    ) -> Result<Response<pb::ListHubWithdrawalsResponse>, Status> {
        let (person, hub) = self.person(&request)?;
        let answer = withdrawals::list_hub_withdrawals(&hub, &person, request.into_inner()).await;
        answer.map(Response::new).map_err(fail)
    }

    async fn check_hub_skills(
        &self,
        request: Request<pb::CheckHubSkillsRequest>,
    ) -> Result<Response<Self::CheckHubSkillsStream>, Status> {
        let (person, hub) = self.person(&request)?;
        let request = request.into_inner();
        let stream = streams::check_hub_skills(hub, person, &request).await;
        stream.map(Response::new).map_err(fail)
    }

    async fn publish_hub_skill(
        &self,
        request: Request<pb::PublishHubSkillRequest>,
    ) -> Result<Response<pb::PublishHubSkillResponse>, Status> {
        let (person, hub) = self.person(&request)?;
        let published = publications::Shelf::new(self, &hub, &person);
        let actor = steward_skill_core::Actor::new(steward_grpc::caller(&request)?).map_err(super::fail)?;
        let answer = published.publish_hub_skill(&actor, request.into_inner()).await;
        answer.map(Response::new)
    }

    async fn unpublish_hub_skill(
        &self,
        request: Request<pb::UnpublishHubSkillRequest>,
    ) -> Result<Response<pb::UnpublishHubSkillResponse>, Status> {
        let (person, hub) = self.person(&request)?;
        let answer = publications::unpublish_hub_skill(&hub, &person, request.into_inner()).await;
        answer.map(Response::new).map_err(fail)
    }

    async fn list_hub_publications(
        &self,
        request: Request<pb::ListHubPublicationsRequest>,
    ) -> Result<Response<pb::ListHubPublicationsResponse>, Status> {
        let (person, hub) = self.person(&request)?;
        let published = publications::Shelf::new(self, &hub, &person);
        let answer = published.list_hub_publications(request.into_inner()).await;
        answer.map(Response::new).map_err(fail)
    }

    async fn list_hub_audit_entries(
        &self,
        request: Request<pb::ListHubAuditEntriesRequest>,
    ) -> Result<Response<pb::ListHubAuditEntriesResponse>, Status> {
        let (person, hub) = self.person(&request)?;
        let answer = log::list_hub_audit_entries(&hub, &person, request.into_inner()).await;
        answer.map(Response::new).map_err(fail)
    }
}
