//! Puts a failed, dead or cancelled review back into the queue.

use steward_proto::learning::v1 as pb;
use tonic::{Request, Response, Status};

use super::{Handlers, convert, fail};

pub(super) async fn retry_review(
    handlers: &Handlers,
    request: Request<pb::RetryReviewRequest>,
) -> Result<Response<pb::RetryReviewResponse>, Status> {
    let caller = steward_grpc::caller(&request)?;
    let own = handlers.own(caller, &request.get_ref().name).await.map_err(fail)?;
    let review = handlers.ledger.retry(&own.team, &own.id).await.map_err(fail)?;
    Ok(Response::new(pb::RetryReviewResponse {
        review: Some(convert::review(&review)),
    }))
}
