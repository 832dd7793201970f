//! Writes the queue, batch by batch. A batch that cannot be written is tried again until it can be; meanwhile the queue
//! fills, and then writes are refused.

use std::fmt;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::Duration;

use steward_base::error_chain;
use steward_runtime::Tasks;
use steward_runtime::reconcile::Nudge;
use tokio::sync::{Mutex, mpsc, oneshot};
use tokio::time::{Instant, sleep, timeout, timeout_at};

use crate::gate::Counted;
use crate::log::AuditLog;

/// How long the first record of a batch waits for others.
const GATHER: Duration = Duration::from_millis(100);
/// Most records of a batch.
const BATCH: usize = 512;
/// Pause after a failure.
const PAUSE: Duration = Duration::from_secs(1);
/// How often the counts of denied calls are looked at, and whether the process has ended.
const TICK: Duration = Duration::from_secs(1);
const LAST_TICK: Duration = Duration::from_millis(20);
/// Records after which the size of the log is looked at.
const RETAIN_AFTER: usize = 20_000;

pub(crate) type Inbox = mpsc::Receiver<Message>;

/// What comes through the queue.
#[derive(Debug)]
pub(crate) enum Message {
    Record(Box<Counted>),
    /// Answered when everything before it is durable.
    Flush(oneshot::Sender<()>),
}

/// A batch that is not durable yet.
#[derive(Debug, Default)]
struct Batch {
    records: Vec<Counted>,
    waiting: Vec<oneshot::Sender<()>>,
}

impl Batch {
    /// Whether it may grow further.
    fn add(&mut self, message: Message) -> ControlFlow<()> {
        match message {
            Message::Record(record) => {
                self.records.push(*record);
                if self.records.len() < BATCH {
                    ControlFlow::Continue(())
                } else {
                    ControlFlow::Break(())
                }
            }
            Message::Flush(done) => {
                self.waiting.push(done);
                ControlFlow::Break(())
            }
        }
    }
}

struct Open {
    inbox: Inbox,
    batch: Batch,
    since_retained: usize,
}

pub(crate) struct Writer {
    open: Mutex<Open>,
    log: Arc<AuditLog>,
    retain: Nudge,
}

impl fmt::Debug for Writer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Writer").finish_non_exhaustive()
    }
}

impl Writer {
    pub(crate) fn new(inbox: Inbox, log: Arc<AuditLog>, retain: Nudge) -> Self {
        Self {
            open: Mutex::new(Open {
                inbox,
                batch: Batch::default(),
                since_retained: 0,
            }),
            log,
            retain,
        }
    }

    /// Until nothing else of the process runs any more: calls that end while it stops are recorded as well.
    pub(crate) async fn run(&self, tasks: &Tasks) {
        let mut open = self.open.lock().await;
        let stopping = tasks.stopping();
        loop {
            let tick = if stopping.is_cancelled() { LAST_TICK } else { TICK };
            let first = tokio::select! {
                first = timeout(tick, open.inbox.recv()) => first.ok().flatten(),
                () = stopping.cancelled(), if !stopping.is_cancelled() => None,
            };
            if let Some(first) = first {
                gather(&mut open, first).await;
            } else if stopping.is_cancelled() && tasks.running() <= 1 {
                return;
            }
            while !self.write(&mut open).await {
                if stopping.is_cancelled() {
                    return;
                }
                sleep(PAUSE).await;
            }
        }
    }

    /// Writes what is left, once, and closes the store.
    pub(crate) async fn finish(&self) {
        let mut open = self.open.lock().await;
        while let Ok(message) = open.inbox.try_recv() {
            let _ = open.batch.add(message);
        }
        open.batch.records.extend(self.log.counted(true));
        if !self.write(&mut open).await {
            tracing::error!(records = open.batch.records.len(), "records of the audit log are lost");
        }
        self.log.store().close().await;
    }

    /// Whether nothing is left to be written.
    async fn write(&self, open: &mut Open) -> bool {
        let all = !open.batch.waiting.is_empty();
        open.batch.records.extend(self.log.counted(all));
        if !open.batch.records.is_empty() {
            if let Err(error) = self.log.store().add(open.batch.records.clone()).await {
                let records = open.batch.records.len();
                tracing::error!(records, error = error_chain(&error), "the audit log cannot be written");
                return false;
            }
            open.since_retained += open.batch.records.len();
            open.batch.records.clear();
            if open.since_retained >= RETAIN_AFTER {
                open.since_retained = 0;
                self.retain.nudge();
            }
        }
        for done in open.batch.waiting.drain(..) {
            // Who asked may have gone.
            let _ = done.send(());
        }
        true
    }
}

/// Takes what comes within a short time.
async fn gather(open: &mut Open, first: Message) {
    let until = Instant::now() + GATHER;
    let mut next = first;
    while open.batch.add(next).is_continue() {
        next = match timeout_at(until, open.inbox.recv()).await {
            Ok(Some(message)) => message,
            Ok(None) | Err(_) => return,
        };
    }
}
