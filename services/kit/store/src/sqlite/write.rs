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
use super::direct::{self, AskedUpdate, Db, Opener, Update};
use super::group::{self, After};
use super::maintain::blocking;
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
        let (sender, answer) = oneshot::channel();
        let asked = Asked {
            ask,
            operation,
            answer: sender,
            span: Span::current(),
        };
        self.in_line(Work::Operation(Box::new(asked)), answer).await
    }

    /// Runs `work` as a whole, on a thread for such work, and answers after it is committed and on disk. `Err` undoes it and
    /// nothing else.
    ///
    /// What [`Sqlite::write`] says of operations holds here. Nothing is awaited in between, so that work which begins ends.
    pub async fn update<T, E>(&self, work: impl FnOnce(Db<'_>) -> Result<T, E> + Send + 'static) -> Result<T, E>
    where
        T: Send + 'static,
        E: From<StoreError> + Send + 'static,
    {
        let (sender, answer) = oneshot::channel();
        let asked = AskedUpdate {
            work,
            answer: sender,
            span: Span::current(),
        };
        self.in_line(Work::Update(Box::new(asked)), answer).await
    }

    /// Puts work into the line, serves that if nobody does, and waits for the answer.
    async fn in_line<T, E: From<StoreError>>(
        &self,
        work: Work,
        mut answer: oneshot::Receiver<Result<T, E>>,
    ) -> Result<T, E> {
        let place = Place::new(work);
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
pub(super) struct Place(Arc<Mutex<Option<Work>>>);

/// What stands in the line.
pub(super) enum Work {
    Operation(Box<dyn Operation>),
    Update(Box<dyn Update>),
}

impl Place {
    fn new(work: Work) -> Self {
        Self(Arc::new(Mutex::new(Some(work))))
    }

    fn work(&self) -> MutexGuard<'_, Option<Work>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes the work out: it is run, or not any more.
    fn leave(&self) -> Option<Work> {
        self.work().take()
    }
}

/// The writing connections, of which one is used at a time, and the line before them.
pub(super) struct Writer {
    connector: Connector,
    opener: Opener,
    /// The lock is fair, so that a checkpoint gets its turn.
    connections: tokio::sync::Mutex<Connections>,
    line: Mutex<Line>,
}

/// Each is opened when it is needed, and anew after an error that may have left a transaction open.
#[derive(Default)]
struct Connections {
    driven: Option<SqliteConnection>,
    direct: Option<rusqlite::Connection>,
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
    pub(super) fn new(connector: Connector, opener: Opener) -> Self {
        Self {
            connector,
            opener,
            connections: tokio::sync::Mutex::default(),
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

    /// The operation that stands first in the line.
    pub(super) fn next_operation(&self) -> Option<Box<dyn Operation>> {
        match self.next(|work| matches!(work, Work::Operation(_)))? {
            Work::Operation(operation) => Some(operation),
            Work::Update(_) => None,
        }
    }

    /// The update that stands first in the line.
    pub(super) fn next_update(&self) -> Option<Box<dyn Update>> {
        match self.next(|work| matches!(work, Work::Update(_)))? {
            Work::Update(update) => Some(update),
            Work::Operation(_) => None,
        }
    }

    /// Takes the first in the line, if it is what is wanted.
    fn next(&self, wanted: impl Fn(&Work) -> bool) -> Option<Work> {
        let mut line = self.line();
        line.first(wanted)?;
        line.waiting.pop_front()?.leave()
    }

    pub(super) fn has_operation_next(&self) -> bool {
        self.line().first(|work| matches!(work, Work::Operation(_))).is_some()
    }

    fn has_update_next(&self) -> bool {
        self.line().first(|work| matches!(work, Work::Update(_))).is_some()
    }

    /// Does something that is no operation with the writing connection, outside the line.
    pub(super) async fn with_direct<T: Send + 'static>(
        &self,
        work: impl FnOnce(&rusqlite::Connection) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, StoreError> {
        let mut held = self.connections.lock().await;
        if self.is_closed() {
            return Err(StoreError::Closed);
        }
        let connection = match held.direct.take() {
            Some(connection) => connection,
            None => self.opener.open()?,
        };
        let (connection, answer) = blocking(move || {
            let answer = work(&connection);
            Ok((connection, answer))
        })
        .await?;
        held.direct = Some(connection);
        answer
    }

    /// Lets everything in the line end, then closes the connections.
    pub(super) async fn close(&self) {
        self.line().closed = true;
        loop {
            let mut held = self.connections.lock().await;
            if !self.line().waiting.is_empty() {
                // Whoever serves the line comes next at the lock, which is fair.
                drop(held);
                tokio::task::yield_now().await;
                continue;
            }
            if let Some(connection) = held.driven.take()
                && let Err(error) = connection.close().await
            {
                tracing::warn!(%error, "the writer did not close well");
            }
            if let Some(connection) = held.direct.take() {
                direct::close(connection, true);
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

impl Line {
    /// Whether the first that has not left is what is wanted. Those before it who have left are out of the line then.
    fn first(&mut self, wanted: impl Fn(&Work) -> bool) -> Option<()> {
        loop {
            let is_wanted = self.waiting.front()?.work().as_ref().map(&wanted);
            match is_wanted {
                Some(true) => return Some(()),
                Some(false) => return None,
                None => drop(self.waiting.pop_front()),
            }
        }
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
        let mut held = writer.connections.lock().await;
        let after = if writer.has_update_next() {
            self.update(&mut held.direct).await
        } else {
            self.operate(&mut held.driven).await
        };
        if after == After::Sound {
            write_back::committed(&self.inner);
        }
    }

    async fn operate(&self, held: &mut Option<SqliteConnection>) -> After {
        let writer = &self.inner.writer;
        let connected = match held.take() {
            Some(connection) => Ok(connection),
            None => writer.connector.connect().await,
        };
        match connected {
            Ok(mut connection) => {
                let after = group::run(&mut connection, writer).await;
                if after == After::Sound {
                    *held = Some(connection);
                } else {
                    // Waits until it is closed, since what it may have left open would hold up the next one.
                    drop(connection.close().await);
                }
                after
            }
            Err(error) => {
                if let Some(operation) = writer.next_operation() {
                    operation.refuse(error);
                }
                After::Unsure
            }
        }
    }

    async fn update(&self, held: &mut Option<rusqlite::Connection>) -> After {
        let inner = Arc::clone(&self.inner);
        let connection = held.take();
        let ran = blocking(move || {
            let writer = &inner.writer;
            let connection = match connection.map_or_else(|| writer.opener.open(), Ok) {
                Ok(connection) => connection,
                Err(error) => {
                    if let Some(update) = writer.next_update() {
                        update.refuse(error);
                    }
                    return Ok(None);
                }
            };
            let after = direct::run_group(&connection, writer);
            Ok((after == After::Sound).then_some(connection))
        });
        *held = ran.await.unwrap_or_else(|error| {
            tracing::error!(%error, "a group of writes was dropped");
            None
        });
        if held.is_some() { After::Sound } else { After::Unsure }
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
