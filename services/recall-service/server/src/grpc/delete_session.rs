//! `DeleteSession`.

use steward_grpc::caller;
use steward_proto::recall::v1 as pb;
use steward_recall_core::Sessions;
use steward_recall_core::delete_session::Deletion;
use tonic::{Request, Response, Status};

use super::access::session_of;
use super::fail;

pub(super) async fn delete_session(
    sessions: &Sessions,
    request: Request<pb::DeleteSessionRequest>,
) -> Result<Response<pb::DeleteSessionResponse>, Status> {
    let (team, session) = session_of(caller(&request)?, "name", &request.get_ref().name).map_err(fail)?;
    let deletion = Deletion {
        team,
        session,
        etag: request.into_inner().etag,
    };
    sessions.delete_session(deletion).await.map_err(fail)?;
    Ok(Response::new(pb::DeleteSessionResponse {}))
}
