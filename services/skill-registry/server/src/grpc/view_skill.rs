//! Opening a skill or one of its files.

use steward_proto::skill::v1 as pb;
use steward_skill_core::Skills;
use steward_skill_core::view_skill::Surroundings;
use tonic::{Request, Response, Status};

use super::convert::{file_to_pb, skill_to_pb, variable_to_pb, viewer};
use super::fail;

pub(super) async fn view_skill(
    skills: &Skills,
    request: Request<pb::ViewSkillRequest>,
) -> Result<Response<pb::ViewSkillResponse>, Status> {
    let actor = viewer(&request, "parent", &request.get_ref().parent)?;
    let request = request.into_inner();
    let surroundings = Surroundings {
        variables: request.variables.into_iter().collect(),
        known: request.variables_known,
    };
    let viewed = skills
        .view_skill_in(&actor, &request.skill, &request.path, &surroundings)
        .await
        .map_err(fail)?;
    Ok(Response::new(pb::ViewSkillResponse {
        skill: Some(skill_to_pb(&viewed.skill)),
        content: viewed.content,
        files: viewed.files.iter().map(file_to_pb).collect(),
        binary: viewed.binary,
        tool_text: viewed.tool_text,
        setup_needed: !viewed.missing.is_empty(),
        missing: viewed.missing.into_iter().map(variable_to_pb).collect(),
    }))
}
