//! Skills that are not to be offered.

use steward_proto::skill::v1 as pb;
use steward_skill_core::{Actor, Skills};
use tonic::{Request, Response, Status};

use super::convert::skill_to_pb;
use super::fail;

pub(super) async fn hide_skill(
    skills: &Skills,
    request: Request<pb::HideSkillRequest>,
) -> Result<Response<pb::HideSkillResponse>, Status> {
    let actor = Actor::new(steward_grpc::caller(&request)?).map_err(fail)?;
    let request = request.into_inner();
    let skill = skills
        .hide_skill(&actor, &request.name, request.hidden, request.for_team)
        .await
        .map_err(fail)?;
    Ok(Response::new(pb::HideSkillResponse {
        skill: Some(pb::Skill {
            hidden: request.hidden,
            ..skill_to_pb(&skill)
        }),
    }))
}
