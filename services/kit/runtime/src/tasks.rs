//! Supervised background tasks. Every task has a name, is waited for when the process stops, and its end is noticed.
//!
//! There are two tokens. The *soft* one asks: finish what you do and end. The *hard* one ends: the future is dropped.
//! A task that is told to [`OnCancel::Wait`] watches [`Tasks::stopping`] itself; one with [`OnCancel::Abort`] is
//! dropped at the soft stop. What a task leaves behind on disk must be right at either point anyway, since a process
//! can be killed at any instruction.

use std::borrow::Cow;
use std::fmt;
use std::future::Future;
use std::panic::AssertUnwindSafe;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures::FutureExt as _;
use steward_base::error_chain;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tracing::Instrument as _;

/// How long one ending may take. A pool that waits for a connection which a dropped task still holds must not keep the
/// process from ending.
const ENDING_PATIENCE: Duration = Duration::from_secs(10);

/// Name of the span around every task.
pub(crate) const TASK_SPAN: &str = "task";

/// Any error, for tasks and start-up.
pub type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// How a task ends.
pub type TaskResult = Result<(), BoxError>;

/// A named future that runs once after all tasks have ended.
type Ending = (Cow<'static, str>, Pin<Box<dyn Future<Output = TaskResult> + Send>>);

/// What a soft stop does to a task.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OnCancel {
    /// It watches [`Tasks::stopping`] and ends by itself; the process waits for it.
    Wait,
    /// Its future is dropped.
    Abort,
}

/// What an error or a panic of a task does to the process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OnError {
    /// It is logged and the process goes on.
    Log,
    /// The process cannot do without the task: a soft stop follows, and the exit code says that something failed.
    Shutdown,
}

/// How a task is supervised.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Policy {
    /// What a soft stop does to it.
    pub on_cancel: OnCancel,
    /// What its failure does to the process.
    pub on_error: OnError,
}

impl Policy {
    /// For a loop that the process cannot do without: it ends by itself, and its failure stops the process.
    pub const ESSENTIAL: Self = Self {
        on_cancel: OnCancel::Wait,
        on_error: OnError::Shutdown,
    };
    /// For one piece of work: it is waited for, and its failure is its own.
    pub const WORK: Self = Self {
        on_cancel: OnCancel::Wait,
        on_error: OnError::Log,
    };
    /// For something that may be dropped at any time.
    pub const DISPOSABLE: Self = Self {
        on_cancel: OnCancel::Abort,
        on_error: OnError::Log,
    };
}

/// How a stop went.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stopped {
    /// Whether tasks had to be dropped because they did not end in time.
    pub forced: bool,
    /// Whether an essential task, or the closing of something, failed.
    pub failed: bool,
}

/// Spawns and supervises. Cheap to clone; all clones are the same set of tasks.
#[derive(Clone, Default)]
pub struct Tasks {
    shared: Arc<Shared>,
}

struct Shared {
    hard: CancellationToken,
    soft: CancellationToken,
    tracker: TaskTracker,
    failed: AtomicBool,
    endings: Mutex<Vec<Ending>>,
}

impl Default for Shared {
    fn default() -> Self {
        let hard = CancellationToken::new();
        let soft = hard.child_token();
        Self {
            hard,
            soft,
            tracker: TaskTracker::new(),
            failed: AtomicBool::new(false),
            endings: Mutex::new(Vec::new()),
        }
    }
}

impl fmt::Debug for Tasks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tasks")
            .field("running", &self.shared.tracker.len())
            .field("stopping", &self.is_stopping())
            .finish_non_exhaustive()
    }
}

impl Tasks {
    /// An empty set, not tied to signals.
    pub fn new() -> Self {
        Self::default()
    }

