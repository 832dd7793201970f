//! Skills as files again.

use steward_proto::skill::v1 as pb;
use steward_skill_core::{Actor, Skills};
use tonic::{Request, Response, Status};

use super::super::fail;
use super::convert::{files_to_pb, report_to_pb};

pub(super) async fn export_skill(
    skills: &Skills,
    request: Request<pb::ExportSkillRequest>,
) -> Result<Response<pb::ExportSkillResponse>, Status> {
    let actor = Actor::new(steward_grpc::caller(&request)?).map_err(fail)?;
    let request = request.into_inner();
    let exported = skills
        .export_skill(&actor, &request.name, &request.revision)
        .await
        .map_err(fail)?;
    Ok(Response::new(pb::ExportSkillResponse {
        folder: exported.folder,
        files: files_to_pb(exported.files),
        revision: exported.revision,
        tree_sha256: exported.tree,
        report: Some(report_to_pb(exported.report)),
    }))
}
