//! What the hub installs and updates.

use steward_base::FieldViolations;
use steward_proto::skill::v1 as pb;
use steward_skill_core::install_skill::InstallRequest;
use steward_skill_core::path::SkillPath;
use steward_skill_core::{Actor, Skills};
use tonic::{Request, Response, Status};

use super::super::convert::skill_to_pb;
use super::super::fail;
use super::convert::files_from_pb;

pub(super) async fn install_skill(
    skills: &Skills,
    request: Request<pb::InstallSkillRequest>,
) -> Result<Response<pb::InstallSkillResponse>, Status> {
    let actor = Actor::new(steward_grpc::caller(&request)?).map_err(fail)?;
    let request = request.into_inner();
    let request_hash = steward_grpc::request_hash("InstallSkill", &request);
    let mut violations = FieldViolations::new();
    let files = files_from_pb(&mut violations, request.files);
    violations.into_result().map_err(|violations| fail(violations.into()))?;
    let wanted = InstallRequest {
        parent: request.parent,
        skill: request.skill,
        category: request.category,
        files,
        base_tree: request.base_tree_sha256,
        source: request.source,
        request_id: request.request_id,
        request_hash,
        overwrite: request.overwrite,
        validate_only: request.validate_only,
    };
    let installed = skills.install_skill(&actor, &wanted).await.map_err(fail)?;
    let paths = |paths: Vec<SkillPath>| paths.iter().map(SkillPath::to_string).collect();
    Ok(Response::new(pb::InstallSkillResponse {
        skill: Some(skill_to_pb(&installed.skill)),
        merged: paths(installed.merged),
        overwritten: paths(installed.overwritten),
        base_tree_sha256: installed.base_tree,
    }))
}
