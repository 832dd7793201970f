//! `RejectProposal`.

use steward_base::FieldViolations;
use steward_memory_core::{Memory, check_rejection, parse_proposal_name};
use steward_proto::memory::v1 as pb;
use tonic::{Request, Response, Status};

use super::convert::{checked, proposal_to_pb};
use super::fail;

pub(super) async fn reject_proposal(
    memory: &Memory,
    request: Request<pb::RejectProposalRequest>,
) -> Result<Response<pb::RejectProposalResponse>, Status> {
    let caller = steward_grpc::caller(&request)?.clone();
    let pb::RejectProposalRequest { name, reason } = request.into_inner();
    let mut violations = FieldViolations::new();
    let named = violations.take("name", parse_proposal_name(&name));
    check_rejection(&reason, &mut violations);
    violations.into_result().map_err(|violations| fail(violations.into()))?;
    let (team, id) = checked(named, "name").map_err(fail)?;
    let proposal = memory
        .reject_proposal(&caller, &team, &id, reason)
        .await
        .map_err(fail)?;
    Ok(Response::new(pb::RejectProposalResponse {
        proposal: Some(proposal_to_pb(&team, &proposal)),
    }))
}
