//! Puts the undoing of a run into the queue.

use steward_curator_core::curation::Kind;
use steward_proto::learning::v1 as pb;
use tonic::{Request, Response, Status};

use super::super::fail;
use super::{CuratorHandlers, convert, own_run, request_of};
use crate::sqlite::NewRun;

pub(super) async fn rollback_curation_run(
    handlers: &CuratorHandlers,
    request: Request<pb::RollbackCurationRunRequest>,
) -> Result<Response<pb::RollbackCurationRunResponse>, Status> {
    let caller = steward_grpc::caller(&request)?;
    let message = request.get_ref();
    let (team, undoes) = own_run(caller, &message.name).map_err(fail)?;
    let requester = request_of(caller, &message.request_id).map_err(|violations| fail(violations.into()))?;
    let new = NewRun {
        team,
        id: handlers.new_id(),
        kind: Kind::Rollback,
        requester,
        request_id: message.request_id.clone(),
        undoes: Some(undoes),
    };
    let run = handlers.ledger.request_run(new).await.map_err(fail)?;
    Ok(Response::new(pb::RollbackCurationRunResponse {
        run: Some(convert::run(&run)),
    }))
}
