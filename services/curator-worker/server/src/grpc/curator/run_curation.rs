//! Puts a curation, or a dry run of one, into the queue.

use steward_curator_core::curation::Kind;
use steward_proto::learning::v1 as pb;
use tonic::{Request, Response, Status};

use super::super::fail;
use super::{CuratorHandlers, convert, own_team, request_of};
use crate::sqlite::NewRun;

pub(super) async fn run_curation(
    handlers: &CuratorHandlers,
    request: Request<pb::RunCurationRequest>,
) -> Result<Response<pb::RunCurationResponse>, Status> {
    let caller = steward_grpc::caller(&request)?;
    let message = request.get_ref();
    let team = own_team(caller, "parent", &message.parent).map_err(fail)?;
    let requester = request_of(caller, &message.request_id).map_err(|violations| fail(violations.into()))?;
    let new = NewRun {
        team,
        id: handlers.new_id(),
        kind: if message.dry_run { Kind::DryRun } else { Kind::Curate },
        requester,
        request_id: message.request_id.clone(),
        undoes: None,
    };
    let run = handlers.ledger.request_run(new).await.map_err(fail)?;
    Ok(Response::new(pb::RunCurationResponse {
        run: Some(convert::run(&run)),
    }))
}
