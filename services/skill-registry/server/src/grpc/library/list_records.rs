//! The skills that a curation looks at.

use steward_base::{FieldViolations, page};
use steward_proto::skill::v1 as pb;
use steward_skill_core::{Actor, Library};
use tonic::{Request, Response, Status};

use super::super::fail;
use super::convert::record_to_pb;

/// Page size when none is given, and the largest.
const PAGE: (u32, u32) = (500, 1_000);

pub(super) async fn list_records(
    library: &Library,
    request: Request<pb::ListRecordsRequest>,
) -> Result<Response<pb::ListRecordsResponse>, Status> {
    let actor = Actor::new(steward_grpc::caller(&request)?).map_err(fail)?;
    let request = request.into_inner();
    let (after, limit) = decode(&request).map_err(|violations| fail(violations.into()))?;
    let found = library
        .list_records(&actor, &request.parent, after.as_deref(), limit)
        .await
        .map_err(fail)?;
    let damaged = found.damaged.into_iter().map(|broken| pb::DamagedRecord {
        name: broken.skill,
        problem: broken.problem,
    });
    Ok(Response::new(pb::ListRecordsResponse {
        records: found.records.iter().map(record_to_pb).collect(),
        damaged: damaged.collect(),
        next_page_token: found
            .next
            .map(|uid| page::encode(&[&request.parent], &uid))
            .unwrap_or_default(),
    }))
}

fn decode(request: &pb::ListRecordsRequest) -> Result<(Option<String>, u32), FieldViolations> {
    let limit = page::size(request.page_size, PAGE.0, PAGE.1)?;
    Ok((page::decode(&[&request.parent], &request.page_token)?, limit))
}
