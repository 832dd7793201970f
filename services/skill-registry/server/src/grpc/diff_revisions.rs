//! Two states of a skill side by side.

use steward_proto::skill::v1 as pb;
use steward_skill_core::{Actor, Skills};
use tonic::{Request, Response, Status};

use super::fail;

pub(super) async fn diff_revisions(
    skills: &Skills,
    request: Request<pb::DiffRevisionsRequest>,
) -> Result<Response<pb::DiffRevisionsResponse>, Status> {
    let actor = Actor::new(steward_grpc::caller(&request)?).map_err(fail)?;
    let request = request.into_inner();
    let diff = skills
        .diff_revisions(&actor, &request.name, &request.from_revision, &request.to_revision)
        .await
        .map_err(fail)?;
    Ok(Response::new(pb::DiffRevisionsResponse { diff }))
}
