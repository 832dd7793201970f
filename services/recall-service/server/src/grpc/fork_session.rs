//! `ForkSession`.

use steward_base::names::SessionId;
use steward_grpc::{caller, request_hash};
use steward_proto::recall::v1 as pb;
use steward_recall_core::append_messages::RequestKey;
use steward_recall_core::fork_session::Fork;
use steward_recall_core::{Error, Sessions};
use tonic::{Request, Response, Status};

use super::access::session_of;
use super::convert::session_to_pb;
use super::fail;

pub(super) async fn fork_session(
    sessions: &Sessions,
    request: Request<pb::ForkSessionRequest>,
) -> Result<Response<pb::ForkSessionResponse>, Status> {
    let (team, parent) = session_of(caller(&request)?, "name", &request.get_ref().name).map_err(fail)?;
    let request = request.into_inner();
    let hash = request_hash("ForkSession", &request);
    let id = match request.session_id {
        id if id.is_empty() => sessions.new_id(),
        id => id,
    };
    let id = SessionId::parse(id).map_err(|problem| fail(Error::field("session_id", problem.to_string())))?;
    let fork = Fork {
        team,
        parent,
        id,
        through: request.through_seq,
        title: request.title,
        request: RequestKey {
            id: request.request_id,
            hash,
        },
    };
    let forked = sessions.fork_session(fork).await.map_err(fail)?;
    Ok(Response::new(pb::ForkSessionResponse {
        session: Some(session_to_pb(&forked)),
    }))
}
