//! Bringing an archived skill back.

use steward_proto::skill::v1 as pb;
use steward_skill_core::{Actor, Skills};
use tonic::{Request, Response, Status};

use super::convert::skill_to_pb;
use super::fail;

pub(super) async fn restore_skill(
    skills: &Skills,
    request: Request<pb::RestoreSkillRequest>,
) -> Result<Response<pb::RestoreSkillResponse>, Status> {
    let actor = Actor::new(steward_grpc::caller(&request)?).map_err(fail)?;
    let request = request.into_inner();
    let skill = skills.restore_skill(&actor, &request.name).await.map_err(fail)?;
    Ok(Response::new(pb::RestoreSkillResponse {
        skill: Some(skill_to_pb(&skill)),
    }))
}
