//! `GetSession`.

use steward_grpc::caller;
use steward_proto::recall::v1 as pb;
use steward_recall_core::Sessions;
use steward_recall_core::get_session::SessionRead;
use tonic::{Request, Response, Status};

use super::access::{check_readable, session_of};
use super::convert::{message_to_pb, session_to_pb, turn_to_pb};
use super::fail;
use super::list_messages::{next_page_token, range_of};

pub(super) async fn get_session(
    sessions: &Sessions,
    request: Request<pb::GetSessionRequest>,
) -> Result<Response<pb::GetSessionResponse>, Status> {
    let caller = caller(&request)?;
    let (team, session) = session_of(caller, "name", &request.get_ref().name).map_err(fail)?;
    let asked = request.get_ref();
    let page = pb::ListMessagesRequest {
        session: asked.name.clone(),
        ..pb::ListMessagesRequest::default()
    };
    let messages = asked.include_messages.then(|| range_of(&page)).transpose();
    let read = SessionRead {
        turn: asked.turn.clone(),
        messages: messages.map_err(fail)?,
    };
    let view = sessions.view_session(&team, &session, &read).await.map_err(fail)?;
    check_readable(caller, &view.session).map_err(fail)?;
    Ok(Response::new(pb::GetSessionResponse {
        session: Some(session_to_pb(&view.session)),
        turn: view.turn.as_ref().map(turn_to_pb),
        messages: view.messages.messages.iter().map(message_to_pb).collect(),
        next_page_token: next_page_token(&page, view.messages.next),
    }))
}
