//! The vocabulary every domain shares: who calls ([`Caller`]), what things are called ([`names`]), when it is
//! ([`Clock`]), what can go wrong ([`Fault`]), where words come from ([`Span`]), how entries of a memory
//! travel ([`entries`]) and how lists are paged ([`page`]).
//!
//! Nothing here knows a transport, a database or an async runtime. That is the point: a rule written against this
//! crate runs in a test in microseconds.
#![warn(missing_docs)]

pub mod caller;
pub mod clock;
pub mod entries;
pub mod fault;
pub mod hash;
pub mod ids;
pub mod names;
pub mod page;
pub mod per_team;
pub mod span;

pub use caller::{Caller, Capability, Identity, JobRef, Origin, Role};
pub use clock::{Clock, SystemClock, Timestamp};
pub use fault::{ErrorKind, Fault, FieldViolation, FieldViolations, ResourceRef, error_chain};
pub use ids::{IdGen, RandomIds};
pub use per_team::PerTeam;
pub use span::{Integrity, Span, SpanOrigin};
