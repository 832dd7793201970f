//! `GetSession`.

use steward_grpc::caller;
use steward_proto::recall::v1 as pb;
use steward_recall_core::Sessions;
use tonic::{Request, Response, Status};

use super::access::{check_readable, session_of};
use super::convert::session_to_pb;
use super::fail;

pub(super) async fn get_session(
    sessions: &Sessions,
    request: Request<pb::GetSessionRequest>,
) -> Result<Response<pb::GetSessionResponse>, Status> {
    let caller = caller(&request)?;
    let (team, session) = session_of(caller, "name", &request.get_ref().name).map_err(fail)?;
    let session = sessions.get_session(&team, &session).await.map_err(fail)?;
    check_readable(caller, &session).map_err(fail)?;
    Ok(Response::new(pb::GetSessionResponse {
        session: Some(session_to_pb(&session)),
        ..pb::GetSessionResponse::default()
    }))
}
