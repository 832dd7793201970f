//! `ApproveProposal`.

use steward_base::FieldViolations;
use steward_memory_core::{Approval, Error, Memory, parse_proposal_name};
use steward_proto::memory::v1 as pb;
use tonic::{Request, Response, Status};

use super::convert::{operations_from_pb, proposal_to_pb};
use super::fail;

pub(super) async fn approve_proposal(
    memory: &Memory,
    request: Request<pb::ApproveProposalRequest>,
) -> Result<Response<pb::ApproveProposalResponse>, Status> {
    let caller = steward_grpc::caller(&request)?;
    let (team, id) = parse_proposal_name(&request.get_ref().name)
        .map_err(|problem| fail(Error::invalid("name", problem.to_string())))?;
    let approval = approval_from_pb(request.get_ref().operations.clone()).map_err(fail)?;
    let proposal = memory
        .approve_proposal(caller, &team, &id, approval)
        .await
        .map_err(fail)?;
    Ok(Response::new(pb::ApproveProposalResponse {
        proposal: Some(proposal_to_pb(&team, &proposal)),
    }))
}

fn approval_from_pb(operations: Vec<pb::Operation>) -> Result<Approval, Error> {
    let mut violations = FieldViolations::new();
    let operations = operations_from_pb(operations, &mut violations);
    violations.into_result()?;
    Ok(Approval {
        operations: (!operations.is_empty()).then_some(operations),
    })
}
