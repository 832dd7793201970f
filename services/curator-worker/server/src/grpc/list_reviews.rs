//! Lists the caller's reviews, newest first.

use steward_base::{FieldViolations, page};
use steward_curator_core::Error;
use steward_proto::learning::v1 as pb;
use tonic::{Request, Response, Status};

use super::{Handlers, convert, fail, whose};
use crate::sqlite::Whose;

/// Page size when none is given, and the largest.
const PAGE: (u32, u32) = (50, 200);

struct Query {
    whose: Whose,
    before: Option<(i64, String)>,
    size: u32,
}

pub(super) async fn list_reviews(
    handlers: &Handlers,
    request: Request<pb::ListReviewsRequest>,
) -> Result<Response<pb::ListReviewsResponse>, Status> {
    let caller = steward_grpc::caller(&request)?;
    let message = request.get_ref();
    let whose = whose(caller, &message.parent, &message.session);
    let query = decode(whose, message).map_err(|violations| fail(Error::Invalid(violations)))?;
    let found = handlers
        .ledger
        .list(&query.whose, query.before, query.size)
        .await
        .map_err(fail)?;
    let next_page_token = found
        .next
        .map(|(created, id)| page::encode(&[&message.parent, &message.session], &format!("{created}:{id}")))
        .unwrap_or_default();
    let reviews = found.reviews.iter().map(convert::review).collect();
    Ok(Response::new(pb::ListReviewsResponse {
        reviews,
        next_page_token,
    }))
}

fn decode(whose: Result<Whose, FieldViolations>, message: &pb::ListReviewsRequest) -> Result<Query, FieldViolations> {
    let mut violations = FieldViolations::new();
    let size = join(page::size(message.page_size, PAGE.0, PAGE.1), &mut violations);
    let cursor = page::decode(&[&message.parent, &message.session], &message.page_token).and_then(|cursor| {
        let read = |cursor: String| {
            let (created, id) = cursor.split_once(':')?;
            Some((created.parse().ok()?, id.to_owned()))
        };
        match cursor {
            None => Ok(None),
            Some(cursor) => read(cursor)
                .map(Some)
                .ok_or_else(|| FieldViolations::one("page_token", "is not a token that this service gave out")),
        }
    });
    let before = join(cursor, &mut violations);
    let whose = join(whose, &mut violations);
    match (whose, before, size) {
        (Some(whose), Some(before), Some(size)) => Ok(Query { whose, before, size }),
        _ => Err(violations),
    }
}

/// Takes a value, or adds what is wrong to what is wrong already.
fn join<T>(checked: Result<T, FieldViolations>, violations: &mut FieldViolations) -> Option<T> {
    match checked {
        Ok(value) => Some(value),
        Err(more) => {
            for violation in more.as_slice() {
                violations.add(&violation.field, &violation.description);
            }
            None
        }
    }
}
