//! What a call inherits from the call it is made in: how long it may still take, and the request's id.
//!
//! A server runs each handler inside [`scope`]; every call through a [`crate::Wire`] from there ends no later than the
//! call it serves and carries the same request id, without any handler passing them on.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

/// Metadata key of the request id: made by the first server that is asked, passed on by all.
pub const REQUEST_ID_HEADER: &str = "x-request-id";

/// The surroundings of the present call.
#[derive(Debug, Clone, Default)]
pub struct Ambient {
    /// When the caller stops waiting.
    pub deadline: Option<Instant>,
    /// Id by which logs and errors of all services call this request.
    pub request_id: Option<Arc<str>>,
}

tokio::task_local! {
    static AMBIENT: Ambient;
}

/// Runs `future` as part of a call.
pub async fn scope<F: Future>(ambient: Ambient, future: F) -> F::Output {
    AMBIENT.scope(ambient, future).await
}

/// Runs `work` as part of a call, for code that is polled outside of the handler, such as a response stream.
pub fn sync_scope<T>(ambient: Ambient, work: impl FnOnce() -> T) -> T {
    AMBIENT.sync_scope(ambient, work)
}

/// The present call's surroundings; empty outside of one, for example in a task that outlives its call.
pub fn current() -> Ambient {
    AMBIENT.try_with(Clone::clone).unwrap_or_default()
}

/// Runs `future` as work of its own: no inherited deadline or request id. For work that is begun by a call but must
/// not end with it.
pub async fn detached<F: Future>(future: F) -> F::Output {
    AMBIENT.scope(Ambient::default(), future).await
}

impl Ambient {
    /// Time that is left, zero when the deadline has passed; `None` without one.
    pub fn remaining(&self) -> Option<Duration> {
        self.deadline
            .map(|deadline| deadline.saturating_duration_since(Instant::now()))
    }
}
