//! The durable job queue: leases, fences, retries, absorption and fairness, as a port with two engines.
//!
//! A job is put in once per id ([`Queue::enqueue`]), handed out under a lease and a fence ([`Queue::claim`]), kept alive
//! ([`Queue::heartbeat`]) and brought to an end. Delivery is at least once; effects become exactly-once because every
//! step of a job is checked against its fence where it is written (`R-9`).
//!
//! * Time is the store's: leases, delays and retries go by the clock that the queue was made with, never by the caller's.
//!   It never goes back: where the machine's clock is set back, the queue's goes on from where it was, across restarts too.
//! * What happens to a job is decided in one place, [`Job`]'s transitions; the engines only find and keep jobs.
//! * [`SqliteQueue`] keeps its tables in the database of its owner ([`SQLITE_SCHEMA`], [`SQLITE_SCHEMA_2`]), and [`JobSteps`] offers every
//!   step as a function inside the owner's transaction, so that a job's end and its ledger row commit together.
//!
//! Not here: what jobs mean, who may see them, and the worker's loop.
#![warn(missing_docs)]

#[cfg(test)]
mod contract;
mod error;
mod job;
mod memory;
mod options;
mod port;
#[cfg(test)]
mod random_runs;
mod sqlite;
mod time;
mod transitions;

pub use error::QueueError;
pub use job::{
    Cancelled, Claim, ClaimRequest, ClaimedJob, Enqueued, Failure, Heartbeat, Job, JobState, NewJob, Release,
};
pub use memory::InMemoryQueue;
pub use options::QueueOptions;
pub use port::{ListJobs, Queue, QueueStats, Sweep};
pub use sqlite::{JobSteps, SQLITE_SCHEMA, SQLITE_SCHEMA_2, SqliteQueue};
