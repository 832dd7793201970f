//! Writing: one transaction per operation, run to its end whatever becomes of the caller.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use futures::FutureExt;
use futures::future::BoxFuture;
use sqlx::Connection;
use sqlx::sqlite::SqliteConnection;
use tracing::Instrument;

use super::{Inner, Sqlite};
use crate::StoreError;

impl Sqlite {
    /// Runs `operation` in a transaction of its own and answers after it is committed and on disk. `Err` rolls back.
    ///
    /// The operation runs in a task of its own. A caller that goes away in the middle, because a client hung up or a
    /// deadline passed, neither stops it half way nor leaves the writer in a transaction: it commits or rolls back as
    /// it would have. A panic rolls back and answers [`StoreError::Panicked`].
    ///
    /// Operations are served one at a time, in the order of arrival, so that none needs to expect a busy database.
    /// They must do nothing but work on the connection, and must pass on the first store error they meet: SQLite may
    /// have rolled the transaction back by then.
    pub async fn write<T, E, F>(&self, operation: F) -> Result<T, E>
    where
        F: for<'c> FnOnce(&'c mut SqliteConnection) -> BoxFuture<'c, Result<T, E>> + Send + 'static,
        T: Send + 'static,
        E: From<StoreError> + Send + 'static,
    {
        to_the_end(run(Arc::clone(&self.inner), operation)).await?
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

async fn run<T, E, F>(inner: Arc<Inner>, operation: F) -> Result<T, E>
where
    F: for<'c> FnOnce(&'c mut SqliteConnection) -> BoxFuture<'c, Result<T, E>> + Send + 'static,
    E: From<StoreError>,
{
    let mut connection = inner.writer.acquire().await.map_err(StoreError::from)?;
    let mut transaction = connection
        .begin_with("BEGIN IMMEDIATE")
        .await
        .map_err(StoreError::from)?;
    let attempt = AssertUnwindSafe(async { operation(&mut transaction).await })
        .catch_unwind()
        .await;
    let failure = match attempt {
        Ok(Ok(value)) => match transaction.commit().await {
            Ok(()) => return Ok(value),
            // A commit that fails may or may not have ended the transaction: only a new connection is certain.
            Err(error) => {
                connection.close_on_drop();
                return Err(StoreError::from(error).into());
            }
        },
        Ok(Err(error)) => error,
        Err(_panic) => {
            tracing::error!(path = %inner.path.display(), "a write operation panicked; it is rolled back");
            StoreError::Panicked.into()
        }
    };
    // Where SQLite has rolled back by itself (a full disk, for one) there is nothing left to roll back, and the driver's
    // count of open transactions is off from then on. Such a connection is replaced.
    if transaction.rollback().await.is_err() {
        connection.close_on_drop();
    }
    Err(failure)
}
