//! What every Steward process needs around its services: configuration layers ([`config`]), supervised tasks
//! ([`Tasks`]), a [`lifecycle`] with a soft and a hard stop, [`reconcile`] loops, [`telemetry`] for mains, the names for
//! model calls in it ([`genai`]), [`failpoint`]s and private files ([`data_dir`]).
//!
//! It knows no transport and no database. Nothing here keeps state for the whole process except telemetry and
//! failpoints, so many instances run side by side in one test binary.
#![warn(missing_docs)]

pub mod boot;
pub mod config;
pub mod data_dir;
pub mod failpoint;
pub mod genai;
pub mod lifecycle;
#[cfg(any(test, feature = "failpoints"))]
mod moved_clock;
pub mod reconcile;
pub mod tasks;
pub mod telemetry;
pub mod tls;

pub use boot::{Boot, StartError};
pub use config::{Problem, Secret};
pub use lifecycle::run;
pub use reconcile::{Nudge, Reconciler};
pub use tasks::{BoxError, OnCancel, OnError, Policy, TaskResult, Tasks};
