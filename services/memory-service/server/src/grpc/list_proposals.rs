//! `ListProposals`.

use steward_base::names::parse_team;
use steward_base::{FieldViolations, page};
use steward_memory_core::{Memory, listed_id};
use steward_proto::memory::v1 as pb;
use tonic::{Request, Response, Status};

use super::convert::{checked, listed_to_pb, page_from_pb, state_from_pb};
use super::fail;

pub(super) async fn list_proposals(
    memory: &Memory,
    request: Request<pb::ListProposalsRequest>,
) -> Result<Response<pb::ListProposalsResponse>, Status> {
    let caller = steward_grpc::caller(&request)?.clone();
    let request = request.into_inner();
    let mut violations = FieldViolations::new();
    let team = violations.take("parent", parse_team(&request.parent));
    let state = state_from_pb(request.state, &mut violations);
    let arguments = ["proposals", request.parent.as_str(), state.as_str()];
    let (size, cursor) = page_from_pb(
        request.page_size,
        &request.page_token,
        &arguments,
        (50, 200),
        &mut violations,
    );
    violations.into_result().map_err(|violations| fail(violations.into()))?;
    let team = checked(team, "parent").map_err(fail)?;
    let mut proposals = memory
        .list_proposals(&caller, &team, state, cursor, size + 1)
        .await
        .map_err(fail)?;
    let size = usize::try_from(size).unwrap_or(usize::MAX);
    let more = proposals.len() > size;
    proposals.truncate(size);
    let last = proposals.last().filter(|_| more);
    Ok(Response::new(pb::ListProposalsResponse {
        next_page_token: last
            .map(|last| page::encode(&arguments, listed_id(last)))
            .unwrap_or_default(),
        proposals: proposals.iter().map(|listed| listed_to_pb(&team, listed)).collect(),
    }))
}
