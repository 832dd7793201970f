//! The rules of curator-worker: what a review goes through ([`review`]), how it is run and replayed ([`run_review`]), how
//! it is stopped ([`halt`]), when its cost is weighed anew ([`plan`]) and what people are told of it ([`summary`]); and how a
//! library ages ([`curation`]).
//!
//! Queue, ledger, transports and tools are behind [`ports`] or the server's business.
#![warn(missing_docs)]

pub mod curation;
pub mod error;
pub mod halt;
pub mod memory_journal;
pub mod plan;
pub mod ports;
pub mod problem;
pub mod review;
mod run;
pub mod summary;

pub use error::Error;
pub use halt::{Halt, HaltReason};
pub use review::{Due, Ending, Kinds, Problem, Report, Review, ReviewState};
pub use run::{Tried, run_review};
