//! Stops what comes due by itself.

use steward_proto::learning::v1 as pb;
use tonic::{Request, Response, Status};

use super::super::fail;
use super::{CuratorHandlers, own_team};

pub(super) async fn pause_curation(
    handlers: &CuratorHandlers,
    request: Request<pb::PauseCurationRequest>,
) -> Result<Response<pb::PauseCurationResponse>, Status> {
    let caller = steward_grpc::caller(&request)?;
    let team = own_team(caller, "name", &request.get_ref().name).map_err(fail)?;
    handlers.ledger.set_paused(&team, true).await.map_err(fail)?;
    let status = handlers.status(&team).await.map_err(fail)?;
    Ok(Response::new(pb::PauseCurationResponse { status: Some(status) }))
}
