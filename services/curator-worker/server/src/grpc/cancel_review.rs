//! Cancels a review that waits, or asks a running one to stop.

use steward_proto::learning::v1 as pb;
use tonic::{Request, Response, Status};

use super::{Handlers, convert, fail};

pub(super) async fn cancel_review(
    handlers: &Handlers,
    request: Request<pb::CancelReviewRequest>,
) -> Result<Response<pb::CancelReviewResponse>, Status> {
    let caller = steward_grpc::caller(&request)?;
    let own = handlers.own(caller, &request.get_ref().name).await.map_err(fail)?;
    let review = handlers.ledger.cancel(&own.team, &own.id).await.map_err(fail)?;
    Ok(Response::new(pb::CancelReviewResponse {
        review: Some(convert::review(&review)),
    }))
}
