//! One skill by its resource name.

use steward_proto::skill::v1 as pb;
use steward_skill_core::{Actor, Skills};
use tonic::{Request, Response, Status};

use super::convert::skill_to_pb;
use super::fail;

pub(super) async fn get_skill(
    skills: &Skills,
    request: Request<pb::GetSkillRequest>,
) -> Result<Response<pb::GetSkillResponse>, Status> {
    let actor = Actor::new(steward_grpc::caller(&request)?).map_err(fail)?;
    let request = request.into_inner();
    let skill = skills.get_skill(&actor, &request.name).await.map_err(fail)?;
    Ok(Response::new(pb::GetSkillResponse {
        skill: Some(skill_to_pb(&skill)),
    }))
}
