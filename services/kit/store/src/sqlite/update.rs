//! Writing: one transaction or savepoint per update, run to its end whatever becomes of the caller.
//!
//! Updates stand in one line. Whoever finds nobody serving the line has it served, on a blocking thread, until it is empty; what
//! has come together while a commit ran is committed together ([`super::group`]).

use std::collections::VecDeque;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rusqlite::Connection;
use tokio::sync::oneshot;
use tokio::task::spawn_blocking;
use tokio::time::timeout;
use tracing::Span;

use super::connection::{Opener, close};
use super::group::{self, After};
use super::operation::{Asked, Operation};
use super::{Db, Inner, Sqlite, write_back};
use crate::StoreError;

/// How long a caller waits for its turn.
pub(super) const PATIENCE: Duration = Duration::from_secs(30);

impl Sqlite {
    /// Runs `work` as a whole, on a blocking thread, and answers after it is committed and on disk. `Err` undoes it and nothing
    /// else.
    ///
    /// Work that begins ends, whatever becomes of the caller: it commits or rolls back as it would have when a client hung up or
    /// a deadline passed. A panic rolls back and answers [`StoreError::Panicked`].
    ///
    /// Updates are served one at a time, in the order of arrival, so that none needs to expect a busy database.
    /// Those that arrive while a commit runs share the next one, each in a savepoint of its own, and each sees what
    /// those before it did. If that commit fails, all of them answer an error and nothing of any is kept.
    ///
    /// They must do nothing but work on the database, begin no transaction of their own, and must pass on the first store error
    /// they meet: SQLite may have rolled the transaction back by then. A constraint that is checked at the commit only
    /// (`DEFERRABLE`) would fail the others with it; schemas have none.
    pub async fn update<T, E>(&self, work: impl FnOnce(Db<'_>) -> Result<T, E> + Send + 'static) -> Result<T, E>
    where
        T: Send + 'static,
        E: From<StoreError> + Send + 'static,
    {
        let (sender, mut answer) = oneshot::channel();
        let asked = Asked {
            work,
            answer: sender,
            span: Span::current(),
        };
        let place = Place::new(Box::new(asked));
        if let Some(serving) = self.inner.writer.stand_in_line(&self.inner, place.clone())? {
            // Not waited for: the answer says that it ran, and close() waits until the line is empty.
            drop(spawn_blocking(move || serve(serving)));
        }
        let answered = match timeout(PATIENCE, &mut answer).await {
            Ok(answered) => answered,
            Err(_) if place.leave().is_some() => {
                return Err(StoreError::unavailable("other writes took too long").into());
            }
            Err(_) => answer.await,
        };
        answered.unwrap_or_else(|_| Err(StoreError::unavailable("the write was dropped with its runtime").into()))
    }
}

/// A place in the line, which whoever runs the update and whoever gives up waiting both know.
#[derive(Clone)]
struct Place(Arc<Mutex<Option<Box<dyn Operation>>>>);

impl Place {
    fn new(operation: Box<dyn Operation>) -> Self {
        Self(Arc::new(Mutex::new(Some(operation))))
    }

    /// Takes the update out: it is run, or not any more.
    fn leave(&self) -> Option<Box<dyn Operation>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

/// The one writing connection and the line before it.
pub(super) struct Writer {
    opener: Opener,
    /// `None` while it has to be opened, at first and after an error that may have left a transaction open. The lock is fair,
    /// so that a checkpoint gets its turn.
    connection: tokio::sync::Mutex<Option<Connection>>,
    line: Mutex<Line>,
}

#[derive(Default)]
struct Line {
    waiting: VecDeque<Place>,
    /// Whether a thread serves it.
    served: bool,
    closed: bool,
}

impl fmt::Debug for Writer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Writer")
            .field("waiting", &self.line().waiting.len())
            .finish_non_exhaustive()
    }
}

impl Writer {
    pub(super) fn new(opener: Opener) -> Self {
        Self {
            opener,
            connection: tokio::sync::Mutex::default(),
            line: Mutex::default(),
        }
    }

    pub(super) fn is_closed(&self) -> bool {
        self.line().closed
    }

    /// How many stand in the line, those who have left meanwhile included.
    #[cfg(test)]
    pub(super) fn waiting(&self) -> usize {
        self.line().waiting.len()
    }

    /// The next update of the line.
    pub(super) fn next(&self) -> Option<Box<dyn Operation>> {
        let mut line = self.line();
        while let Some(place) = line.waiting.pop_front() {
            if let Some(operation) = place.leave() {
                return Some(operation);
            }
        }
        None
    }

    /// Does something that is no update with the connection, outside the line, on this thread.
    pub(super) fn with<T>(&self, work: impl FnOnce(&Connection) -> Result<T, StoreError>) -> Result<T, StoreError> {
        let mut held = self.connection.blocking_lock();
        if self.is_closed() {
            return Err(StoreError::Closed);
        }
        let connection = match held.take() {
            Some(connection) => connection,
            None => self.opener.open()?,
        };
        let done = work(&connection);
        *held = Some(connection);
        done
    }

    /// Lets everything in the line end, then closes the connection.
    pub(super) async fn close(&self) {
        self.line().closed = true;
        loop {
            let mut held = self.connection.lock().await;
            if !self.line().waiting.is_empty() {
                // Whoever serves the line comes next at the lock, which is fair.
                drop(held);
                tokio::task::yield_now().await;
                continue;
            }
            if let Some(connection) = held.take() {
                close(connection, true);
            }
            return;
        }
    }

    /// Puts it into the line. Gives the right and the duty to serve that if nobody does.
    fn stand_in_line(&self, inner: &Arc<Inner>, place: Place) -> Result<Option<Serving>, StoreError> {
        let mut line = self.line();
        if line.closed {
            return Err(StoreError::Closed);
        }
        line.waiting.push_back(place);
        let serves = !line.served;
        line.served = true;
        Ok(serves.then(|| Serving {
            inner: Arc::clone(inner),
            counts: true,
        }))
    }

    fn line(&self) -> MutexGuard<'_, Line> {
        self.line.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Serves the line until it is empty. Dropped before, with its runtime, it leaves the line to the next who comes.
struct Serving {
    inner: Arc<Inner>,
    /// Whether the line still counts on this one.
    counts: bool,
}

impl Drop for Serving {
    fn drop(&mut self) {
        if self.counts {
            self.inner.writer.line().served = false;
        }
    }
}

impl Serving {
    /// Whether the line is empty; nobody serves it then.
    fn is_done(&mut self) -> bool {
        let mut line = self.inner.writer.line();
        if !line.waiting.is_empty() {
            return false;
        }
        line.served = false;
        self.counts = false;
        true
    }

    /// Runs what shares the next commit.
    fn serve_once(&self) {
        let writer = &self.inner.writer;
        let mut held = writer.connection.blocking_lock();
        let connection = match held.take().map_or_else(|| writer.opener.open(), Ok) {
            Ok(connection) => connection,
            Err(error) => {
                if let Some(operation) = writer.next() {
                    operation.refuse(error);
                }
                return;
            }
        };
        match group::run(&connection, writer) {
            After::Sound => {
                write_back::committed(&self.inner, &connection);
                *held = Some(connection);
            }
            After::Unsure => close(connection, false),
        }
    }
}

/// Serves the line until it is empty.
fn serve(mut serving: Serving) {
    while !serving.is_done() {
        serving.serve_once();
    }
}
