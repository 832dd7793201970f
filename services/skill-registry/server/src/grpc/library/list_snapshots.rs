//! The snapshots that are kept.

use steward_proto::skill::v1 as pb;
use steward_skill_core::{Actor, Library};
use tonic::{Request, Response, Status};

use super::super::fail;
use super::convert::snapshot_to_pb;

pub(super) async fn list_snapshots(
    library: &Library,
    request: Request<pb::ListSnapshotsRequest>,
) -> Result<Response<pb::ListSnapshotsResponse>, Status> {
    let actor = Actor::new(steward_grpc::caller(&request)?).map_err(fail)?;
    let snapshots = library
        .list_snapshots(&actor, &request.get_ref().parent)
        .await
        .map_err(fail)?;
    Ok(Response::new(pb::ListSnapshotsResponse {
        snapshots: snapshots
            .iter()
            .map(|snapshot| snapshot_to_pb(&actor.team, snapshot))
            .collect(),
    }))
}
