//! `ListHeldEntries` and `DeleteHeldEntry`.

use steward_memory_core::{Error, Memory, StoreName};
use steward_proto::memory::v1 as pb;
use tonic::{Request, Response, Status};

use super::convert::{held_to_pb, parse_held};
use super::fail;

pub(super) async fn list_held_entries(
    memory: &Memory,
    request: Request<pb::ListHeldEntriesRequest>,
) -> Result<Response<pb::ListHeldEntriesResponse>, Status> {
    let caller = steward_grpc::caller(&request)?;
    let store = StoreName::parse(&request.get_ref().parent)
        .map_err(|problem| fail(Error::invalid("parent", problem.to_string())))?;
    let held = memory.list_held(caller, &store).await.map_err(fail)?;
    Ok(Response::new(pb::ListHeldEntriesResponse {
        held_entries: held.into_iter().map(|one| held_to_pb(&store, one)).collect(),
    }))
}

pub(super) async fn delete_held_entry(
    memory: &Memory,
    request: Request<pb::DeleteHeldEntryRequest>,
) -> Result<Response<pb::DeleteHeldEntryResponse>, Status> {
    let caller = steward_grpc::caller(&request)?;
    let (store, id) = parse_held(&request.get_ref().name).map_err(fail)?;
    memory.discard_held(caller, &store, id).await.map_err(fail)?;
    Ok(Response::new(pb::DeleteHeldEntryResponse {}))
}
