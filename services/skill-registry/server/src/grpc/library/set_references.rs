//! What schedules name.

use steward_proto::skill::v1 as pb;
use steward_skill_core::Skills;
use tonic::{Request, Response, Status};

use super::super::convert::viewer;
use super::super::fail;

pub(super) async fn set_references(
    skills: &Skills,
    request: Request<pb::SetReferencesRequest>,
) -> Result<Response<pb::SetReferencesResponse>, Status> {
    let actor = viewer(&request, "parent", &request.get_ref().parent)?;
    let request = request.into_inner();
    let found = skills
        .set_references(&actor, &request.holder, &request.skills)
        .await
        .map_err(fail)?;
    Ok(Response::new(pb::SetReferencesResponse {
        skills: found.skills,
        unresolved: found.unresolved,
    }))
}
