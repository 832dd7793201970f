//! What the worker counts. All instruments are declared here; they do nothing unless a main has installed telemetry.
//!
//! Labels are words from closed lists: no team, no person, no session, nothing of what a review read or wrote.

use std::time::Duration;

use opentelemetry::metrics::{Counter, Gauge, Histogram, Meter};
use opentelemetry::{KeyValue, global};
use steward_curator_core::review::ReviewState;
use steward_queue::{JobState, QueueStats};

/// The instruments.
#[derive(Debug, Clone)]
pub(crate) struct Metrics {
    reviews: Counter<u64>,
    tries: Histogram<f64>,
    age: Gauge<f64>,
    depth: Gauge<u64>,
}

impl Metrics {
    /// On the meter of the process.
    pub(crate) fn of_process() -> Self {
        Self::new(&global::meter("steward.learning"))
    }

    pub(crate) fn new(meter: &Meter) -> Self {
        Self {
            reviews: meter
                .u64_counter("steward.reviews")
                .with_description("Reviews that are over, by how they ended.")
                .with_unit("{review}")
                .build(),
            tries: meter
                .f64_histogram("steward.review.duration")
                .with_description("Time of one try of a review, by where the review stands after it.")
                .with_unit("s")
                .with_boundaries(vec![0.1, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 180.0, 600.0])
                .build(),
            age: meter
                .f64_gauge("steward.queue.age")
                .with_description("How long the longest waiting job has been due.")
                .with_unit("s")
                .build(),
            depth: meter
                .u64_gauge("steward.queue.depth")
                .with_description("Jobs that wait or run.")
                .with_unit("{job}")
                .build(),
        }
    }

    /// A review is over.
    pub(crate) fn ended(&self, state: ReviewState) {
        self.reviews.add(1, &[KeyValue::new("end", state.as_str())]);
    }

    /// A try is over.
    pub(crate) fn tried(&self, state: ReviewState, took: Duration) {
        let state = [KeyValue::new("state", state.as_str())];
        self.tries.record(took.as_secs_f64(), &state);
    }

    /// How the queue stands.
    pub(crate) fn queue(&self, standing: &QueueStats) {
        self.age
            .record(standing.oldest_ready.unwrap_or_default().as_secs_f64(), &[]);
        for state in [JobState::Waiting, JobState::Running] {
            let jobs = standing.by_state.get(&state).copied().unwrap_or(0);
            self.depth.record(jobs, &[KeyValue::new("state", state.as_str())]);
        }
    }
}
