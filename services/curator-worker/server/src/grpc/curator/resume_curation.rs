//! Starts again what comes due by itself.

use steward_proto::learning::v1 as pb;
use tonic::{Request, Response, Status};

use super::super::fail;
use super::{CuratorHandlers, own_team};

pub(super) async fn resume_curation(
    handlers: &CuratorHandlers,
    request: Request<pb::ResumeCurationRequest>,
) -> Result<Response<pb::ResumeCurationResponse>, Status> {
    let caller = steward_grpc::caller(&request)?;
    let team = own_team(caller, "name", &request.get_ref().name).map_err(fail)?;
    handlers.ledger.set_paused(&team, false).await.map_err(fail)?;
    let status = handlers.status(&team).await.map_err(fail)?;
    Ok(Response::new(pb::ResumeCurationResponse { status: Some(status) }))
}
