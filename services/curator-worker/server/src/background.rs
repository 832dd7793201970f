//! What the worker does by itself: pull due reviews, run them, take back what was lost, learn of revocations.

mod outbox;
mod reviewer;
mod revocations;
mod sweep;
mod watch_over;

pub(crate) use outbox::Outbox;
pub(crate) use reviewer::Reviewer;
pub(crate) use revocations::RevocationPull;
pub(crate) use sweep::Sweeper;
