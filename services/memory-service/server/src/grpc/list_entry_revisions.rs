//! `ListEntryRevisions`.

use steward_base::{FieldViolations, page};
use steward_memory_core::{Memory, StoreName};
use steward_proto::memory::v1 as pb;
use tonic::{Request, Response, Status};

use super::convert::{checked, page_from_pb, revision_to_pb};
use super::fail;

pub(super) async fn list_entry_revisions(
    memory: &Memory,
    request: Request<pb::ListEntryRevisionsRequest>,
) -> Result<Response<pb::ListEntryRevisionsResponse>, Status> {
    let caller = steward_grpc::caller(&request)?.clone();
    let request = request.into_inner();
    let arguments = ["revisions", request.parent.as_str()];
    let mut violations = FieldViolations::new();
    let entry = violations.take("parent", StoreName::parse_entry(&request.parent));
    let (size, cursor) = page_from_pb(
        request.page_size,
        &request.page_token,
        &arguments,
        (50, 200),
        &mut violations,
    );
    violations.into_result().map_err(|violations| fail(violations.into()))?;
    let (store, entry) = checked(entry, "parent").map_err(fail)?;
    let before = cursor.and_then(|cursor| cursor.parse().ok());
    let size = usize::try_from(size).unwrap_or(usize::MAX);
    let revisions = memory
        .list_entry_revisions(&caller, &store, &entry, before, size)
        .await
        .map_err(fail)?;
    // Numbers have no gaps and end at 1, so the last one says whether more follow.
    let last = revisions
        .last()
        .map(|revision| revision.number)
        .filter(|number| *number > 1);
    Ok(Response::new(pb::ListEntryRevisionsResponse {
        next_page_token: last
            .map(|number| page::encode(&arguments, &number.to_string()))
            .unwrap_or_default(),
        revisions: revisions
            .into_iter()
            .map(|revision| revision_to_pb(&store.team, revision))
            .collect(),
    }))
}
