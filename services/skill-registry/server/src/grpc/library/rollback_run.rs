//! Undoing a run.

use steward_proto::skill::v1 as pb;
use steward_skill_core::{Actor, Library};
use tonic::{Request, Response, Status};

use super::super::fail;
use super::convert::{result_to_pb, snapshot_to_pb};

pub(super) async fn rollback_run(
    library: &Library,
    request: Request<pb::RollbackRunRequest>,
) -> Result<Response<pb::RollbackRunResponse>, Status> {
    let actor = Actor::new(steward_grpc::caller(&request)?).map_err(fail)?;
    let request = request.into_inner();
    let (snapshot, results) = library
        .rollback_run(&actor, &request.parent, &request.run, &request.rollback)
        .await
        .map_err(fail)?;
    Ok(Response::new(pb::RollbackRunResponse {
        snapshot: snapshot.map(|snapshot| snapshot_to_pb(&actor.team, &snapshot)),
        results: results.into_iter().map(result_to_pb).collect(),
    }))
}
