//! Taking a skill out of use.

use steward_proto::skill::v1 as pb;
use steward_skill_core::{Actor, Skills};
use tonic::{Request, Response, Status};

use super::convert::skill_to_pb;
use super::fail;

pub(super) async fn archive_skill(
    skills: &Skills,
    request: Request<pb::ArchiveSkillRequest>,
) -> Result<Response<pb::ArchiveSkillResponse>, Status> {
    let actor = Actor::new(steward_grpc::caller(&request)?).map_err(fail)?;
    let request = request.into_inner();
    let skill = skills.archive_skill(&actor, &request.name).await.map_err(fail)?;
    Ok(Response::new(pb::ArchiveSkillResponse {
        skill: Some(skill_to_pb(&skill)),
    }))
}
