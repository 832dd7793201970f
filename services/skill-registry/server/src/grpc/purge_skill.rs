//! Destroying an archived skill.

use steward_proto::skill::v1 as pb;
use steward_skill_core::{Actor, Skills};
use tonic::{Request, Response, Status};

use super::fail;

pub(super) async fn purge_skill(
    skills: &Skills,
    request: Request<pb::PurgeSkillRequest>,
) -> Result<Response<pb::PurgeSkillResponse>, Status> {
    let actor = Actor::new(steward_grpc::caller(&request)?).map_err(fail)?;
    let request = request.into_inner();
    let revisions = skills.purge_skill(&actor, &request.name).await.map_err(fail)?;
    Ok(Response::new(pb::PurgeSkillResponse {
        revisions: u32::try_from(revisions).unwrap_or(u32::MAX),
    }))
}
