//! Returns a review.

use steward_proto::learning::v1 as pb;
use tonic::{Request, Response, Status};

use super::{Handlers, convert, fail};

pub(super) async fn get_review(
    handlers: &Handlers,
    request: Request<pb::GetReviewRequest>,
) -> Result<Response<pb::GetReviewResponse>, Status> {
    let caller = steward_grpc::caller(&request)?;
    let review = handlers.own(caller, &request.get_ref().name).await.map_err(fail)?;
    Ok(Response::new(pb::GetReviewResponse {
        review: Some(convert::review(&review)),
    }))
}
