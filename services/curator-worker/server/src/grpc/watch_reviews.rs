//! Streams the changes of the caller's reviews. The truth is the sequence of changes in the ledger; the hint that
//! something changed only spares waiting. The stream has no end of its own: the edge ends it when the service stops.

use std::time::Duration;

use steward_base::FieldViolations;
use steward_curator_core::Error;
use steward_curator_core::summary::Detail;
use steward_proto::learning::v1 as pb;
use tokio::time::Instant;
use tonic::{Request, Response, Status};

use super::{Handlers, convert, fail, whose};
use crate::sqlite::Whose;

/// Time between two signs of life.
const HEARTBEAT: Duration = Duration::from_secs(15);
/// Time between two looks without a hint, for changes by another process.
const LOOK: Duration = Duration::from_secs(2);
/// Changes that are read at once.
const BATCH: u32 = 100;

type Item = Result<pb::WatchReviewsResponse, Status>;

pub(super) fn watch_reviews(
    handlers: &Handlers,
    request: &Request<pb::WatchReviewsRequest>,
) -> Result<Response<super::ReviewStream>, Status> {
    let caller = steward_grpc::caller(request)?;
    let message = request.get_ref();
    let invalid = |violations| fail(Error::Invalid(violations));
    let whose = whose(caller, &message.parent, &message.session).map_err(invalid)?;
    let cursor = cursor(&message.cursor).map_err(invalid)?;
    let detail = match message.detail() {
        pb::ReviewDetail::Unspecified => handlers.detail,
        pb::ReviewDetail::Off => Detail::Off,
        pb::ReviewDetail::On => Detail::On,
        pb::ReviewDetail::Verbose => Detail::Verbose,
    };
    Ok(Response::new(Box::pin(stream(handlers.clone(), whose, cursor, detail))))
}

/// The number after which changes are wanted; `None` for the present state first.
fn cursor(text: &str) -> Result<Option<u64>, FieldViolations> {
    if text.is_empty() {
        return Ok(None);
    }
    let number = text
        .parse()
        .map_err(|_| FieldViolations::one("cursor", "is not a cursor that this service gave out"));
    number.map(Some)
}

fn stream(handlers: Handlers, whose: Whose, cursor: Option<u64>, detail: Detail) -> impl futures::Stream<Item = Item> {
    async_stream::try_stream! {
        let mut last = cursor.unwrap_or_default();
        if cursor.is_none() {
            let present = handlers.ledger.unfinished(&whose).await.map_err(fail)?;
            for (number, review) in &present.reviews {
                yield item(*number, Some(convert::told(review, detail)));
            }
            last = present.last;
        }
        // A first sign of life, with the place to go on from.
        yield item(last, None);
        let mut spoken = Instant::now();
        loop {
            // Made before looking, so that no hint falls between looking and waiting.
            let hint = handlers.ledger.signals().changed.notified();
            let changes = handlers.ledger.changed_after(&whose, last, BATCH).await.map_err(fail)?;
            for (number, review) in &changes.reviews {
                yield item(*number, Some(convert::told(review, detail)));
                spoken = Instant::now();
            }
            let more = changes.reviews.len() >= BATCH as usize;
            last = changes.last.max(last);
            if more {
                continue;
            }
            if spoken.elapsed() >= HEARTBEAT {
                yield item(last, None);
                spoken = Instant::now();
            }
            tokio::select! {
                () = hint => {}
                () = tokio::time::sleep(LOOK) => {}
            }
        }
    }
}

fn item(number: u64, review: Option<pb::Review>) -> pb::WatchReviewsResponse {
    pb::WatchReviewsResponse {
        review,
        cursor: number.to_string(),
    }
}
