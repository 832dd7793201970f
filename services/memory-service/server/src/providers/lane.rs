//! One session's line of writes: made one after the other, so that turn n lands before n + 1.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use steward_memory_core::provider::{Event, Provider, Scope, Turn};
use tokio::sync::mpsc::{self, Receiver, Sender};
use tokio::task::JoinHandle;
use tokio::time::{sleep, timeout};

/// What may wait.
const ROOM: usize = 64;
/// How long one write may take.
const WRITE_TIME: Duration = Duration::from_secs(10);
/// Pauses before a write is tried again.
const PAUSES: [Duration; 2] = [Duration::from_millis(200), Duration::from_secs(2)];
/// Turns that are known to be in the line or done, so that one handed over twice is told once.
const KNOWN: usize = 128;

/// A write.
#[derive(Debug, Clone)]
pub(super) enum Task {
    Sync(Turn),
    Tell(Event),
}

#[derive(Debug)]
pub(super) struct Lane {
    sender: Sender<Task>,
    waiting: Arc<AtomicUsize>,
    known: VecDeque<String>,
    worker: JoinHandle<()>,
}

impl Lane {
    pub(super) fn start(provider: Arc<dyn Provider>, scope: Scope) -> Self {
        let (sender, receiver) = mpsc::channel(ROOM);
        let waiting = Arc::new(AtomicUsize::new(0));
        #[expect(
            clippy::disallowed_methods,
            reason = "ends with its sender; a stop waits for it in finish()"
        )]
        let worker = tokio::spawn(serve(provider, scope, receiver, Arc::clone(&waiting)));
        Self {
            sender,
            waiting,
            known: VecDeque::new(),
            worker,
        }
    }

    /// Puts a write at the end; `false` if there is no room. A turn that is there already is there.
    pub(super) fn push(&mut self, task: Task) -> bool {
        let turn = match &task {
            Task::Sync(turn) => Some(turn.id.clone()),
            Task::Tell(_) => None,
        };
        if turn.as_ref().is_some_and(|id| self.known.contains(id)) {
            return true;
        }
        self.waiting.fetch_add(1, Ordering::SeqCst);
        if self.sender.try_send(task).is_err() {
            self.waiting.fetch_sub(1, Ordering::SeqCst);
            tracing::warn!("the line of an external memory is full; a turn is left out");
            return false;
        }
        if let Some(id) = turn {
            self.known.push_back(id);
            if self.known.len() > KNOWN {
                self.known.pop_front();
            }
        }
        true
    }

    pub(super) fn is_idle(&self) -> bool {
        self.waiting.load(Ordering::SeqCst) == 0
    }

    /// Takes no more and waits until all is written.
    pub(super) async fn finish(self) {
        drop(self.sender);
        // A worker that panicked has nothing left to write.
        let _ = self.worker.await;
    }
}

async fn serve(provider: Arc<dyn Provider>, scope: Scope, mut tasks: Receiver<Task>, waiting: Arc<AtomicUsize>) {
    while let Some(task) = tasks.recv().await {
        let mut pauses = PAUSES.iter();
        loop {
            match timeout(WRITE_TIME, write(&*provider, &scope, &task)).await {
                Ok(Ok(())) => break,
                Ok(Err(error)) => {
                    tracing::warn!(session = %scope.session, %error, "an external memory refused a write");
                }
                Err(_) => tracing::warn!(session = %scope.session, "an external memory took too long to write"),
            }
            let Some(pause) = pauses.next() else {
                tracing::warn!(session = %scope.session, "a write to an external memory is given up");
                break;
            };
            sleep(*pause).await;
        }
        waiting.fetch_sub(1, Ordering::SeqCst);
    }
}

async fn write(
    provider: &dyn Provider,
    scope: &Scope,
    task: &Task,
) -> Result<(), steward_memory_core::provider::ProviderError> {
    match task {
        Task::Sync(turn) => provider.sync_turn(scope, turn).await,
        Task::Tell(event) => provider.observe(scope, event).await.map(drop),
    }
}
