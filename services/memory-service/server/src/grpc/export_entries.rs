//! `ExportEntries`.

use steward_base::entries;
use steward_memory_core::{Error, Memory, StoreName};
use steward_proto::memory::v1 as pb;
use tonic::{Request, Response, Status};

use super::fail;

pub(super) async fn export_entries(
    memory: &Memory,
    request: Request<pb::ExportEntriesRequest>,
) -> Result<Response<pb::ExportEntriesResponse>, Status> {
    let caller = steward_grpc::caller(&request)?;
    let store = StoreName::parse(&request.get_ref().store)
        .map_err(|problem| fail(Error::invalid("store", problem.to_string())))?;
    let page = memory
        .list_entries(caller, &store, None, usize::MAX)
        .await
        .map_err(fail)?;
    let number = |count: usize| u32::try_from(count).unwrap_or(u32::MAX);
    let file = entries::export(page.entries.iter().map(|entry| entry.content.as_str()));
    Ok(Response::new(pb::ExportEntriesResponse {
        file: file.into_bytes().into(),
        entries: number(page.entries.len()),
        damaged_entries: number(page.damaged.len()),
    }))
}
