//! Protecting a skill, or lifting the protection.

use steward_proto::skill::v1 as pb;
use steward_skill_core::{Actor, Skills};
use tonic::{Request, Response, Status};

use super::convert::skill_to_pb;
use super::fail;

pub(super) async fn pin_skill(
    skills: &Skills,
    request: Request<pb::PinSkillRequest>,
) -> Result<Response<pb::PinSkillResponse>, Status> {
    let actor = Actor::new(steward_grpc::caller(&request)?).map_err(fail)?;
    let request = request.into_inner();
    let skill = skills
        .pin_skill(&actor, &request.name, request.pinned)
        .await
        .map_err(fail)?;
    Ok(Response::new(pb::PinSkillResponse {
        skill: Some(skill_to_pb(&skill)),
    }))
}
