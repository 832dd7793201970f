//! Putting a whole library back.

use steward_proto::skill::v1 as pb;
use steward_skill_core::{Actor, Library};
use tonic::{Request, Response, Status};

use super::super::fail;
use super::convert::{result_to_pb, snapshot_to_pb};

pub(super) async fn restore_snapshot(
    library: &Library,
    request: Request<pb::RestoreSnapshotRequest>,
) -> Result<Response<pb::RestoreSnapshotResponse>, Status> {
    let actor = Actor::new(steward_grpc::caller(&request)?).map_err(fail)?;
    let request = request.into_inner();
    let (snapshot, results) = library
        .restore_snapshot(&actor, &request.name, &request.request_id)
        .await
        .map_err(fail)?;
    Ok(Response::new(pb::RestoreSnapshotResponse {
        snapshot: Some(snapshot_to_pb(&actor.team, &snapshot)),
        results: results.into_iter().map(result_to_pb).collect(),
    }))
}
