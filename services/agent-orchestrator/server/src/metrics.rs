//! What the service counts. All instruments are declared here; they do nothing unless a main has installed telemetry.
//!
//! Labels come from closed lists and from the configuration (the model's name): no team, no person, no session, nothing
//! that anyone has written.

use std::time::Duration;

use opentelemetry::metrics::{Counter, Histogram, Meter};
use opentelemetry::{KeyValue, global};
use steward_model::{Cost, Unpriced, Usage};
use steward_orchestrator_core::session::{Prefix, TurnState};
use steward_runtime::genai::{Operations, PROVIDER_NAME, REQUEST_MODEL};

/// How a segment of a turn ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SegmentEnd {
    /// The turn is over, or waits for its client.
    Turn(TurnState),
    /// The store does not know the end; the turn is taken up or closed later.
    Lost,
}

impl SegmentEnd {
    /// The word for it in labels and spans.
    pub(crate) const fn word(self) -> &'static str {
        match self {
            Self::Turn(state) => state_word(state),
            Self::Lost => "lost",
        }
    }
}

const fn state_word(state: TurnState) -> &'static str {
    match state {
        TurnState::Running => "running",
        TurnState::RequiresAction => "requires_action",
        TurnState::Completed => "completed",
        TurnState::Failed => "failed",
        TurnState::Interrupted => "interrupted",
        TurnState::Expired => "expired",
    }
}

/// The instruments for turns.
#[derive(Debug, Clone)]
pub(crate) struct TurnMetrics {
    turns: Counter<u64>,
    duration: Histogram<f64>,
    prefix_breaks: Counter<u64>,
}

impl TurnMetrics {
    /// On the meter of the process.
    pub(crate) fn of_process() -> Self {
        Self::new(&global::meter("steward.agent"))
    }

    pub(crate) fn new(meter: &Meter) -> Self {
        Self {
            turns: meter
                .u64_counter("steward.turns")
                .with_description("Turns that are over, by how they ended.")
                .with_unit("{turn}")
                .build(),
            duration: meter
                .f64_histogram("steward.turn.duration")
                .with_description(
                    "Time from the start of a turn's segment to its end; waiting for a client is no part of it.",
                )
                .with_unit("s")
                .with_boundaries(vec![
                    0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 180.0, 600.0, 1_800.0,
                ])
                .build(),
            prefix_breaks: meter
                .u64_counter("steward.prefix.breaks")
                .with_description("Model requests that did not extend the one before them; unplanned ones are a fault.")
                .with_unit("{break}")
                .build(),
        }
    }

    /// A segment ended, and with it perhaps the turn.
    pub(crate) fn segment_ended(&self, end: SegmentEnd, took: Duration) {
        let outcome = [KeyValue::new("outcome", end.word())];
        self.duration.record(took.as_secs_f64(), &outcome);
        if let SegmentEnd::Turn(state) = end {
            self.turn_ended(state);
        }
    }

    /// A turn is over without a segment of its own, because nobody went on with it.
    pub(crate) fn turn_ended(&self, state: TurnState) {
        if !state.is_open() {
            self.turns.add(1, &[KeyValue::new("outcome", state_word(state))]);
        }
    }

    /// What a segment added to the breaks of its session.
    pub(crate) fn prefix_broke(&self, before: &Prefix, after: &Prefix) {
        let planned = after.planned_breaks.saturating_sub(before.planned_breaks);
        let unplanned = after.unplanned_breaks.saturating_sub(before.unplanned_breaks);
        for (kind, count) in [("planned", planned), ("unplanned", unplanned)] {
            // Also when there are none: a series that is not there cannot raise an alarm when it begins to move.
            self.prefix_breaks.add(count.into(), &[KeyValue::new("kind", kind)]);
        }
    }
}

/// The instruments for model calls, beside those of the conventions.
#[derive(Debug, Clone)]
pub(crate) struct ModelMetrics {
    pub(crate) calls: Operations,
    tokens: Counter<u64>,
    cost: Counter<f64>,
    unpriced: Counter<u64>,
    retries: Counter<u64>,
}

impl ModelMetrics {
    /// On the meter of the process.
    pub(crate) fn of_process() -> Self {
        Self::new(&global::meter("steward.model"))
    }

    pub(crate) fn new(meter: &Meter) -> Self {
        Self {
            calls: Operations::new(meter),
            tokens: meter
                .u64_counter("steward.model.tokens")
                .with_description(
                    "Tokens by kind; cached_input and cache_write are parts of input, reasoning is a part of output.",
                )
                .with_unit("{token}")
                .build(),
            cost: meter
                .f64_counter("steward.model.cost")
                .with_description("What model calls cost by the known prices.")
                .with_unit("USD")
                .build(),
            unpriced: meter
                .u64_counter("steward.model.unpriced")
                .with_description("Model calls whose cost is not known, and why; they are not in the cost.")
                .with_unit("{call}")
                .build(),
            retries: meter
                .u64_counter("steward.model.retries")
                .with_description("Attempts at model calls that failed and were followed by another.")
                .with_unit("{attempt}")
                .build(),
        }
    }

    /// An answer came whole.
    pub(crate) fn consumed(&self, who: &Labels, usage: &Usage, cost: Cost) {
        let kinds = [
            ("input", usage.input),
            ("cached_input", usage.cached_input),
            ("cache_write", usage.cache_write),
            ("output", usage.output),
            ("reasoning", usage.reasoning),
        ];
        for (kind, count) in kinds {
            if let Some(count) = count {
                self.tokens.add(count, &who.with("kind", kind));
            }
        }
        match cost {
            Cost::Priced(money) => self.cost.add(dollars(money), &who.0),
            Cost::Unpriced(why) => self.unpriced.add(1, &who.with("reason", unpriced_word(why))),
        }
    }

    /// An attempt failed and is made again.
    pub(crate) fn retried(&self, who: &Labels, class: &'static str) {
        self.retries.add(1, &who.with("reason", class));
    }
}

/// Whose model, which one, and for what.
#[derive(Debug, Clone)]
pub(crate) struct Labels(Vec<KeyValue>);

impl Labels {
    pub(crate) fn new(vendor: &str, model: &str, purpose: &'static str) -> Self {
        Self(vec![
            KeyValue::new(PROVIDER_NAME, vendor.to_owned()),
            KeyValue::new(REQUEST_MODEL, model.to_owned()),
            KeyValue::new("purpose", purpose),
        ])
    }

    fn with(&self, key: &'static str, word: &'static str) -> Vec<KeyValue> {
        let mut labels = self.0.clone();
        labels.push(KeyValue::new(key, word));
        labels
    }
}

#[expect(
    clippy::cast_precision_loss,
    reason = "a counter of dollars is for curves, the exact amounts are elsewhere"
)]
fn dollars(money: steward_model::Money) -> f64 {
    money.picodollars() as f64 / 1e12
}

const fn unpriced_word(why: Unpriced) -> &'static str {
    match why {
        Unpriced::NoRow => "no_row",
        Unpriced::NotCounted => "not_counted",
        Unpriced::NoPriceForCacheReads => "no_price_for_cache_reads",
        Unpriced::NoPriceForCacheWrites => "no_price_for_cache_writes",
    }
}
