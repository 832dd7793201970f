//! The read-only connections: a few, opened when they are needed, handed out without a word to the database, closed when
//! nobody used them for a while.
//!
//! Not a general pool: a connection to a file of this process does not go away by itself, so that none is asked whether it
//! is still there, neither before use nor after. That is most of what a general pool would cost.

use std::collections::VecDeque;
use std::fmt;
use std::ops::{Deref, DerefMut};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use sqlx::Connection;
use sqlx::sqlite::{SqliteConnection, SqliteRow};
use tokio::runtime::Handle;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{Instant, sleep, timeout};

use super::connector::Connector;
use super::write::PATIENCE;
use crate::{Batch, StoreError};

/// A reader that nobody used for this long is closed; each costs a thread and three descriptors.
const IDLE: Duration = Duration::from_secs(30);

pub(super) struct Readers {
    connector: Connector,
    most: u32,
    free: Arc<Semaphore>,
    idle: Mutex<Idle>,
}

#[derive(Default)]
struct Idle {
    /// The one used last is at the back, and taken first.
    connections: VecDeque<(SqliteConnection, Instant)>,
    /// Whether a task waits for the moment to close some.
    watched: bool,
    closed: bool,
}

impl fmt::Debug for Readers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Readers")
            .field("most", &self.most)
            .field("free", &self.free.available_permits())
            .finish_non_exhaustive()
    }
}

/// A read-only connection on loan. It goes back when it is dropped; a transaction that is open then is rolled back.
pub struct Reader {
    /// `None` only while it is dropped, and while [`Reader::at_once`] has it.
    connection: Option<SqliteConnection>,
    readers: Arc<Readers>,
    _permit: OwnedSemaphorePermit,
}

impl fmt::Debug for Reader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Reader").finish_non_exhaustive()
    }
}

impl Reader {
    /// The rows of all statements of `batch`, in order, all as they were at one moment. One piece of work for the database,
    /// where a transaction with as many statements has two more than those.
    pub async fn at_once(mut self, batch: Batch) -> Result<Vec<SqliteRow>, StoreError> {
        // Out of the reader while it is in use: if the caller goes away half way, or a statement fails, the transaction may
        // still be open, and the connection is closed with it.
        let mut connection = self.connection.take().ok_or(StoreError::Closed)?;
        let mut batch = batch.after("BEGIN");
        batch.statement("COMMIT");
        let rows = batch.rows(&mut connection).await?;
        self.connection = Some(connection);
        Ok(rows)
    }
}

impl Readers {
    pub(super) fn new(connector: Connector, most: u32) -> Arc<Self> {
        let most = most.max(1);
        Arc::new(Self {
            connector,
            most,
            free: Arc::new(Semaphore::new(usize::try_from(most).unwrap_or(1))),
            idle: Mutex::default(),
        })
    }

    pub(super) async fn take(readers: &Arc<Self>) -> Result<Reader, StoreError> {
        let permit = match Arc::clone(&readers.free).try_acquire_owned() {
            Ok(permit) => permit,
            Err(_none_free) => readers.wait().await?,
        };
        let idle = {
            let mut idle = readers.idle();
            if idle.closed {
                return Err(StoreError::Closed);
            }
            idle.connections.pop_back()
        };
        let connection = match idle {
            Some((connection, _)) => connection,
            None => readers.connector.connect().await?,
        };
        Ok(Reader {
            connection: Some(connection),
            readers: Arc::clone(readers),
            _permit: permit,
        })
    }

    async fn wait(&self) -> Result<OwnedSemaphorePermit, StoreError> {
        let permit = timeout(PATIENCE, Arc::clone(&self.free).acquire_owned()).await;
        let permit = permit.map_err(|_| StoreError::unavailable("all readers were busy for too long"))?;
        permit.map_err(|_| StoreError::Closed)
    }

    /// Waits for the readers on loan and closes all. Who waits for one, or asks later, gets [`StoreError::Closed`].
    pub(super) async fn close(&self) {
        self.idle().closed = true;
        // An error: closed before.
        let all = self.free.acquire_many(self.most).await;
        self.free.close();
        drop(all);
        let connections = std::mem::take(&mut self.idle().connections);
        shut(connections).await;
    }

    fn give_back(self: &Arc<Self>, connection: SqliteConnection) {
        let mut idle = self.idle();
        idle.connections.push_back((connection, Instant::now()));
        if !idle.watched
            && let Ok(runtime) = Handle::try_current()
        {
            idle.watched = true;
            runtime.spawn(close_idle(Arc::downgrade(self)));
        }
    }

    /// Takes out those that nobody used for a while; `None` when there is no reason to look again.
    fn outdated(&self) -> Option<VecDeque<(SqliteConnection, Instant)>> {
        let mut idle = self.idle();
        let fresh = idle.connections.iter().position(|(_, since)| since.elapsed() < IDLE);
        let outdated = fresh.unwrap_or(idle.connections.len());
        if outdated == 0 && idle.connections.is_empty() {
            idle.watched = false;
            return None;
        }
        Some(idle.connections.drain(..outdated).collect())
    }

    fn idle(&self) -> MutexGuard<'_, Idle> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

async fn close_idle(readers: Weak<Readers>) {
    loop {
        sleep(IDLE).await;
        let Some(readers) = readers.upgrade() else { return };
        let Some(outdated) = readers.outdated() else { return };
        shut(outdated).await;
    }
}

async fn shut(connections: VecDeque<(SqliteConnection, Instant)>) {
    for (connection, _) in connections {
        if let Err(error) = connection.close().await {
            tracing::debug!(%error, "a reader did not close well");
        }
    }
}

#[expect(
    clippy::expect_used,
    reason = "it is there until drop takes it, which nothing comes after"
)]
impl Deref for Reader {
    type Target = SqliteConnection;

    fn deref(&self) -> &SqliteConnection {
        self.connection.as_ref().expect("not dropped")
    }
}

#[expect(
    clippy::expect_used,
    reason = "it is there until drop takes it, which nothing comes after"
)]
impl DerefMut for Reader {
    fn deref_mut(&mut self) -> &mut SqliteConnection {
        self.connection.as_mut().expect("not dropped")
    }
}

impl Drop for Reader {
    fn drop(&mut self) {
        // Before the permit, so that whoever gets that finds the connection.
        if let Some(connection) = self.connection.take() {
            self.readers.give_back(connection);
        }
    }
}
