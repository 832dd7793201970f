//! `Apply`: the memory tool.

use steward_base::FieldViolations;
use steward_memory_core::{Applied, ApplyRequest, Error, Limits, Memory, Outcome, StoreName, check_apply};
use steward_proto::memory::v1 as pb;
use tonic::{Request, Response, Status};

use super::convert::{
    budget_to_pb, checked, evidence_from_pb, given, holds_from_pb, operations_from_pb, proposal_to_pb, step_to_pb,
};
use super::fail;

pub(super) async fn apply(
    memory: &Memory,
    request: Request<pb::ApplyRequest>,
) -> Result<Response<pb::ApplyResponse>, Status> {
    let caller = steward_grpc::caller(&request)?.clone();
    let request = request_from_pb(request.into_inner(), memory.limits()).map_err(fail)?;
    let store = request.store.clone();
    let applied = memory.apply(&caller, request).await.map_err(fail)?;
    Ok(Response::new(response_to_pb(&store, applied)))
}

fn request_from_pb(request: pb::ApplyRequest, limits: &Limits) -> Result<ApplyRequest, Error> {
    let mut violations = FieldViolations::new();
    let store = violations.take("store", StoreName::parse(&request.store));
    check_apply(
        &request.request_id,
        &request.reason,
        &request.turn,
        request.operations.len(),
        request.evidence.as_ref().map_or(&[], |cited| cited.spans.as_slice()),
        limits,
        &mut violations,
    );
    let operations = operations_from_pb(request.operations, &mut violations);
    let evidence = evidence_from_pb(
        request.evidence,
        store.as_ref().map(|store| &store.team),
        &mut violations,
    );
    violations.into_result()?;
    Ok(ApplyRequest {
        store: checked(store, "store")?,
        operations,
        etag: given(request.etag),
        request_id: request.request_id,
        evidence,
        reason: request.reason,
        turn: request.turn,
        holds: holds_from_pb(request.holds),
    })
}

fn response_to_pb(store: &StoreName, applied: Applied) -> pb::ApplyResponse {
    let (changes, proposal) = match applied.outcome {
        Outcome::Applied { steps } => (steps.into_iter().map(|step| step_to_pb(store, step)).collect(), None),
        Outcome::Proposed(proposal) => (Vec::new(), Some(proposal_to_pb(&store.team, &proposal))),
        // The core gives a refusal as an error, never as an answer.
        Outcome::Refused(_) => (Vec::new(), None),
    };
    pb::ApplyResponse {
        changes,
        budget: Some(budget_to_pb(applied.used, applied.limit)),
        etag: applied.etag,
        proposal,
        tool_text: applied.tool_text,
    }
}
