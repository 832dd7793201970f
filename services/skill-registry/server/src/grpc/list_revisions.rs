//! The history of a skill.

use steward_proto::skill::v1 as pb;
use steward_skill_core::{Actor, Skills};
use tonic::{Request, Response, Status};

use super::convert::revision_to_pb;
use super::fail;

pub(super) async fn list_revisions(
    skills: &Skills,
    request: Request<pb::ListRevisionsRequest>,
) -> Result<Response<pb::ListRevisionsResponse>, Status> {
    let actor = Actor::new(steward_grpc::caller(&request)?).map_err(fail)?;
    let request = request.into_inner();
    let (revisions, next_page_token) = skills
        .list_revisions(&actor, &request.parent, request.page_size, &request.page_token)
        .await
        .map_err(fail)?;
    let revisions = revisions
        .iter()
        .map(|revision| revision_to_pb(&actor.team, revision))
        .collect();
    Ok(Response::new(pb::ListRevisionsResponse {
        revisions,
        next_page_token,
    }))
}
