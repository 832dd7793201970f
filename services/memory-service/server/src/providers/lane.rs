//! One session's line of writes: made one after the other, so that turn n lands before n + 1.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use steward_memory_core::provider::{Event, Provider, ProviderError, Scope, Turn};
use tokio::sync::mpsc::{self, Receiver, Sender};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use tokio::time::{sleep, timeout};

/// What may wait.
const ROOM: usize = 64;
/// How long one write may take.
const WRITE_TIME: Duration = Duration::from_secs(10);
/// Pauses before a write is tried again.
const PAUSES: [Duration; 2] = [Duration::from_millis(200), Duration::from_secs(2)];
/// Writes that are known to be in the line or made, so that one handed over twice is made once.
const KNOWN: usize = 128;

/// A write.
#[derive(Debug, Clone)]
pub(super) enum Task {
    Sync(Turn),
    /// An event with its name, which may be empty.
    Tell(Event, String),
}

impl Task {
    /// What it is known by.
    fn name(&self) -> Option<String> {
        match self {
            Self::Sync(turn) => Some(format!("turn/{}", turn.id)),
            Self::Tell(_, id) => (!id.is_empty()).then(|| format!("event/{id}")),
        }
    }
}

/// What becomes of a write: whether the provider took it in. Ends without a word when the line does.
pub(super) type Fate = oneshot::Receiver<bool>;

#[derive(Debug)]
enum Progress {
    /// In the line, with those who wait for it.
    Waiting(Vec<oneshot::Sender<bool>>),
    Made,
}

/// The writes that are known, by name, the oldest first.
#[derive(Debug, Default)]
struct Known {
    order: VecDeque<String>,
    progress: HashMap<String, Progress>,
    unnamed: u64,
}

impl Known {
    /// Puts a new one in; `Err` for one that is there already.
    fn insert(&mut self, task: &Task, teller: oneshot::Sender<bool>) -> Result<String, ()> {
        let name = task.name().unwrap_or_else(|| {
            self.unnamed += 1;
            format!("unnamed/{}", self.unnamed)
        });
        match self.progress.get_mut(&name) {
            Some(Progress::Waiting(tellers)) => tellers.push(teller),
            // Whoever does not wait any more needs no answer, here and below.
            Some(Progress::Made) => {
                let _ = teller.send(true);
            }
            None => {
                self.progress.insert(name.clone(), Progress::Waiting(vec![teller]));
                return Ok(name);
            }
        }
        Err(())
    }

    /// A write was made, or is given up and may be handed over again.
    fn end(&mut self, name: String, made: bool) {
        if let Some(Progress::Waiting(tellers)) = self.progress.remove(&name) {
            for teller in tellers {
                let _ = teller.send(made);
            }
        }
        if !made {
            return;
        }
        self.progress.insert(name.clone(), Progress::Made);
        self.order.push_back(name);
        if self.order.len() > KNOWN
            && let Some(oldest) = self.order.pop_front()
        {
            self.progress.remove(&oldest);
        }
    }

    fn is_idle(&self) -> bool {
        !self.progress.values().any(|one| matches!(one, Progress::Waiting(_)))
    }
}

type Shared = Arc<Mutex<Known>>;

fn lock(known: &Shared) -> MutexGuard<'_, Known> {
    known.lock().unwrap_or_else(PoisonError::into_inner)
}

#[derive(Debug)]
pub(super) struct Lane {
    sender: Sender<(String, Task)>,
    known: Shared,
    worker: JoinHandle<()>,
}

impl Lane {
    pub(super) fn start(provider: Arc<dyn Provider>, scope: Scope) -> Self {
        let (sender, receiver) = mpsc::channel(ROOM);
        let known = Shared::default();
        #[expect(
            clippy::disallowed_methods,
            reason = "ends with its sender; a stop waits for it in finish()"
        )]
        let worker = tokio::spawn(serve(provider, scope, receiver, Arc::clone(&known)));
        Self { sender, known, worker }
    }

    /// Puts a write at the end; `None` if there is no room. One that is there already is there, and one that was made is made.
    pub(super) fn push(&mut self, task: Task) -> Option<Fate> {
        let (teller, fate) = oneshot::channel();
        let mut known = lock(&self.known);
        let Ok(name) = known.insert(&task, teller) else {
            return Some(fate);
        };
        if self.sender.try_send((name.clone(), task)).is_err() {
            known.progress.remove(&name);
            tracing::warn!("the line of an external memory is full; a write is left out");
            return None;
        }
        Some(fate)
    }

    pub(super) fn is_idle(&self) -> bool {
        lock(&self.known).is_idle()
    }

    /// Takes no more and waits until all is written.
    pub(super) async fn finish(self) {
        drop(self.sender);
        // A worker that panicked has nothing left to write.
        let _ = self.worker.await;
    }

    /// Leaves what waits unwritten, and ends once nothing is being written any more.
    pub(super) async fn abandon(self) {
        self.worker.abort();
        let _ = self.worker.await;
    }
}

async fn serve(provider: Arc<dyn Provider>, scope: Scope, mut tasks: Receiver<(String, Task)>, known: Shared) {
    while let Some((name, task)) = tasks.recv().await {
        let made = make(&*provider, &scope, &task).await;
        lock(&known).end(name, made);
    }
}

/// Whether the provider took it in, in one of a few tries.
async fn make(provider: &dyn Provider, scope: &Scope, task: &Task) -> bool {
    let mut pauses = PAUSES.iter();
    loop {
        match timeout(WRITE_TIME, write(provider, scope, task)).await {
            Ok(Ok(())) => return true,
            Ok(Err(error)) => {
                tracing::warn!(session.id = %scope.session, %error, "an external memory refused a write");
            }
            Err(_) => tracing::warn!(session.id = %scope.session, "an external memory took too long to write"),
        }
        let Some(pause) = pauses.next() else {
            tracing::warn!(session.id = %scope.session, "a write to an external memory is given up for now");
            return false;
        };
        sleep(*pause).await;
    }
}

async fn write(provider: &dyn Provider, scope: &Scope, task: &Task) -> Result<(), ProviderError> {
    match task {
        Task::Sync(turn) => provider.sync_turn(scope, turn).await,
        Task::Tell(event, id) => provider.observe(scope, event, id).await.map(drop),
    }
}
