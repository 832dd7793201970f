//! Writing: one transaction or savepoint per operation, run to its end whatever becomes of the caller.
//!
//! Operations stand in one line. Whoever finds nobody serving the line starts a task that does, until it is empty; what has
//! come together while a commit ran is committed together ([`super::group`]).

use std::collections::VecDeque;
use std::fmt;
use std::panic::AssertUnwindSafe;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures::FutureExt;
use futures::future::BoxFuture;
use sqlx::Connection;
use sqlx::sqlite::SqliteConnection;
use tokio::sync::oneshot;
use tokio::time::timeout;
use tracing::{Instrument, Span};

use super::connector::Connector;
use super::group::{self, After};
use super::{Inner, Sqlite};
use crate::StoreError;

/// How long a caller waits for its turn.
pub(super) const PATIENCE: Duration = Duration::from_secs(30);

impl Sqlite {
    /// Runs `operation` as a whole and answers after it is committed and on disk. `Err` undoes it and nothing else.
    ///
    /// The operation does not run in the caller's task. A caller that goes away in the middle, because a client hung up
    /// or a deadline passed, neither stops it half way nor leaves the writer in a transaction: it commits or rolls back
    /// as it would have. A panic rolls back and answers [`StoreError::Panicked`].
    ///
    /// Operations are served one at a time, in the order of arrival, so that none needs to expect a busy database.
    /// Those that arrive while a commit runs share the next one, each in a savepoint of its own, and each sees what
    /// those before it did. If that commit fails, all of them answer an error and nothing of any is kept.
    ///
    /// They must do nothing but work on the connection, begin no transaction of their own, and must pass on the first store error they meet: SQLite may
    /// have rolled the transaction back by then. A constraint that is checked at the commit only (`DEFERRABLE`) would
    /// fail the others with it; schemas have none.
    pub async fn write<T, E, F>(&self, operation: F) -> Result<T, E>
    where
        F: for<'c> FnOnce(&'c mut SqliteConnection) -> BoxFuture<'c, Result<T, E>> + Send + 'static,
        T: Send + 'static,
        E: From<StoreError> + Send + 'static,
    {
        let (sender, mut answer) = oneshot::channel();
        let asked = Asked {
            operation,
            answer: sender,
            span: Span::current(),
        };
        let place = Place::new(Box::new(asked));
        self.inner.writer.stand_in_line(&self.inner, place.clone())?;
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

/// Runs `work` in a task of its own, so that it ends whatever becomes of the caller.
pub(super) async fn to_the_end<T: Send + 'static>(
    work: impl Future<Output = T> + Send + 'static,
) -> Result<T, StoreError> {
    #[expect(
        clippy::disallowed_methods,
        reason = "awaited right here; close() drains those whose caller left"
    )]
    let task = tokio::spawn(work.in_current_span());
    task.await.map_err(|error| {
        if error.is_panic() {
            StoreError::Panicked
        } else {
            StoreError::unavailable(error)
        }
    })
}

/// An operation that was asked for.
pub(super) trait Operation: Send {
    /// Runs it on a connection with an open transaction or savepoint, which it leaves open.
    fn run(self: Box<Self>, connection: &mut SqliteConnection) -> BoxFuture<'_, Box<dyn Outcome>>;
    /// Answers without running it.
    fn refuse(self: Box<Self>, error: StoreError);
}

/// What came of an operation, which its caller does not know yet.
pub(super) trait Outcome: Send {
    /// Whether what it did is to be kept.
    fn is_success(&self) -> bool;
    /// Tells the caller: what came of it, or that nothing of it was kept.
    fn tell(self: Box<Self>, lost: Option<StoreError>);
}

struct Asked<F, T, E> {
    operation: F,
    answer: oneshot::Sender<Result<T, E>>,
    span: Span,
}

struct Ran<T, E> {
    result: Result<T, E>,
    answer: oneshot::Sender<Result<T, E>>,
}

impl<F, T, E> Operation for Asked<F, T, E>
where
    F: for<'c> FnOnce(&'c mut SqliteConnection) -> BoxFuture<'c, Result<T, E>> + Send + 'static,
    T: Send + 'static,
    E: From<StoreError> + Send + 'static,
{
    fn run(self: Box<Self>, connection: &mut SqliteConnection) -> BoxFuture<'_, Box<dyn Outcome>> {
        let Self {
            operation,
            answer,
            span,
        } = *self;
        let guarded = AssertUnwindSafe(async move { operation(connection).await }).catch_unwind();
        let run = async move {
            let result = guarded.await.unwrap_or_else(|_panic| {
                tracing::error!("a write operation panicked; it is rolled back");
                Err(StoreError::Panicked.into())
            });
            Box::new(Ran { result, answer }) as Box<dyn Outcome>
        };
        run.instrument(span).boxed()
    }

    fn refuse(self: Box<Self>, error: StoreError) {
        // A caller that left needs no answer, here and below.
        let _ = self.answer.send(Err(error.into()));
    }
}

