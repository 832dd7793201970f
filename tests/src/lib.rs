//! What the end-to-end scenarios share: a stack of real processes in both shapes ([`Stack`]), and a person who uses it
//! over the network ([`Person`]).
//!
//! The processes run `steward-under-test`: the shipped command line, with failpoints compiled in.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test fails by panicking"
)]

pub mod person;
pub mod process;
pub mod provider;
pub mod script;
pub mod stack;
pub mod terminal;

pub use person::{Ended, Person, Segment};
pub use process::Process;
pub use provider::ReferenceMemory;
pub use stack::{SERVICES, Shape, Stack, StackOptions};
