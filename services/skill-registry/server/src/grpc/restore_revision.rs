//! Making an older revision the present one.

use steward_proto::skill::v1 as pb;
use steward_skill_core::{Actor, Skills};
use tonic::{Request, Response, Status};

use super::convert::skill_to_pb;
use super::fail;
use steward_skill_core::revisions::RestoreRequest;

pub(super) async fn restore_revision(
    skills: &Skills,
    request: Request<pb::RestoreRevisionRequest>,
) -> Result<Response<pb::RestoreRevisionResponse>, Status> {
    let actor = Actor::new(steward_grpc::caller(&request)?).map_err(fail)?;
    let request = request.into_inner();
    let request_hash = steward_grpc::request_hash("RestoreRevision", &request);
    let wanted = RestoreRequest {
        name: request.name,
        revision: request.revision,
        base_revision: request.base_revision,
        request_id: request.request_id,
        request_hash,
    };
    let skill = skills.restore_revision(&actor, &wanted).await.map_err(fail)?;
    Ok(Response::new(pb::RestoreRevisionResponse {
        skill: Some(skill_to_pb(&skill)),
    }))
}
