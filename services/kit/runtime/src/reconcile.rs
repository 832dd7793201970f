//! Loops that bring things into the state they should be in: outbox pulls, sweeps, checkpoints.
//!
//! A tick takes no argument and may run any number of times. It is triggered by time or by a [`Nudge`], never runs
//! twice at once, and is not repeated when it fails: the next tick is the retry. Tests call `tick` directly.

use std::fmt;
use std::future::Future;
use std::panic::AssertUnwindSafe;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures::FutureExt as _;
use rand::RngExt as _;
use steward_base::{Clock, Timestamp, error_chain};
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use crate::tasks::{BoxError, TaskResult, panic_text};

/// What one tick did.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Report {
    /// Things it looked at or changed.
    pub items: u64,
    /// Whether more is waiting, so that the next tick should follow at once.
    pub more: bool,
}

/// Something that is done again and again.
pub trait Reconciler: Send + Sync + 'static {
    /// Its name in logs and status: `outbox-pull`.
    fn name(&self) -> &'static str;

    /// Does what is to be done now. Idempotent.
    fn tick(&self) -> impl Future<Output = Result<Report, BoxError>> + Send;
}

/// Wakes a loop up before its time. Nudges while a tick runs make exactly one more tick.
#[derive(Debug, Clone, Default)]
pub struct Nudge(Arc<Notify>);

impl Nudge {
    /// Not nudged.
    pub fn new() -> Self {
        Self::default()
    }

    /// Asks for a tick soon.
    pub fn nudge(&self) {
        self.0.notify_one();
    }

    /// Waits for a nudge, also one that came before.
    pub async fn nudged(&self) {
        self.0.notified().await;
    }
}

/// When a loop ticks without a nudge.
#[derive(Debug, Clone, Copy)]
pub struct Every {
    /// Time between the end of a tick and the next one.
    pub interval: Duration,
    /// Up to this much is added at random, so that replicas do not move in step.
    pub jitter: Duration,
}

impl Every {
    /// With a tenth of the interval as jitter.
    pub fn new(interval: Duration) -> Self {
        Self {
            interval,
            jitter: interval / 10,
        }
    }

    fn next(self) -> Duration {
        self.interval + self.jitter.mul_f64(rand::rng().random::<f64>())
    }
}

/// How a loop is doing, for status RPCs.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Status {
    /// When the last tick began.
    pub started: Option<Timestamp>,
    /// How long it took; absent while it runs.
    pub took: Option<Duration>,
    /// What it did, or the text of its error.
    pub outcome: Option<Result<Report, String>>,
    /// Ticks that ended well.
    pub succeeded: u64,
    /// Ticks that failed.
    pub failed: u64,
}

/// Runs one reconciler. Hold a clone of [`Runner::status`] to show how it is doing.
pub struct Runner<R> {
    reconciler: R,
    every: Every,
    nudge: Nudge,
    clock: Arc<dyn Clock>,
    status: Arc<Mutex<Status>>,
}

impl<R: Reconciler> fmt::Debug for Runner<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Runner")
            .field("name", &self.reconciler.name())
            .finish_non_exhaustive()
    }
}

impl<R: Reconciler> Runner<R> {
    /// Nothing runs before [`Runner::run`].
    pub fn new(reconciler: R, every: Every, nudge: Nudge, clock: Arc<dyn Clock>) -> Self {
        Self {
            reconciler,
            every,
            nudge,
            clock,
            status: Arc::default(),
        }
    }

    /// A view of the loop's state.
    pub fn status(&self) -> StatusView {
        StatusView(Arc::clone(&self.status))
    }

    /// Ticks at once, then by time and nudge, until `stopping`; a tick that has begun is finished.
    pub async fn run(self, stopping: CancellationToken) -> TaskResult {
        while !stopping.is_cancelled() {
            if self.tick().await {
                continue;
            }
            tokio::select! {
                () = stopping.cancelled() => break,
                () = self.nudge.nudged() => {}
                () = tokio::time::sleep(self.every.next()) => {}
            }
        }
        Ok(())
    }

