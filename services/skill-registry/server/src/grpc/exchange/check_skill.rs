//! What files would be as a skill.

use steward_base::FieldViolations;
use steward_proto::skill::v1 as pb;
use steward_skill_core::import_skill::check_files;
use tonic::{Request, Response, Status};

use super::super::fail;
use super::convert::{files_from_pb, report_to_pb};

pub(super) fn check_skill(request: Request<pb::CheckSkillRequest>) -> Result<Response<pb::CheckSkillResponse>, Status> {
    let request = request.into_inner();
    let mut violations = FieldViolations::new();
    let files = files_from_pb(&mut violations, request.files);
    violations.into_result().map_err(|violations| fail(violations.into()))?;
    let checked = check_files(&files, &request.folder);
    let mut response = pb::CheckSkillResponse {
        report: Some(report_to_pb(checked.report)),
        ..pb::CheckSkillResponse::default()
    };
    match checked.header {
        Ok((name, header)) => {
            response.skill = name.to_string();
            response.description = header.description;
        }
        Err(problem) => response.broken_reason = problem,
    }
    Ok(Response::new(response))
}
