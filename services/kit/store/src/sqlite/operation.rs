//! One operation, as the line and the group see it: what it asks first, how it runs, what it keeps, whom it answers. Its types
//! are its caller's and are not seen from here on.

use std::panic::AssertUnwindSafe;

use futures::FutureExt;
use futures::future::BoxFuture;
use sqlx::sqlite::{SqliteConnection, SqliteRow};
use tokio::sync::oneshot;
use tracing::{Instrument, Span};

use crate::{Batch, StoreError};

/// An operation that was asked for.
pub(super) trait Operation: Send {
    /// What it asks first; taken once.
    fn ask(&mut self) -> Batch;
    /// Runs it on a connection with an open transaction or savepoint, which it leaves open.
    fn run(self: Box<Self>, connection: &mut SqliteConnection, rows: Vec<SqliteRow>)
    -> BoxFuture<'_, Box<dyn Outcome>>;
    /// Answers without running it.
    fn refuse(self: Box<Self>, error: StoreError);
}

/// What came of an operation, which its caller does not know yet.
pub(super) trait Outcome: Send {
    /// Whether what it did is to be kept.
    fn is_success(&self) -> bool;
    /// What it still has to write; taken once.
    fn keep(&mut self) -> Batch;
    /// It failed after all.
    fn fail(&mut self, error: StoreError);
    /// Tells the caller: what came of it, or that nothing of it was kept.
    fn tell(self: Box<Self>, lost: Option<StoreError>);
}

/// An operation with the caller that waits for it.
pub(super) struct Asked<F, T, E> {
    pub(super) ask: Batch,
    pub(super) operation: F,
    pub(super) answer: oneshot::Sender<Result<T, E>>,
    pub(super) span: Span,
}

/// An operation that has run, with its caller.
pub(super) struct Ran<T, E> {
    result: Result<T, E>,
    kept: Batch,
    answer: oneshot::Sender<Result<T, E>>,
}

impl<T, E> Ran<T, E> {
    pub(super) fn new(result: Result<T, E>, answer: oneshot::Sender<Result<T, E>>) -> Self {
        Self {
            result,
            kept: Batch::default(),
            answer,
        }
    }
}

impl<F, T, E> Operation for Asked<F, T, E>
where
    F: for<'c> FnOnce(&'c mut SqliteConnection, Vec<SqliteRow>) -> BoxFuture<'c, Result<(T, Batch), E>>
        + Send
        + 'static,
    T: Send + 'static,
    E: From<StoreError> + Send + 'static,
{
    fn ask(&mut self) -> Batch {
        std::mem::take(&mut self.ask)
    }

    fn run(
        self: Box<Self>,
        connection: &mut SqliteConnection,
        rows: Vec<SqliteRow>,
    ) -> BoxFuture<'_, Box<dyn Outcome>> {
        let Self {
            operation,
            answer,
            span,
            ..
        } = *self;
        let guarded = AssertUnwindSafe(async move { operation(connection, rows).await }).catch_unwind();
        let run = async move {
            let ran = guarded.await.unwrap_or_else(|_panic| {
                tracing::error!("a write operation panicked; it is rolled back");
                Err(StoreError::Panicked.into())
            });
            let (result, kept) = match ran {
                Ok((done, kept)) => (Ok(done), kept),
                Err(error) => (Err(error), Batch::default()),
            };
            Box::new(Ran { result, kept, answer }) as Box<dyn Outcome>
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

    fn keep(&mut self) -> Batch {
        std::mem::take(&mut self.kept)
    }

    fn fail(&mut self, error: StoreError) {
        self.result = Err(error.into());
    }

    fn tell(self: Box<Self>, lost: Option<StoreError>) {
        let result = match lost {
            Some(error) => Err(error.into()),
            None => self.result,
        };
        let _ = self.answer.send(result);
    }
}
