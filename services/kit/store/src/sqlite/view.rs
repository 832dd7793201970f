//! Reading.

use std::sync::{Arc, Mutex, PoisonError};

use rusqlite::{Connection, InterruptHandle};

use super::Db;
use super::maintain::blocking;
use crate::{Sqlite, StoreError};

impl Sqlite {
    /// Runs `work` on the thread of the caller, which sees the database as it was at one moment, every write that was
    /// acknowledged before included. Waits only while all readers are busy.
    ///
    /// For what is found by a key and is bounded: the thread does nothing else meanwhile. What may take longer than a
    /// millisecond is for [`Sqlite::view_beside`].
    pub async fn view<T, E: From<StoreError>>(&self, work: impl FnOnce(Db<'_>) -> Result<T, E>) -> Result<T, E> {
        let lent = self.inner.readers.take().await?;
        at_one_moment(lent.connection()?, work)
    }

    /// [`Sqlite::view`] on a thread for such work. When the caller goes away, what runs is interrupted.
    pub async fn view_beside<T, E>(&self, work: impl FnOnce(Db<'_>) -> Result<T, E> + Send + 'static) -> Result<T, E>
    where
        T: Send + 'static,
        E: From<StoreError> + Send + 'static,
    {
        let lent = self.inner.readers.take().await?;
        let stop = Stop::default();
        let running = Stop(Arc::clone(&stop.0));
        let span = tracing::Span::current();
        let ran = tokio::task::spawn_blocking(move || {
            let _entered = span.enter();
            let connection = lent.connection()?;
            running.set(Some(connection.get_interrupt_handle()));
            // Before the connection is anybody else's, after a panic too.
            let _ended = Ran(&running);
            at_one_moment(connection, work)
        });
        let _interrupts_if_dropped = StopOnDrop(&stop);
        match ran.await {
            Ok(answer) => answer,
            Err(error) if error.is_panic() => Err(StoreError::Panicked.into()),
            Err(error) => Err(StoreError::unavailable(error).into()),
        }
    }
}

impl Sqlite {
    /// SQLite does it outside of a transaction only.
    pub(super) async fn vacuum_into(&self, target: String) -> Result<(), StoreError> {
        let lent = self.inner.readers.take().await?;
        blocking(move || {
            lent.connection()?.execute("VACUUM INTO ?", (target,))?;
            Ok(())
        })
        .await
    }
}

/// Runs `work` in a transaction that reads.
fn at_one_moment<T, E: From<StoreError>>(
    connection: &Connection,
    work: impl FnOnce(Db<'_>) -> Result<T, E>,
) -> Result<T, E> {
    let ended = Ended(connection);
    ended.statement("BEGIN")?;
    let answer = work(Db::new(connection));
    drop(ended);
    answer
}

/// Ends the transaction, whatever becomes of the work in it.
struct Ended<'c>(&'c Connection);

impl Ended<'_> {
    fn statement(&self, sql: &str) -> Result<(), StoreError> {
        self.0.prepare_cached(sql)?.execute(())?;
        Ok(())
    }
}

impl Drop for Ended<'_> {
    fn drop(&mut self) {
        if !self.0.is_autocommit()
            && let Err(error) = self.statement("COMMIT")
        {
            tracing::warn!(%error, "a read did not end well");
        }
    }
}

/// How work on another thread is stopped, while it runs.
#[derive(Default)]
struct Stop(Arc<Mutex<Option<InterruptHandle>>>);

impl Stop {
    fn set(&self, handle: Option<InterruptHandle>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = handle;
    }
}

struct Ran<'s>(&'s Stop);

impl Drop for Ran<'_> {
    fn drop(&mut self) {
        self.0.set(None);
    }
}

struct StopOnDrop<'s>(&'s Stop);

impl Drop for StopOnDrop<'_> {
    fn drop(&mut self) {
        if let Some(running) = &*self.0.0.lock().unwrap_or_else(PoisonError::into_inner) {
            running.interrupt();
        }
    }
}
