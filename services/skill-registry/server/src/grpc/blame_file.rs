//! Where each line of a file comes from.

use steward_proto::skill::v1 as pb;
use steward_skill_core::{Actor, Skills};
use tonic::{Request, Response, Status};

use super::convert::revision_to_pb;
use super::fail;

pub(super) async fn blame_file(
    skills: &Skills,
    request: Request<pb::BlameFileRequest>,
) -> Result<Response<pb::BlameFileResponse>, Status> {
    let actor = Actor::new(steward_grpc::caller(&request)?).map_err(fail)?;
    let request = request.into_inner();
    let blame = skills
        .blame_file(&actor, &request.name, &request.path, &request.revision)
        .await
        .map_err(fail)?;
    let count = |number: usize| u32::try_from(number).unwrap_or(u32::MAX);
    let lines = blame.lines.into_iter().map(|lines| pb::BlamedLines {
        first: count(lines.first),
        count: count(lines.count),
        text: lines.text,
        revision: count(lines.revision),
    });
    Ok(Response::new(pb::BlameFileResponse {
        lines: lines.collect(),
        revisions: blame
            .revisions
            .iter()
            .map(|revision| revision_to_pb(&actor.team, revision))
            .collect(),
    }))
}