    /// Starts `future` under `name`. Needs a tokio runtime.
    ///
    /// A task that is spawned while the process stops still runs, so that work accepted at the last moment is done.
    pub fn spawn<F>(&self, name: impl Into<Cow<'static, str>>, policy: Policy, future: F)
    where
        F: Future<Output = TaskResult> + Send + 'static,
    {
        let name = name.into();
        let span = tracing::info_span!(TASK_SPAN, task.name = %name);
        let shared = Arc::clone(&self.shared);
        let supervised = async move {
            let guarded = AssertUnwindSafe(future).catch_unwind();
            let outcome = tokio::select! {
                biased;
                () = shared.hard.cancelled() => return,
                () = shared.soft.cancelled(), if policy.on_cancel == OnCancel::Abort => return,
                outcome = guarded => outcome,
            };
            let problem = match outcome {
                Ok(Ok(())) => return,
                Ok(Err(error)) => error_chain(&*error),
                Err(panic) => format!("panicked: {}", panic_text(&*panic)),
            };
            match policy.on_error {
                OnError::Log => tracing::warn!(task.name = %name, error = problem, "task failed"),
                OnError::Shutdown => {
                    tracing::error!(task.name = %name, error = problem, "essential task failed, stopping");
                    shared.failed.store(true, Ordering::Release);
                    shared.soft.cancel();
                }
            }
        };
        #[expect(
            clippy::let_underscore_future,
            reason = "the tracker waits for the task, nobody needs the handle"
        )]
        let _ = self.shared.tracker.spawn(supervised.instrument(span));
    }

    /// Registers work for the very end, after all tasks: closing a pool, flushing a file. Later ones run first.
    pub fn at_end<F>(&self, name: impl Into<Cow<'static, str>>, future: F)
    where
        F: Future<Output = TaskResult> + Send + 'static,
    {
        self.endings().push((name.into(), Box::pin(future)));
    }

    /// Cancelled when the soft stop begins. Loops select on it.
    pub fn stopping(&self) -> CancellationToken {
        self.shared.soft.clone()
    }

    /// Cancelled when waiting is over and everything that still runs is dropped.
    pub fn aborting(&self) -> CancellationToken {
        self.shared.hard.clone()
    }

    /// Whether the soft stop has begun.
    pub fn is_stopping(&self) -> bool {
        self.shared.soft.is_cancelled()
    }

    /// Begins the soft stop without waiting.
    pub fn stop(&self) {
        self.shared.soft.cancel();
    }

    /// Begins the hard stop: drops every task.
    pub fn abort(&self) {
        self.shared.hard.cancel();
    }

    /// Number of tasks that run at present.
    pub fn running(&self) -> usize {
        self.shared.tracker.len()
    }

    /// Whether an essential task has failed.
    pub fn has_failed(&self) -> bool {
        self.shared.failed.load(Ordering::Acquire)
    }

    /// Stops softly, waits up to `patience`, then drops what is left, and runs the endings. Also the end of every test
    /// stack.
    pub async fn shutdown(&self, patience: Duration) -> Stopped {
        self.stop();
        self.shared.tracker.close();
        let in_time = tokio::select! {
            () = self.shared.tracker.wait() => true,
            () = self.shared.hard.cancelled() => false,
            () = tokio::time::sleep(patience) => false,
        };
        let forced = !in_time && !self.shared.tracker.is_empty();
        if forced {
            tracing::warn!(
                tasks = self.running(),
                "not everything ended in time, dropping the rest"
            );
        }
        self.abort();
        // Dropping a future takes until its next yield; one that blocks its thread is given up.
        if tokio::time::timeout(Duration::from_secs(2), self.shared.tracker.wait())
            .await
            .is_err()
        {
            tracing::error!(tasks = self.running(), "tasks do not yield, leaving them behind");
        }
        self.run_endings(ENDING_PATIENCE).await;
        Stopped {
            forced,
            failed: self.has_failed(),
        }
    }

    async fn run_endings(&self, patience: Duration) {
        loop {
            let Some((name, ending)) = self.endings().pop() else {
                return;
            };
            let guarded = AssertUnwindSafe(ending).catch_unwind();
            let problem = match tokio::time::timeout(patience, guarded).await {
                Ok(Ok(Ok(()))) => continue,
                Ok(Ok(Err(error))) => error_chain(&*error),
                Ok(Err(panic)) => format!("panicked: {}", panic_text(&*panic)),
                Err(_) => "took too long".to_owned(),
            };
            tracing::error!(task.name = %name, error = problem, "could not close cleanly");
            self.shared.failed.store(true, Ordering::Release);
        }
    }

    fn endings(&self) -> std::sync::MutexGuard<'_, Vec<Ending>> {
        self.shared.endings.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The text of a panic, as far as it is text.
pub fn panic_text(panic: &(dyn std::any::Any + Send)) -> &str {
    panic
        .downcast_ref::<&'static str>()
        .copied()
        .or_else(|| panic.downcast_ref::<String>().map(String::as_str))
        .unwrap_or("no text")
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicU32;

    const PATIENCE: Duration = Duration::from_secs(30);

    #[tokio::test]
    async fn a_waiting_task_finishes_after_the_soft_stop_and_endings_run_last_in_reverse() {
        let tasks = Tasks::new();
        let seen = Arc::new(Mutex::new(Vec::new()));
        for name in ["first", "second"] {
            let seen = Arc::clone(&seen);
            tasks.at_end(name, async move {
                seen.lock().unwrap().push(name);
                Ok(())
            });
        }
        let (stopping, log) = (tasks.stopping(), Arc::clone(&seen));
        tasks.spawn("loop", Policy::ESSENTIAL, async move {
            stopping.cancelled().await;
            log.lock().unwrap().push("task");
            Ok(())
        });
        assert_eq!(
            tasks.shutdown(PATIENCE).await,
            Stopped {
                forced: false,
                failed: false
            }
        );
        assert_eq!(*seen.lock().unwrap(), ["task", "second", "first"]);
    }

    #[tokio::test]
    async fn an_essential_panic_stops_everything_and_is_remembered() {
        let tasks = Tasks::new();
        tasks.spawn("crasher", Policy::ESSENTIAL, async { panic!("on purpose") });
        tasks.stopping().cancelled().await;
        assert!(tasks.shutdown(PATIENCE).await.failed);
    }

    #[tokio::test]
    async fn a_failure_that_is_only_logged_stops_nothing() {
        let tasks = Tasks::new();
        tasks.spawn("worker", Policy::WORK, async { Err("on purpose".into()) });
        while tasks.running() > 0 {
            tokio::task::yield_now().await;
        }
        assert!(!tasks.is_stopping());
        assert!(!tasks.shutdown(PATIENCE).await.failed);
    }

    #[tokio::test]
    async fn a_disposable_task_is_dropped_at_the_soft_stop() {
        struct Dropped(Arc<AtomicU32>);
        impl Drop for Dropped {
            fn drop(&mut self) {
                self.0.fetch_add(1, Ordering::SeqCst);
            }
        }
        let tasks = Tasks::new();
        let drops = Arc::new(AtomicU32::new(0));
        let guard = Dropped(Arc::clone(&drops));
        tasks.spawn("forever", Policy::DISPOSABLE, async move {
            let _guard = guard;
            std::future::pending().await
        });
        assert!(!tasks.shutdown(PATIENCE).await.forced);
        assert_eq!(drops.load(Ordering::SeqCst), 1);
    }

    #[tokio::test]
    async fn an_ending_that_never_ends_does_not_keep_the_others_from_running() {
        let tasks = Tasks::new();
        let ran = Arc::new(AtomicBool::new(false));
        let note = Arc::clone(&ran);
        tasks.at_end("first", async move {
            note.store(true, Ordering::SeqCst);
            Ok(())
        });
        tasks.at_end("stuck", std::future::pending());
        // What ends at once is never too late.
        tasks.run_endings(Duration::ZERO).await;
        assert!(tasks.has_failed() && ran.load(Ordering::SeqCst));
    }

    #[tokio::test]
    async fn a_task_that_ignores_the_soft_stop_is_dropped_when_patience_ends() {
        let tasks = Tasks::new();
        tasks.spawn("stubborn", Policy::WORK, std::future::pending());
        let stopped = tasks.shutdown(Duration::from_millis(1)).await;
        assert_eq!(
            stopped,
            Stopped {
                forced: true,
                failed: false
            }
        );
    }
}
