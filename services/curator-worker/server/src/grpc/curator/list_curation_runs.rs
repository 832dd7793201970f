//! Lists a team's runs, newest first.

use steward_base::{FieldViolations, page};
use steward_proto::learning::v1 as pb;
use tonic::{Request, Response, Status};

use super::super::fail;
use super::{CuratorHandlers, convert, own_team};

/// Page size when none is given, and the largest.
const PAGE: (u32, u32) = (50, 200);

pub(super) async fn list_curation_runs(
    handlers: &CuratorHandlers,
    request: Request<pb::ListCurationRunsRequest>,
) -> Result<Response<pb::ListCurationRunsResponse>, Status> {
    let caller = steward_grpc::caller(&request)?;
    let message = request.get_ref();
    let team = own_team(caller, "parent", &message.parent).map_err(fail)?;
    let (size, before) = decode(message).map_err(|violations| fail(violations.into()))?;
    let found = handlers.ledger.runs(&team, before, size).await.map_err(fail)?;
    let next_page_token = found
        .next
        .map(|(created, id)| page::encode(&[&message.parent], &format!("{created}:{id}")))
        .unwrap_or_default();
    Ok(Response::new(pb::ListCurationRunsResponse {
        runs: found.runs.iter().map(convert::run).collect(),
        next_page_token,
    }))
}

type Decoded = (u32, Option<(i64, String)>);

fn decode(message: &pb::ListCurationRunsRequest) -> Result<Decoded, FieldViolations> {
    let size = page::size(message.page_size, PAGE.0, PAGE.1)?;
    let read = |cursor: String| {
        let (created, id) = cursor.split_once(':')?;
        Some((created.parse().ok()?, id.to_owned()))
    };
    let before = match page::decode(&[&message.parent], &message.page_token)? {
        None => None,
        Some(cursor) => Some(
            read(cursor)
                .ok_or_else(|| FieldViolations::one("page_token", "is not a token that this service gave out"))?,
        ),
    };
    Ok((size, before))
}
