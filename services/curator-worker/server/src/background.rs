//! What the worker does by itself: pull due reviews, run them, take back what was lost, learn of revocations.

mod curation_due;
mod curator;
mod outbox;
mod reviewer;
mod revocations;
mod standing;
mod sweep;
mod watch_over;

use std::collections::HashMap;

use tracing_opentelemetry::OpenTelemetrySpanExt as _;

pub(crate) use curation_due::CurationDue;
pub(crate) use curator::{Curator, NoSchedules};
pub(crate) use outbox::Outbox;
pub(crate) use reviewer::Reviewer;
pub(crate) use revocations::RevocationPull;
pub(crate) use standing::Standing;
pub(crate) use sweep::Sweeper;

/// Makes a span part of the trace of the turn that made a review due. Only for a span that was not entered yet.
fn continue_trace(span: &tracing::Span, traceparent: &str) {
    if traceparent.is_empty() {
        return;
    }
    let carrier = HashMap::from([("traceparent".to_owned(), traceparent.to_owned())]);
    let parent = opentelemetry::global::get_text_map_propagator(|propagator| propagator.extract(&carrier));
    // Without telemetry there is no trace to be part of.
    let _ = span.set_parent(parent);
}
