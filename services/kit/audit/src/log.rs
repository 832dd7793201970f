//! The sink: gives places in the queue, counts what has none.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures::FutureExt as _;
use futures::future::BoxFuture;
use steward_base::Clock;
use steward_grpc::{AuditPlace, AuditRecord, AuditSink};
use tokio::sync::mpsc::error::TrySendError;
use tokio::sync::{mpsc, oneshot};
use tokio::time::timeout;

use crate::config::Config;
use crate::gate::{Counted, Gate};
use crate::store::AuditStore;
use crate::writer::{Inbox, Message};

/// Records that wait to be written, at most.
const QUEUE: usize = 8192;
/// How long a write waits for a place in it.
const PATIENCE: Duration = Duration::from_secs(2);

/// The open log.
pub struct AuditLog {
    sender: mpsc::Sender<Message>,
    gate: Mutex<Gate>,
    store: AuditStore,
    clock: Arc<dyn Clock>,
}

impl fmt::Debug for AuditLog {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AuditLog")
            .field("waiting", &(QUEUE - self.sender.capacity()))
            .finish_non_exhaustive()
    }
}

impl AuditLog {
    pub(crate) fn new(store: AuditStore, config: &Config, clock: Arc<dyn Clock>) -> (Self, Inbox) {
        let (sender, inbox) = mpsc::channel(QUEUE);
        let log = Self {
            sender,
            gate: Mutex::new(Gate::new(config.denied_per_minute)),
            store,
            clock,
        };
        (log, inbox)
    }

    pub(crate) const fn store(&self) -> &AuditStore {
        &self.store
    }

    /// What was counted instead of kept.
    pub(crate) fn counted(&self, all: bool) -> Vec<Counted> {
        self.gate().counted(self.clock.now(), all)
    }

    /// Waits until everything that was handed over before is durable. Whether it is.
    pub(crate) async fn flush(&self) -> bool {
        let (done, is_done) = oneshot::channel();
        let flushed = async {
            self.sender.send(Message::Flush(done)).await.ok()?;
            is_done.await.ok()
        };
        timeout(PATIENCE, flushed).await.ok().flatten().is_some()
    }

    fn gate(&self) -> MutexGuard<'_, Gate> {
        self.gate.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl AuditSink for AuditLog {
    fn reserve(&self) -> BoxFuture<'_, Option<AuditPlace>> {
        async move {
            let permit = match self.sender.clone().try_reserve_owned() {
                Ok(permit) => permit,
                Err(_full) => timeout(PATIENCE, self.sender.clone().reserve_owned())
                    .await
                    .ok()?
                    .ok()?,
            };
            let clock = Arc::clone(&self.clock);
            let place: AuditPlace = Box::new(move |record| {
                permit.send(Message::Record(Box::new((record, clock.now(), 1))));
            });
            Some(place)
        }
        .boxed()
    }

    fn denied(&self, record: AuditRecord) {
        let now = self.clock.now();
        let Some(record) = self.gate().pass(record, now) else {
            return;
        };
        match self.sender.try_send(Message::Record(Box::new((record, now, 1)))) {
            Ok(()) => {}
            Err(TrySendError::Full(message) | TrySendError::Closed(message)) => {
                if let Message::Record(counted) = message {
                    self.gate().count(counted.0, now);
                }
            }
        }
    }
}
