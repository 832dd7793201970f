//! One update, as the line and the group see it: how it runs, whom it answers. Its types are its caller's and are not seen from
//! here on.

use std::panic::{AssertUnwindSafe, catch_unwind};

use tokio::sync::oneshot;
use tracing::Span;

use super::Db;
use crate::StoreError;

/// An update that was asked for.
pub(super) trait Operation: Send {
    /// Runs it in a transaction or savepoint, which it leaves open.
    fn run(self: Box<Self>, db: Db<'_>) -> Box<dyn Outcome>;
    /// Answers without running it.
    fn refuse(self: Box<Self>, error: StoreError);
}

/// What came of an update, which its caller does not know yet.
pub(super) trait Outcome: Send {
    /// Whether what it did is to be kept.
    fn is_success(&self) -> bool;
    /// It failed after all.
    fn fail(&mut self, error: StoreError);
    /// Tells the caller: what came of it, or that nothing of it was kept.
    fn tell(self: Box<Self>, lost: Option<StoreError>);
}

/// An update with the caller that waits for it.
pub(super) struct Asked<F, T, E> {
    pub(super) work: F,
    pub(super) answer: oneshot::Sender<Result<T, E>>,
    pub(super) span: Span,
}

struct Ran<T, E> {
    result: Result<T, E>,
    answer: oneshot::Sender<Result<T, E>>,
}

impl<F, T, E> Operation for Asked<F, T, E>
where
    F: FnOnce(Db<'_>) -> Result<T, E> + Send,
    T: Send + 'static,
    E: From<StoreError> + Send + 'static,
{
    fn run(self: Box<Self>, db: Db<'_>) -> Box<dyn Outcome> {
        let Self { work, answer, span } = *self;
        let _entered = span.enter();
        // Nothing of what it saw is used after a panic: it is rolled back.
        let result = catch_unwind(AssertUnwindSafe(|| work(db))).unwrap_or_else(|_panic| {
            tracing::error!("an update panicked; it is rolled back");
            Err(StoreError::Panicked.into())
        });
        Box::new(Ran { result, answer })
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
