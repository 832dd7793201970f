//! `steward.skill.v1.ExchangeService`: skills as files, in and out.

mod check_skill;
mod convert;
mod export_skill;
mod import_skill;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use steward_proto::skill::v1 as pb;
use steward_proto::skill::v1::exchange_service_server::ExchangeService;
use steward_skill_core::Skills;
use tonic::{Request, Response, Status};

/// The RPCs on skills as files.
#[derive(Debug, Clone)]
pub(crate) struct ExchangeHandlers {
    skills: Arc<Skills>,
}

impl ExchangeHandlers {
    pub(crate) const fn new(skills: Arc<Skills>) -> Self {
        Self { skills }
    }
}

#[tonic::async_trait]
impl ExchangeService for ExchangeHandlers {
    async fn check_skill(
        &self,
        request: Request<pb::CheckSkillRequest>,
    ) -> Result<Response<pb::CheckSkillResponse>, Status> {
        check_skill::check_skill(request)
    }

    async fn import_skill(
        &self,
        request: Request<pb::ImportSkillRequest>,
    ) -> Result<Response<pb::ImportSkillResponse>, Status> {
        import_skill::import_skill(&self.skills, request).await
    }

    async fn export_skill(
        &self,
        request: Request<pb::ExportSkillRequest>,
    ) -> Result<Response<pb::ExportSkillResponse>, Status> {
        export_skill::export_skill(&self.skills, request).await
    }
}
