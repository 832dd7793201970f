//! Skills from files.

use steward_base::FieldViolations;
use steward_proto::skill::v1 as pb;
use steward_skill_core::Skills;
use steward_skill_core::import_skill::ImportRequest;
use steward_skill_core::path::SkillPath;
use tonic::{Request, Response, Status};

use super::super::convert::{skill_to_pb, viewer};
use super::super::fail;
use super::convert::{conflict_to_pb, files_from_pb, report_to_pb};

pub(super) async fn import_skill(
    skills: &Skills,
    request: Request<pb::ImportSkillRequest>,
) -> Result<Response<pb::ImportSkillResponse>, Status> {
    let actor = viewer(&request, "parent", &request.get_ref().parent)?;
    let request = request.into_inner();
    let request_hash = steward_grpc::request_hash("ImportSkill", &request);
    let mut violations = FieldViolations::new();
    let in_team = match request.scope() {
        pb::SkillScope::Unspecified | pb::SkillScope::User => false,
        pb::SkillScope::Team => true,
        pb::SkillScope::Builtin | pb::SkillScope::External | pb::SkillScope::Hub => {
            violations.add("scope", "must be user or team");
            false
        }
    };
    let files = files_from_pb(&mut violations, request.files);
    violations.into_result().map_err(|violations| fail(violations.into()))?;
    let wanted = ImportRequest {
        files,
        folder: request.folder,
        category: request.category,
        in_team,
        replace: request.replace,
        request_id: request.request_id,
        request_hash,
        validate_only: request.validate_only,
        overwrite: request.overwrite,
    };
    let imported = skills.import_skill(&actor, &wanted).await.map_err(fail)?;
    Ok(Response::new(pb::ImportSkillResponse {
        skill: Some(skill_to_pb(&imported.skill)),
        report: Some(report_to_pb(imported.report)),
        unchanged: imported.unchanged,
        merged: imported.merged.iter().map(SkillPath::to_string).collect(),
        overwritten: imported.overwritten.iter().map(SkillPath::to_string).collect(),
        conflicts: imported.conflicts.into_iter().map(conflict_to_pb).collect(),
    }))
}
