//! Says when a library is due.

use steward_proto::learning::v1 as pb;
use tonic::{Request, Response, Status};

use super::super::fail;
use super::{CuratorHandlers, own_team};

pub(super) async fn get_curation_status(
    handlers: &CuratorHandlers,
    request: Request<pb::GetCurationStatusRequest>,
) -> Result<Response<pb::GetCurationStatusResponse>, Status> {
    let caller = steward_grpc::caller(&request)?;
    let team = own_team(caller, "name", &request.get_ref().name).map_err(fail)?;
    let status = handlers.status(&team).await.map_err(fail)?;
    Ok(Response::new(pb::GetCurationStatusResponse { status: Some(status) }))
}
