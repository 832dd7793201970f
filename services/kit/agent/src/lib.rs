//! The agent kernel, a library: the loop ([`kernel`]), the system prompt ([`prompt`]), the rule when a review is due
//! ([`counters`]), and everything that makes a review a narrower run of the same loop ([`review`], [`digest`]).
//!
//! The orchestrator runs it with all tools, the curator with the review's table. Nothing here opens a store or a
//! connection.
#![warn(missing_docs)]

pub mod counters;
pub mod digest;
pub mod kernel;
pub mod prompt;
pub mod review;
