//! `RevertEntry`.

use steward_base::FieldViolations;
use steward_memory_core::{Error, Memory, RevertRequest, StoreName, check_request_id};
use steward_proto::memory::v1 as pb;
use tonic::{Request, Response, Status};

use super::convert::{checked, entry_to_pb, given};
use super::fail;

pub(super) async fn revert_entry(
    memory: &Memory,
    request: Request<pb::RevertEntryRequest>,
) -> Result<Response<pb::RevertEntryResponse>, Status> {
    let caller = steward_grpc::caller(&request)?.clone();
    let request = request_from_pb(request.into_inner()).map_err(fail)?;
    let store = request.store.clone();
    let entry = memory.revert_entry(&caller, request).await.map_err(fail)?;
    Ok(Response::new(pb::RevertEntryResponse {
        entry: Some(entry_to_pb(&store, entry, memory.now())),
    }))
}

fn request_from_pb(request: pb::RevertEntryRequest) -> Result<RevertRequest, Error> {
    let mut violations = FieldViolations::new();
    let entry = violations.take("name", StoreName::parse_entry(&request.name));
    let revision = u32::try_from(request.revision).ok().filter(|revision| *revision > 0);
    let revision = violations.take("revision", revision.ok_or("must be the number of a revision, from 1"));
    check_request_id(&request.request_id, &mut violations);
    violations.into_result()?;
    let (store, entry) = checked(entry, "name")?;
    Ok(RevertRequest {
        store,
        entry,
        revision: checked(revision, "revision")?,
        etag: given(request.etag),
        request_id: request.request_id,
    })
}
