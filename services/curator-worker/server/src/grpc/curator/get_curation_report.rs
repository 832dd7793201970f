//! Returns a run with its report.

use steward_proto::learning::v1 as pb;
use tonic::{Request, Response, Status};

use super::super::fail;
use super::{CuratorHandlers, convert, own_run};

pub(super) async fn get_curation_report(
    handlers: &CuratorHandlers,
    request: Request<pb::GetCurationReportRequest>,
) -> Result<Response<pb::GetCurationReportResponse>, Status> {
    let caller = steward_grpc::caller(&request)?;
    let (team, id) = own_run(caller, &request.get_ref().name).map_err(fail)?;
    let (run, run_json, report_markdown) = handlers.ledger.run_report(&team, &id).await.map_err(fail)?;
    Ok(Response::new(pb::GetCurationReportResponse {
        run: Some(convert::run(&run)),
        run_json,
        report_markdown,
    }))
}
