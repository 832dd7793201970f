//! `RewindSession`.

use steward_grpc::{caller, request_hash};
use steward_proto::recall::v1 as pb;
use steward_recall_core::Sessions;
use steward_recall_core::append_messages::RequestKey;
use steward_recall_core::rewind_session::Rewind;
use tonic::{Request, Response, Status};

use super::access::session_of;
use super::convert::session_to_pb;
use super::fail;

pub(super) async fn rewind_session(
    sessions: &Sessions,
    request: Request<pb::RewindSessionRequest>,
) -> Result<Response<pb::RewindSessionResponse>, Status> {
    let (team, session) = session_of(caller(&request)?, "name", &request.get_ref().name).map_err(fail)?;
    let request = request.into_inner();
    let key = RequestKey {
        hash: request_hash("RewindSession", &request),
        id: request.request_id,
    };
    let rewind = Rewind {
        team,
        session,
        to: request.to_seq,
        etag: request.etag,
        request: key,
    };
    let rewound = sessions.rewind_session(rewind).await.map_err(fail)?;
    Ok(Response::new(pb::RewindSessionResponse {
        session: Some(session_to_pb(&rewound)),
    }))
}
