//! `CheckIntegrity`.

use steward_grpc::caller;
use steward_proto::recall::v1 as pb;
use steward_recall_core::Sessions;
use tonic::{Request, Response, Status};

use super::access::parent_team;
use super::fail;

pub(super) async fn check_integrity(
    sessions: &Sessions,
    request: Request<pb::CheckIntegrityRequest>,
) -> Result<Response<pb::CheckIntegrityResponse>, Status> {
    let team = parent_team(caller(&request)?, &request.get_ref().parent).map_err(fail)?;
    let report = sessions
        .check_integrity(&team, request.get_ref().rebuild)
        .await
        .map_err(fail)?;
    Ok(Response::new(pb::CheckIntegrityResponse {
        consistent: report.problems.is_empty(),
        problems: report.problems,
        messages: report.messages,
        tokenizer_version: report.tokenizer_version,
    }))
}
