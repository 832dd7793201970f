//! `GetProposal`.

use steward_memory_core::{Error, Memory, parse_proposal_name};
use steward_proto::memory::v1 as pb;
use tonic::{Request, Response, Status};

use super::convert::proposal_to_pb;
use super::fail;

pub(super) async fn get_proposal(
    memory: &Memory,
    request: Request<pb::GetProposalRequest>,
) -> Result<Response<pb::GetProposalResponse>, Status> {
    let caller = steward_grpc::caller(&request)?;
    let (team, id) = parse_proposal_name(&request.get_ref().name)
        .map_err(|problem| fail(Error::invalid("name", problem.to_string())))?;
    let proposal = memory.get_proposal(caller, &team, &id).await.map_err(fail)?;
    Ok(Response::new(pb::GetProposalResponse {
        proposal: Some(proposal_to_pb(&team, &proposal)),
    }))
}
