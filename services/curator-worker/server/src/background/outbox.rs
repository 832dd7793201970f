//! From recall's outbox into the queue: taken into the queue first, acknowledged afterwards, so that a crash in between
//! only makes the same review come once more, which changes nothing (`R-1`).

use steward_base::names::{ReviewId, parse_session, parse_user, segments};
use steward_base::{Timestamp, error_chain};
use steward_client::SessionStoreClient;
use steward_curator_core::Error;
use steward_curator_core::review::{Due, Kinds};
use steward_proto::recall::v1 as pb;
use steward_runtime::reconcile::Report;
use steward_runtime::{BoxError, Reconciler, failpoint};

use super::continue_trace;
use crate::peers::{RECALL, by};
use crate::sqlite::Ledger;

/// Due reviews of one pull.
const BATCH: i32 = 100;

/// The reconciler.
#[derive(Debug)]
pub(crate) struct Outbox {
    pub(crate) ledger: Ledger,
    /// With the worker's own credential.
    pub(crate) sessions: SessionStoreClient,
}

impl Reconciler for Outbox {
    fn name(&self) -> &'static str {
        "learning/outbox"
    }

    async fn tick(&self) -> Result<Report, BoxError> {
        let pulled = self
            .sessions
            .list_due_reviews(pb::ListDueReviewsRequest { page_size: BATCH })
            .await;
        let due_reviews = pulled.map_err(by(RECALL))?.due_reviews;
        if due_reviews.is_empty() {
            return Ok(Report::default());
        }
        let more = i32::try_from(due_reviews.len()).unwrap_or(BATCH) >= BATCH;
        let mut dues = Vec::new();
        for found in due_reviews {
            let name = found.name.clone();
            match due(found) {
                Ok(due) => dues.push(due),
                // It stays in the outbox, where it can be seen, and does not hold the others up.
                Err(error) => tracing::error!(name, error = error_chain(&error), "a due review cannot be read"),
            }
        }
        let names: Vec<String> = dues.iter().map(|due| due.name.clone()).collect();
        let items = u64::try_from(names.len()).unwrap_or(u64::MAX);
        failpoint::hit("review.outbox_pull.before");
        // They are open for as long as the queue takes, each in the trace of its turn.
        let spans: Vec<_> = dues.iter().map(span).collect();
        self.ledger.enqueue(dues).await?;
        drop(spans);
        failpoint::hit("review.outbox_pull.after");
        self.sessions
            .acknowledge_due_reviews(pb::AcknowledgeDueReviewsRequest { names })
            .await
            .map_err(by(RECALL))?;
        Ok(Report { items, more })
    }
}

fn span(due: &Due) -> tracing::Span {
    let span = tracing::info_span!("review enqueued", otel.kind = "producer", review.id = %due.id);
    continue_trace(&span, &due.traceparent);
    span
}

fn due(due: pb::DueReview) -> Result<Due, Error> {
    let unreadable = |error: steward_base::names::NameError| Error::unreadable("a due review", error);
    let pattern = "teams/{team}/sessions/{session}/dueReviews/{id}";
    let [_, _, id] = segments(&due.name, ["teams", "sessions", "dueReviews"], pattern).map_err(unreadable)?;
    let (team, session) = parse_session(&due.session).map_err(unreadable)?;
    let (_, user) = parse_user(&due.user).map_err(unreadable)?;
    let created = due.create_time.unwrap_or_default();
    Ok(Due {
        team,
        id: ReviewId::parse(id).map_err(unreadable)?,
        user,
        session,
        turn: due.turn,
        to_seq: due.to_seq,
        kinds: Kinds {
            memory: due.memory,
            skills: due.skills,
        },
        created_at: Timestamp::from_parts(created.seconds, created.nanos),
        traceparent: due.traceparent,
        name: due.name,
    })
}
