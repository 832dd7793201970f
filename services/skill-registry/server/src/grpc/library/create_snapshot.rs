//! The snapshot of a run.

use steward_proto::skill::v1 as pb;
use steward_skill_core::{Actor, Library};
use tonic::{Request, Response, Status};

use super::super::fail;
use super::convert::snapshot_to_pb;

pub(super) async fn create_snapshot(
    library: &Library,
    request: Request<pb::CreateSnapshotRequest>,
) -> Result<Response<pb::CreateSnapshotResponse>, Status> {
    let actor = Actor::new(steward_grpc::caller(&request)?).map_err(fail)?;
    let request = request.into_inner();
    let snapshot = library
        .create_snapshot(&actor, &request.parent, &request.run)
        .await
        .map_err(fail)?;
    Ok(Response::new(pb::CreateSnapshotResponse {
        snapshot: Some(snapshot_to_pb(&actor.team, &snapshot)),
    }))
}
