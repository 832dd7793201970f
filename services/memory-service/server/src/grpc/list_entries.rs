//! `ListEntries`.

use steward_base::names::EntryId;
use steward_base::{FieldViolations, Timestamp, page};
use steward_memory_core::{Memory, StoreName};
use steward_proto::memory::v1 as pb;
use tonic::{Request, Response, Status};

use super::convert::{budget_to_pb, checked, damaged_to_pb, entry_to_pb, page_from_pb};
use super::fail;

pub(super) async fn list_entries(
    memory: &Memory,
    request: Request<pb::ListEntriesRequest>,
) -> Result<Response<pb::ListEntriesResponse>, Status> {
    let caller = steward_grpc::caller(&request)?.clone();
    let request = request.into_inner();
    let arguments = ["entries", request.parent.as_str()];
    let mut violations = FieldViolations::new();
    let store = violations.take("parent", StoreName::parse(&request.parent));
    let (size, cursor) = page_from_pb(
        request.page_size,
        &request.page_token,
        &arguments,
        (100, 500),
        &mut violations,
    );
    violations.into_result().map_err(|violations| fail(violations.into()))?;
    let store = checked(store, "parent").map_err(fail)?;
    let after = cursor.as_deref().and_then(after_cursor);
    let size = usize::try_from(size).unwrap_or(usize::MAX);
    let listed = memory
        .list_entries(&caller, &store, after.as_ref(), size)
        .await
        .map_err(fail)?;
    let last = listed.entries.last().filter(|_| listed.more);
    let next = last.map(|last| page::encode(&arguments, &format!("{} {}", last.created.as_micros(), last.id)));
    Ok(Response::new(pb::ListEntriesResponse {
        entries: listed
            .entries
            .into_iter()
            .map(|entry| entry_to_pb(&store, entry, listed.at))
            .chain(listed.damaged.iter().map(|id| damaged_to_pb(&store, id)))
            .collect(),
        budget: Some(budget_to_pb(listed.used, listed.limit)),
        etag: listed.etag,
        next_page_token: next.unwrap_or_default(),
    }))
}

fn after_cursor(cursor: &str) -> Option<(Timestamp, EntryId)> {
    let (created, id) = cursor.split_once(' ')?;
    Some((Timestamp::from_micros(created.parse().ok()?), EntryId::parse(id).ok()?))
}