impl<T, E> Outcome for Ran<T, E>
where
    T: Send,
    E: From<StoreError> + Send,
{
    fn is_success(&self) -> bool {
        self.result.is_ok()
    }

    fn tell(self: Box<Self>, lost: Option<StoreError>) {
        let result = match lost {
            Some(error) => Err(error.into()),
            None => self.result,
        };
        let _ = self.answer.send(result);
    }
}

/// A place in the line, which whoever runs the operation and whoever gives up waiting both know.
#[derive(Clone)]
pub(super) struct Place(Arc<Mutex<Option<Box<dyn Operation>>>>);

impl Place {
    fn new(operation: Box<dyn Operation>) -> Self {
        Self(Arc::new(Mutex::new(Some(operation))))
    }

    /// Takes the operation out: it is run, or not any more.
    fn leave(&self) -> Option<Box<dyn Operation>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

/// The one writing connection and the line before it.
pub(super) struct Writer {
    connector: Connector,
    /// `None` while it has to be opened again. The lock is fair, so that a checkpoint gets its turn.
    connection: tokio::sync::Mutex<Option<SqliteConnection>>,
    line: Mutex<Line>,
}

#[derive(Default)]
struct Line {
    waiting: VecDeque<Place>,
    /// Whether a task serves it.
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
    pub(super) fn new(connector: Connector, connection: SqliteConnection) -> Self {
        Self {
            connector,
            connection: tokio::sync::Mutex::new(Some(connection)),
            line: Mutex::default(),
        }
    }

    pub(super) fn is_closed(&self) -> bool {
        self.line().closed
    }

    /// How many stand in the line.
    #[cfg(test)]
    pub(super) fn waiting(&self) -> usize {
        self.line().waiting.len()
    }

    /// The next operation of the line.
    pub(super) fn next(&self) -> Option<Box<dyn Operation>> {
        let mut line = self.line();
        while let Some(place) = line.waiting.pop_front() {
            if let Some(operation) = place.leave() {
                return Some(operation);
            }
        }
        None
    }

    /// The connection for something that is no operation. It is there.
    pub(super) async fn connected(&self) -> Result<tokio::sync::MutexGuard<'_, Option<SqliteConnection>>, StoreError> {
        let mut held = self.connection.lock().await;
        if self.is_closed() {
            return Err(StoreError::Closed);
        }
        if held.is_none() {
            *held = Some(self.connector.connect().await?);
        }
        Ok(held)
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
            if let Some(connection) = held.take()
                && let Err(error) = connection.close().await
            {
                tracing::warn!(%error, "the writer did not close well");
            }
            return;
        }
    }

    fn stand_in_line(&self, inner: &Arc<Inner>, place: Place) -> Result<(), StoreError> {
        let mut line = self.line();
        if line.closed {
            return Err(StoreError::Closed);
        }
        line.waiting.push_back(place);
        if !line.served {
            line.served = true;
            #[expect(
                clippy::disallowed_methods,
                reason = "ends with the line; close() waits until that is empty"
            )]
            tokio::spawn(serve(Serving {
                inner: Arc::clone(inner),
                counts: true,
            }));
        }
        Ok(())
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

async fn serve(mut serving: Serving) {
    let inner = Arc::clone(&serving.inner);
    let writer = &inner.writer;
    loop {
        {
            let mut line = writer.line();
            if line.waiting.is_empty() {
                line.served = false;
                serving.counts = false;
                return;
            }
        }
        let mut held = writer.connection.lock().await;
        let connected = match held.take() {
            Some(connection) => Ok(connection),
            None => writer.connector.connect().await,
        };
        match connected {
            Ok(mut connection) => match group::run(&mut connection, writer).await {
                After::Sound => *held = Some(connection),
                // Waits until it is closed, since what it may have left open would hold up the next one.
                After::Unsure => drop(connection.close().await),
            },
            Err(error) => {
                if let Some(operation) = writer.next() {
                    operation.refuse(error);
                }
            }
        }
    }
}
