//! `ReportChecks`.

use steward_memory_core::{CheckResult, Error, Memory, StoreName};
use steward_proto::memory::v1 as pb;
use tonic::{Request, Response, Status};

use super::fail;

pub(super) async fn report_checks(
    memory: &Memory,
    request: Request<pb::ReportChecksRequest>,
) -> Result<Response<pb::ReportChecksResponse>, Status> {
    let caller = steward_grpc::caller(&request)?.clone();
    let request = request.into_inner();
    let store =
        StoreName::parse(&request.store).map_err(|problem| fail(Error::invalid("store", problem.to_string())))?;
    let results = request.results.into_iter().map(|result| CheckResult {
        check: result.check,
        holds: result.holds,
    });
    let doubted = memory
        .report_checks(&caller, &store, results.collect())
        .await
        .map_err(fail)?;
    Ok(Response::new(pb::ReportChecksResponse {
        doubted_entries: u32::try_from(doubted).unwrap_or(u32::MAX),
    }))
}
