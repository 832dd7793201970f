//! `GetTurn`.

use steward_grpc::caller;
use steward_proto::recall::v1 as pb;
use steward_recall_core::Sessions;
use tonic::{Request, Response, Status};

use super::access::session_of;
use super::convert::turn_to_pb;
use super::fail;

pub(super) async fn get_turn(
    sessions: &Sessions,
    request: Request<pb::GetTurnRequest>,
) -> Result<Response<pb::GetTurnResponse>, Status> {
    let (team, session) = session_of(caller(&request)?, "session", &request.get_ref().session).map_err(fail)?;
    let turn = sessions
        .get_turn(&team, &session, &request.get_ref().turn)
        .await
        .map_err(fail)?;
    Ok(Response::new(pb::GetTurnResponse {
        turn: Some(turn_to_pb(&turn)),
    }))
}
