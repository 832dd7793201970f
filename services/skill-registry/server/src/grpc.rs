//! `steward.skill.v1.SkillService`, one file per RPC, which decodes, calls the core and encodes; beside it the other
//! services of the package, and the hub's, each in a module of its own.

mod archive_skill;
mod blame_file;
mod bundle;
mod command;
mod convert;
mod diff_revisions;
#[cfg(test)]
mod error_contract;
mod exchange;
mod get_index;
mod get_skill;
mod hide_skill;
mod hub;
mod inbox;
mod library;
mod list_revisions;
mod list_skills;
mod manage_skill;
mod pin_skill;
mod proposal;
mod purge_skill;
mod restore_revision;
mod restore_skill;
mod secret;
#[cfg(test)]
mod tests;
mod view_skill;

use std::sync::Arc;

use steward_proto::skill::v1 as pb;
use steward_proto::skill::v1::skill_service_server::SkillService;
use steward_skill_core::{Error, Skills};
use tonic::{Request, Response, Status};

pub(crate) use bundle::BundleHandlers;
pub(crate) use command::CommandHandlers;
pub(crate) use exchange::ExchangeHandlers;
pub(crate) use hub::HubHandlers;
pub(crate) use inbox::Changes;
pub(crate) use library::LibraryHandlers;
pub(crate) use proposal::ProposalHandlers;
pub(crate) use secret::SecretHandlers;

/// `ErrorInfo.domain` of this service.
const DOMAIN: &str = "skill.steward.dev";

/// The RPCs of skill-registry.
#[derive(Debug, Clone)]
pub(crate) struct Handlers {
    skills: Arc<Skills>,
    changes: Changes,
}

impl Handlers {
    pub(crate) const fn new(skills: Arc<Skills>, changes: Changes) -> Self {
        Self { skills, changes }
    }
}

/// The one way from an error of the core to a status.
#[expect(clippy::needless_pass_by_value, reason = "made to be used with map_err")]
fn fail(error: Error) -> Status {
    steward_grpc::status(&error, DOMAIN)
}

#[tonic::async_trait]
impl SkillService for Handlers {
    async fn get_skill(&self, request: Request<pb::GetSkillRequest>) -> Result<Response<pb::GetSkillResponse>, Status> {
        get_skill::get_skill(&self.skills, request).await
    }

    async fn list_skills(
        &self,
        request: Request<pb::ListSkillsRequest>,
    ) -> Result<Response<pb::ListSkillsResponse>, Status> {
        list_skills::list_skills(&self.skills, request).await
    }

    async fn view_skill(
        &self,
        request: Request<pb::ViewSkillRequest>,
    ) -> Result<Response<pb::ViewSkillResponse>, Status> {
        view_skill::view_skill(&self.skills, request).await
    }

    async fn manage_skill(
        &self,
        request: Request<pb::ManageSkillRequest>,
    ) -> Result<Response<pb::ManageSkillResponse>, Status> {
        manage_skill::manage_skill(&self.skills, &self.changes, request).await
    }

    async fn archive_skill(
        &self,
        request: Request<pb::ArchiveSkillRequest>,
    ) -> Result<Response<pb::ArchiveSkillResponse>, Status> {
        archive_skill::archive_skill(&self.skills, request).await
    }

    async fn restore_skill(
        &self,
        request: Request<pb::RestoreSkillRequest>,
    ) -> Result<Response<pb::RestoreSkillResponse>, Status> {
        restore_skill::restore_skill(&self.skills, request).await
    }

    async fn purge_skill(
        &self,
        request: Request<pb::PurgeSkillRequest>,
    ) -> Result<Response<pb::PurgeSkillResponse>, Status> {
        purge_skill::purge_skill(&self.skills, request).await
    }

    async fn pin_skill(&self, request: Request<pb::PinSkillRequest>) -> Result<Response<pb::PinSkillResponse>, Status> {
        pin_skill::pin_skill(&self.skills, request).await
    }

    async fn get_index(&self, request: Request<pb::GetIndexRequest>) -> Result<Response<pb::GetIndexResponse>, Status> {
        get_index::get_index(&self.skills, request).await
    }

    async fn hide_skill(
        &self,
        request: Request<pb::HideSkillRequest>,
    ) -> Result<Response<pb::HideSkillResponse>, Status> {
        hide_skill::hide_skill(&self.skills, request).await
    }

    async fn blame_file(
        &self,
        request: Request<pb::BlameFileRequest>,
    ) -> Result<Response<pb::BlameFileResponse>, Status> {
        blame_file::blame_file(&self.skills, request).await
    }

    async fn list_revisions(
        &self,
        request: Request<pb::ListRevisionsRequest>,
    ) -> Result<Response<pb::ListRevisionsResponse>, Status> {
        list_revisions::list_revisions(&self.skills, request).await
    }

    async fn diff_revisions(
        &self,
        request: Request<pb::DiffRevisionsRequest>,
    ) -> Result<Response<pb::DiffRevisionsResponse>, Status> {
        diff_revisions::diff_revisions(&self.skills, request).await
    }

    async fn restore_revision(
        &self,
        request: Request<pb::RestoreRevisionRequest>,
    ) -> Result<Response<pb::RestoreRevisionResponse>, Status> {
        restore_revision::restore_revision(&self.skills, request).await
    }
}