    /// One tick, recorded. Says whether the next should follow at once.
    async fn tick(&self) -> bool {
        let started = self.clock.now();
        self.record(|status| {
            status.started = Some(started);
            status.took = None;
        });
        let outcome = match AssertUnwindSafe(self.reconciler.tick()).catch_unwind().await {
            Ok(Ok(report)) => Ok(report),
            Ok(Err(error)) => Err(error_chain(&*error)),
            Err(panic) => Err(format!("panicked: {}", panic_text(&*panic))),
        };
        if let Err(error) = &outcome {
            tracing::warn!(
                reconciler = self.reconciler.name(),
                error,
                "tick failed, the next one tries again"
            );
        }
        let more = matches!(outcome, Ok(Report { more: true, .. }));
        let took = self.clock.now().since(started);
        self.record(|status| {
            status.took = Some(took);
            if outcome.is_ok() {
                status.succeeded += 1;
            } else {
                status.failed += 1;
            }
            status.outcome = Some(outcome);
        });
        more
    }

    fn record(&self, change: impl FnOnce(&mut Status)) {
        change(&mut self.status.lock().unwrap_or_else(PoisonError::into_inner));
    }
}

/// Reads how a loop is doing while it runs.
#[derive(Debug, Clone)]
pub struct StatusView(Arc<Mutex<Status>>);

impl StatusView {
    /// The state at this moment.
    pub fn read(&self) -> Status {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicU64, Ordering};
    use steward_base::SystemClock;
    use tokio::sync::mpsc;

    struct Counting {
        ticks: AtomicU64,
        seen: mpsc::UnboundedSender<u64>,
    }

    impl Reconciler for Counting {
        fn name(&self) -> &'static str {
            "counting"
        }

        async fn tick(&self) -> Result<Report, BoxError> {
            let tick = self.ticks.fetch_add(1, Ordering::SeqCst) + 1;
            self.seen.send(tick)?;
            match tick {
                1 => Ok(Report { items: 1, more: true }),
                2 => Err("on purpose".into()),
                3 => panic!("on purpose"),
                _ => Ok(Report::default()),
            }
        }
    }

    #[tokio::test]
    async fn a_loop_ticks_again_when_more_waits_and_when_time_passes_and_survives_failures() {
        let (seen, mut ticks) = mpsc::unbounded_channel();
        let nudge = Nudge::new();
        let every = Every::new(Duration::from_millis(1));
        let counting = Counting {
            ticks: AtomicU64::new(0),
            seen,
        };
        let runner = Runner::new(counting, every, nudge.clone(), Arc::new(SystemClock));
        let status = runner.status();
        let tasks = crate::Tasks::new();
        tasks.spawn("counting", crate::Policy::ESSENTIAL, runner.run(tasks.stopping()));
        for expected in 1..=4 {
            assert_eq!(ticks.recv().await, Some(expected));
        }
        assert!(!tasks.shutdown(Duration::from_mins(1)).await.failed);
        let status = status.read();
        assert!(status.succeeded >= 2);
        assert_eq!(status.failed, 2);
        assert_eq!(status.outcome, Some(Ok(Report::default())));
    }

    #[tokio::test]
    async fn a_nudge_wakes_a_loop_whose_time_has_not_come() {
        let (seen, mut ticks) = mpsc::unbounded_channel();
        let nudge = Nudge::new();
        let counting = Counting {
            ticks: AtomicU64::new(10),
            seen,
        };
        let every = Every::new(Duration::from_hours(1));
        let runner = Runner::new(counting, every, nudge.clone(), Arc::new(SystemClock));
        let tasks = crate::Tasks::new();
        tasks.spawn("counting", crate::Policy::ESSENTIAL, runner.run(tasks.stopping()));
        assert_eq!(ticks.recv().await, Some(11));
        nudge.nudge();
        assert_eq!(ticks.recv().await, Some(12));
        assert!(!tasks.shutdown(Duration::from_mins(1)).await.forced);
    }
}
