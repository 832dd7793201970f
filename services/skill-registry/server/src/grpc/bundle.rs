//! `steward.skill.v1.BundleService`: skills that are opened together.

use std::sync::Arc;

use steward_base::FieldViolations;
use steward_proto::skill::v1 as pb;
use steward_proto::skill::v1::bundle_service_server::BundleService;
use steward_skill_core::bundle::{Bundle, SaveRequest};
use steward_skill_core::{Actor, Skills};
use tonic::{Request, Response, Status};

use super::convert::{time_to_pb, viewer};
use super::fail;

/// The RPCs on bundles.
#[derive(Debug, Clone)]
pub(crate) struct BundleHandlers {
    skills: Arc<Skills>,
}

impl BundleHandlers {
    pub(crate) const fn new(skills: Arc<Skills>) -> Self {
        Self { skills }
    }

    async fn told(&self, actor: &Actor, bundle: &Bundle) -> Result<pb::Bundle, Status> {
        let unresolved = self.skills.unresolved(actor, bundle).await.map_err(fail)?;
        Ok(pb::Bundle {
            name: bundle.resource_name(),
            description: bundle.description.clone(),
            skills: bundle.skills.clone(),
            instruction: bundle.instruction.clone(),
            etag: bundle.etag(),
            create_time: time_to_pb(bundle.created),
            update_time: time_to_pb(bundle.updated),
            unresolved,
        })
    }
}

#[tonic::async_trait]
impl BundleService for BundleHandlers {
    async fn get_bundle(
        &self,
        request: Request<pb::GetBundleRequest>,
    ) -> Result<Response<pb::GetBundleResponse>, Status> {
        let actor = Actor::new(steward_grpc::caller(&request)?).map_err(fail)?;
        let bundle = self
            .skills
            .get_bundle(&actor, &request.get_ref().name)
            .await
            .map_err(fail)?;
        let bundle = Some(self.told(&actor, &bundle).await?);
        Ok(Response::new(pb::GetBundleResponse { bundle }))
    }

    async fn list_bundles(
        &self,
        request: Request<pb::ListBundlesRequest>,
    ) -> Result<Response<pb::ListBundlesResponse>, Status> {
        let actor = viewer(&request, "parent", &request.get_ref().parent)?;
        let mut bundles = Vec::new();
        for bundle in self.skills.list_bundles(&actor).await.map_err(fail)? {
            bundles.push(self.told(&actor, &bundle).await?);
        }
        Ok(Response::new(pb::ListBundlesResponse { bundles }))
    }

    async fn save_bundle(
        &self,
        request: Request<pb::SaveBundleRequest>,
    ) -> Result<Response<pb::SaveBundleResponse>, Status> {
        let actor = viewer(&request, "parent", &request.get_ref().parent)?;
        let request = request.into_inner();
        let in_team = match request.scope() {
            pb::SkillScope::Unspecified | pb::SkillScope::User => false,
            pb::SkillScope::Team => true,
            pb::SkillScope::Builtin | pb::SkillScope::External | pb::SkillScope::Hub => {
                return Err(fail(FieldViolations::one("scope", "must be user or team").into()));
            }
        };
        let bundle = request.bundle.unwrap_or_default();
        let wanted = SaveRequest {
            slug: request.slug,
            in_team,
            description: bundle.description,
            skills: bundle.skills,
            instruction: bundle.instruction,
            etag: request.etag,
        };
        let bundle = self.skills.save_bundle(&actor, &wanted).await.map_err(fail)?;
        let bundle = Some(self.told(&actor, &bundle).await?);
        Ok(Response::new(pb::SaveBundleResponse { bundle }))
    }

    async fn delete_bundle(
        &self,
        request: Request<pb::DeleteBundleRequest>,
    ) -> Result<Response<pb::DeleteBundleResponse>, Status> {
        let actor = Actor::new(steward_grpc::caller(&request)?).map_err(fail)?;
        let name = request.into_inner().name;
        self.skills.delete_bundle(&actor, &name).await.map_err(fail)?;
        Ok(Response::new(pb::DeleteBundleResponse {}))
    }
}
