//! `AcquireTurnLease`, `RenewTurnLease`, `ReleaseTurnLease`.

use steward_grpc::caller;
use steward_proto::recall::v1 as pb;
use steward_recall_core::Sessions;
use tonic::{Request, Response, Status};

use super::access::session_of;
use super::convert::{duration_from_pb, time_to_pb};
use super::fail;

pub(super) async fn acquire(
    sessions: &Sessions,
    request: Request<pb::AcquireTurnLeaseRequest>,
) -> Result<Response<pb::AcquireTurnLeaseResponse>, Status> {
    let (team, session) = session_of(caller(&request)?, "session", &request.get_ref().session).map_err(fail)?;
    let pb::AcquireTurnLeaseRequest { turn, holder, ttl, .. } = request.into_inner();
    let ttl = duration_from_pb(ttl);
    let grant = sessions
        .acquire_turn_lease(&team, &session, turn, holder, ttl)
        .await
        .map_err(fail)?;
    Ok(Response::new(pb::AcquireTurnLeaseResponse {
        fence: grant.fence,
        expire_time: Some(time_to_pb(grant.expires)),
        interrupted_turn: grant.interrupted_turn.unwrap_or_default(),
    }))
}

pub(super) async fn renew(
    sessions: &Sessions,
    request: Request<pb::RenewTurnLeaseRequest>,
) -> Result<Response<pb::RenewTurnLeaseResponse>, Status> {
    let (team, session) = session_of(caller(&request)?, "session", &request.get_ref().session).map_err(fail)?;
    let pb::RenewTurnLeaseRequest { fence, ttl, .. } = request.into_inner();
    let expires = sessions
        .renew_turn_lease(&team, &session, fence, duration_from_pb(ttl))
        .await
        .map_err(fail)?;
    Ok(Response::new(pb::RenewTurnLeaseResponse {
        expire_time: Some(time_to_pb(expires)),
    }))
}

pub(super) async fn release(
    sessions: &Sessions,
    request: Request<pb::ReleaseTurnLeaseRequest>,
) -> Result<Response<pb::ReleaseTurnLeaseResponse>, Status> {
    let (team, session) = session_of(caller(&request)?, "session", &request.get_ref().session).map_err(fail)?;
    sessions
        .release_turn_lease(&team, &session, request.get_ref().fence)
        .await
        .map_err(fail)?;
    Ok(Response::new(pb::ReleaseTurnLeaseResponse {}))
}
