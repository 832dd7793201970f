//! The read-only connections: a few, opened when they are needed, closed when nobody used them for a while.
//!
//! Not a general pool: a connection to a file of this process does not go away by itself, so that none is asked whether it
//! is still there.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, Instant};

use rusqlite::Connection;
use tokio::runtime::Handle;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{sleep, timeout};

use super::connection::{Opener, close};
use super::update::PATIENCE;
use crate::StoreError;

/// A connection that nobody used for this long is closed; each costs three descriptors and its pages.
const IDLE: Duration = Duration::from_secs(30);

pub(super) struct Pool {
    opener: Opener,
    most: u32,
    free: Arc<Semaphore>,
    idle: Mutex<Idle>,
}

#[derive(Default)]
struct Idle {
    /// The one used last is at the end, and taken first.
    connections: Vec<(Connection, Instant)>,
    /// Whether a task waits for the moment to close some.
    watched: bool,
    closed: bool,
}

impl fmt::Debug for Pool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pool")
            .field("most", &self.most)
            .field("free", &self.free.available_permits())
            .finish_non_exhaustive()
    }
}

/// A connection on loan. It goes back when it is dropped.
pub(super) struct Lent {
    /// `None` only while it is dropped.
    connection: Option<Connection>,
    pool: Arc<Pool>,
    _permit: OwnedSemaphorePermit,
}

impl Pool {
    pub(super) fn new(opener: Opener, most: u32) -> Arc<Self> {
        let most = most.max(1);
        Arc::new(Self {
            opener,
            most,
            free: Arc::new(Semaphore::new(usize::try_from(most).unwrap_or(1))),
            idle: Mutex::default(),
        })
    }

    pub(super) async fn take(self: &Arc<Self>) -> Result<Lent, StoreError> {
        let permit = match Arc::clone(&self.free).try_acquire_owned() {
            Ok(permit) => permit,
            Err(_none_free) => self.wait().await?,
        };
        let idle = {
            let mut idle = self.idle();
            if idle.closed {
                return Err(StoreError::Closed);
            }
            idle.connections.pop()
        };
        let connection = match idle {
            Some((connection, _)) => connection,
            None => self.opener.open()?,
        };
        Ok(Lent {
            connection: Some(connection),
            pool: Arc::clone(self),
            _permit: permit,
        })
    }

    async fn wait(&self) -> Result<OwnedSemaphorePermit, StoreError> {
        let permit = timeout(PATIENCE, Arc::clone(&self.free).acquire_owned()).await;
        let permit = permit.map_err(|_| StoreError::unavailable("all readers were busy for too long"))?;
        permit.map_err(|_| StoreError::Closed)
    }

    /// Waits for those on loan and closes all. Who waits for one, or asks later, gets [`StoreError::Closed`].
    pub(super) async fn close(&self) {
        self.idle().closed = true;
        // An error: closed before.
        let all = self.free.acquire_many(self.most).await;
        self.free.close();
        drop(all);
        let connections = std::mem::take(&mut self.idle().connections);
        shut(connections);
    }

    fn give_back(self: &Arc<Self>, connection: Connection) {
        let mut idle = self.idle();
        idle.connections.push((connection, Instant::now()));
        if !idle.watched
            && let Ok(runtime) = Handle::try_current()
        {
            idle.watched = true;
            runtime.spawn(close_idle(Arc::downgrade(self)));
        }
    }

    /// Takes out those that nobody used for a while; `None` when there is no reason to look again.
    fn outdated(&self) -> Option<Vec<(Connection, Instant)>> {
        let mut idle = self.idle();
        let outdated = idle
            .connections
            .iter()
            .take_while(|(_, since)| since.elapsed() >= IDLE)
            .count();
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

async fn close_idle(pool: Weak<Pool>) {
    loop {
        sleep(IDLE).await;
        let Some(pool) = pool.upgrade() else { return };
        let Some(outdated) = pool.outdated() else { return };
        shut(outdated);
    }
}

fn shut(connections: Vec<(Connection, Instant)>) {
    for (connection, _) in connections {
        close(connection, false);
    }
}

impl Lent {
    /// It is there until it is dropped.
    pub(super) fn connection(&self) -> Result<&Connection, StoreError> {
        self.connection.as_ref().ok_or(StoreError::Closed)
    }
}

impl Drop for Lent {
    fn drop(&mut self) {
        // Before the permit, so that whoever gets that finds the connection. One whose transaction did not end is closed.
        if let Some(connection) = self.connection.take()
            && connection.is_autocommit()
        {
            self.pool.give_back(connection);
        }
    }
}
