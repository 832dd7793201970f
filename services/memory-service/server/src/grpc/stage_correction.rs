//! `StageCorrection`.

use steward_base::FieldViolations;
use steward_base::names::{parse_session, parse_user};
use steward_memory_core::{Error, Memory, StageRequest, check_stage};
use steward_proto::memory::v1 as pb;
use tonic::{Request, Response, Status};

use super::convert::{checked, proposal_to_pb};
use super::fail;

pub(super) async fn stage_correction(
    memory: &Memory,
    request: Request<pb::StageCorrectionRequest>,
) -> Result<Response<pb::StageCorrectionResponse>, Status> {
    let caller = steward_grpc::caller(&request)?.clone();
    let request = request_from_pb(request.into_inner()).map_err(fail)?;
    let staged = memory.stage_correction(&caller, &request).await.map_err(fail)?;
    Ok(Response::new(pb::StageCorrectionResponse {
        proposals: staged.iter().map(|one| proposal_to_pb(&request.team, one)).collect(),
    }))
}

fn request_from_pb(request: pb::StageCorrectionRequest) -> Result<StageRequest, Error> {
    let mut violations = FieldViolations::new();
    let person = violations.take("user", parse_user(&request.user));
    let session = violations.take("session", parse_session(&request.session));
    if let (Some((team, _)), Some((of, _))) = (&person, &session)
        && team != of
    {
        violations.add("session", "must be a session of the user's team");
    }
    check_stage(&request.request_id, &request.span, &request.text, &mut violations);
    violations.into_result()?;
    let (team, user) = checked(person, "user")?;
    let (_, session) = checked(session, "session")?;
    Ok(StageRequest {
        team,
        user,
        session,
        span: request.span,
        text: request.text,
        request_id: request.request_id,
    })
}
