//! `GetEntry`.

use steward_memory_core::{Error, Memory, StoreName};
use steward_proto::memory::v1 as pb;
use tonic::{Request, Response, Status};

use super::convert::entry_to_pb;
use super::fail;

pub(super) async fn get_entry(
    memory: &Memory,
    request: Request<pb::GetEntryRequest>,
) -> Result<Response<pb::GetEntryResponse>, Status> {
    let caller = steward_grpc::caller(&request)?;
    let (store, id) = StoreName::parse_entry(&request.get_ref().name)
        .map_err(|problem| fail(Error::invalid("name", problem.to_string())))?;
    let entry = memory.get_entry(caller, &store, &id).await.map_err(fail)?;
    Ok(Response::new(pb::GetEntryResponse {
        entry: Some(entry_to_pb(&store, entry, memory.now())),
    }))
}
