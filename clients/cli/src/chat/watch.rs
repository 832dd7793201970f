//! The review line: what was kept of the turn, printed when it is known. The person never waits for it for long.

use std::time::Duration;

use steward_proto::learning::v1 as pb;

use super::turn::Conversation;
use crate::output::Output;
use crate::verbs::reviews::line;

/// How long to wait for a review that is due. It goes on at the server; `steward reviews` shows it later.
#[derive(Debug, Clone, Copy)]
pub(super) enum Patience {
    /// Between two turns.
    Short,
    /// At the end of a single message.
    Brief,
}

impl Patience {
    const fn limit(self) -> Duration {
        match self {
            Self::Short => Duration::from_secs(20),
            Self::Brief => Duration::from_mins(1),
        }
    }
}

/// Waits for the due review of the conversation and prints its line.
pub(super) async fn after_turn(
    conversation: &Conversation,
    due: bool,
    patience: Patience,
    output: &mut Output,
) -> anyhow::Result<()> {
    if !due {
        return Ok(());
    }
    let request = pb::ListReviewsRequest {
        parent: conversation.session.user.clone(),
        session: conversation.name.clone(),
        page_size: 1,
        page_token: String::new(),
    };
    let ended = tokio::time::timeout(patience.limit(), end_of_review(conversation, request)).await;
    match ended {
        Ok(Ok(Some(review))) => output.item(&review, |output, review| output.line(&line(review))),
        Ok(Ok(None)) | Err(_) => {
            if !output.is_json() {
                output.aside("the review goes on; `steward reviews list` shows what it keeps");
            }
            Ok(())
        }
        // The answer was delivered; that the reviewer cannot be asked is worth a line and no more.
        Ok(Err(error)) => {
            output.aside(&format!("the reviewer does not answer: {error:#}"));
            Ok(())
        }
    }
}

async fn end_of_review(
    conversation: &Conversation,
    list: pb::ListReviewsRequest,
) -> anyhow::Result<Option<pb::Review>> {
    let reviews = &conversation.session.client.reviews;
    let watch = pb::WatchReviewsRequest {
        parent: conversation.session.user.clone(),
        session: conversation.name.clone(),
        ..pb::WatchReviewsRequest::default()
    };
    // Watching begins before the list is read, so that an end between the two is not missed.
    let mut stream = reviews.watch_reviews(watch).await?;
    if let Some(review) = reviews.list_reviews(list).await?.reviews.into_iter().next()
        && review.end_time.is_some()
        && is_fresh(&review)
    {
        return Ok(Some(review));
    }
    while let Some(item) = stream.message().await? {
        if let Some(review) = item.review.filter(|review| review.end_time.is_some()) {
            return Ok(Some(review));
        }
    }
    Ok(None)
}

/// Whether the review can be the one of the turn that just ended: due within the last few seconds.
fn is_fresh(review: &pb::Review) -> bool {
    use steward_base::{Clock as _, SystemClock, Timestamp};
    review.create_time.is_some_and(|at| {
        SystemClock.now().since(Timestamp::from_parts(at.seconds, at.nanos)) < Duration::from_secs(30)
    })
}
