//! Writing: one transaction or savepoint per operation, run to its end whatever becomes of the caller.
//!
//! Operations stand in one line. Whoever finds nobody serving the line serves it with what shares the first commit, and leaves
//! the rest to a task that serves it until it is empty; what has come together while a commit ran is committed together
//! ([`super::group`]).

use std::collections::VecDeque;
use std::fmt;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use futures::FutureExt;
use futures::future::BoxFuture;
use sqlx::Connection;
use sqlx::sqlite::{SqliteConnection, SqliteRow};
use tokio::runtime::Handle;
use tokio::sync::oneshot;
use tokio::time::timeout;
use tracing::{Instrument, Span};

use super::connector::Connector;
use super::group::{self, After};
use super::operation::{Asked, Operation};
use super::{Inner, Sqlite, write_back};
use crate::{Batch, StoreError};

/// How long a caller waits for its turn.
pub(super) const PATIENCE: Duration = Duration::from_secs(30);

impl Sqlite {
    /// Runs `operation` as a whole and answers after it is committed and on disk. `Err` undoes it and nothing else.
    ///
    /// A caller that goes away in the middle, because a client hung up or a deadline passed, neither stops the operation half
    /// way nor leaves the writer in a transaction: it commits or rolls back as it would have, in a task of its own. A panic
    /// rolls back and answers [`StoreError::Panicked`].
    ///
    /// Operations are served one at a time, in the order of arrival, so that none needs to expect a busy database.
    /// Those that arrive while a commit runs share the next one, each in a savepoint of its own, and each sees what
    /// those before it did. If that commit fails, all of them answer an error and nothing of any is kept.
    ///
    /// They must do nothing but work on the connection, begin no transaction of their own, and must pass on the first store
    /// error they meet: SQLite may have rolled the transaction back by then. A constraint that is checked at the commit only (`DEFERRABLE`) would
    /// fail the others with it; schemas have none.
    pub async fn write<T, E, F>(&self, operation: F) -> Result<T, E>
    where
        F: for<'c> FnOnce(&'c mut SqliteConnection) -> BoxFuture<'c, Result<T, E>> + Send + 'static,
        T: Send + 'static,
        E: From<StoreError> + Send + 'static,
    {
        self.write_in_two(Batch::default(), move |connection, _none| {
            let running = operation(connection);
            async move { Ok((running.await?, Batch::default())) }.boxed()
        })
        .await
    }

    /// [`Sqlite::write`] for an operation that knows what it asks first and says what it keeps last: `ask` is sent with what
    /// begins its transaction, and the batch that the operation gives back with what commits it. An operation that does
    /// nothing in between costs two pieces of work for the database instead of four.
    ///
    /// `operation` gets all rows of `ask`. If what it gives back fails, it fails with that error, and nothing else does.
    pub async fn write_in_two<T, E, F>(&self, ask: Batch, operation: F) -> Result<T, E>
    where
        F: for<'c> FnOnce(&'c mut SqliteConnection, Vec<SqliteRow>) -> BoxFuture<'c, Result<(T, Batch), E>>
            + Send
            + 'static,
        T: Send + 'static,
        E: From<StoreError> + Send + 'static,
    {
        let (sender, mut answer) = oneshot::channel();
        let asked = Asked {
            ask,
            operation,
            answer: sender,
            span: Span::current(),
        };
        let place = Place::new(Box::new(asked));
        let serving = self.inner.writer.stand_in_line(&self.inner, place.clone())?;
        let served = async {
            if let Some(serving) = serving {
                Led::new(lead(serving)).await;
            }
            (&mut answer).await
        };
        let answered = match timeout(PATIENCE, served).await {
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

    /// How many stand in the line, those who have left meanwhile included.
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
    async fn serve_once(&self) {
        let writer = &self.inner.writer;
        let mut held = writer.connection.lock().await;
        let connected = match held.take() {
            Some(connection) => Ok(connection),
            None => writer.connector.connect().await,
        };
        match connected {
            Ok(mut connection) => match group::run(&mut connection, writer).await {
                After::Sound => {
                    *held = Some(connection);
                    write_back::committed(&self.inner);
                }
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

/// Serves the line until it is empty.
async fn serve(mut serving: Serving) {
    while !serving.is_done() {
        serving.serve_once().await;
    }
}

/// Serves the line as its first caller: with what shares its commit, in its own task, which saves two changes of thread.
/// Whoever came meanwhile is served by a task of their own.
async fn lead(mut serving: Serving) {
    serving.serve_once().await;
    if !serving.is_done() {
        #[expect(
            clippy::disallowed_methods,
            reason = "ends with the line; close() waits until that is empty"
        )]
        tokio::spawn(serve(serving));
    }
}

/// Work that a caller does itself and that goes on in a task of its own when the caller goes away.
struct Led(Option<BoxFuture<'static, ()>>);

impl Led {
    fn new(work: impl Future<Output = ()> + Send + 'static) -> Self {
        Self(Some(work.boxed()))
    }
}

impl Future for Led {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        let Some(work) = &mut self.0 else {
            return Poll::Ready(());
        };
        let polled = work.as_mut().poll(context);
        if polled.is_ready() {
            self.0 = None;
        }
        polled
    }
}

impl Drop for Led {
    fn drop(&mut self) {
        // Without a runtime the line is left to the next who comes.
        if let Some(work) = self.0.take()
            && let Ok(runtime) = Handle::try_current()
        {
            runtime.spawn(work);
        }
    }
}
