//! `ConfirmEntry`.

use steward_base::FieldViolations;
use steward_memory_core::{ConfirmRequest, Error, Memory, StoreName, check_request_id};
use steward_proto::memory::v1 as pb;
use tonic::{Request, Response, Status};

use super::convert::{checked, entry_to_pb, given, holds_from_pb};
use super::fail;

pub(super) async fn confirm_entry(
    memory: &Memory,
    request: Request<pb::ConfirmEntryRequest>,
) -> Result<Response<pb::ConfirmEntryResponse>, Status> {
    let caller = steward_grpc::caller(&request)?.clone();
    let request = request_from_pb(request.into_inner(), memory).map_err(fail)?;
    let store = request.store.clone();
    let entry = memory.confirm_entry(&caller, request).await.map_err(fail)?;
    Ok(Response::new(pb::ConfirmEntryResponse {
        entry: Some(entry_to_pb(&store, entry, memory.now())),
    }))
}

fn request_from_pb(request: pb::ConfirmEntryRequest, memory: &Memory) -> Result<ConfirmRequest, Error> {
    let mut violations = FieldViolations::new();
    let entry = violations.take("name", StoreName::parse_entry(&request.name));
    let holds = holds_from_pb(request.holds);
    holds.check(memory.now(), &mut violations);
    check_request_id(&request.request_id, &mut violations);
    violations.into_result()?;
    let (store, entry) = checked(entry, "name")?;
    Ok(ConfirmRequest {
        store,
        entry,
        holds,
        etag: given(request.etag),
        request_id: request.request_id,
    })
}
