//! A write, as the line sees it.

use std::panic::{AssertUnwindSafe, catch_unwind};

use tokio::sync::oneshot;
use tracing::Span;

use super::Db;
use crate::StoreError;
use crate::sqlite::operation::{Outcome, Ran};

/// A write that was asked for.
pub(in crate::sqlite) trait Update: Send {
    /// Runs it in a transaction or savepoint, which it leaves open.
    fn run(self: Box<Self>, db: Db<'_>) -> Box<dyn Outcome>;
    /// Answers without running it.
    fn refuse(self: Box<Self>, error: StoreError);
}

/// A write with the caller that waits for it.
pub(in crate::sqlite) struct AskedUpdate<F, T, E> {
    pub(in crate::sqlite) work: F,
    pub(in crate::sqlite) answer: oneshot::Sender<Result<T, E>>,
    pub(in crate::sqlite) span: Span,
}

impl<F, T, E> Update for AskedUpdate<F, T, E>
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
            tracing::error!("a write operation panicked; it is rolled back");
            Err(StoreError::Panicked.into())
        });
        Box::new(Ran::new(result, answer))
    }

    fn refuse(self: Box<Self>, error: StoreError) {
        // A caller that left needs no answer.
        let _ = self.answer.send(Err(error.into()));
    }
}
