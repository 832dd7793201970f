//! Skills from outside (`H-1` to `H-7`): sources, quarantine, policy, lock and audit.
//!
//! A skill enters in one way: a [`Source`](source::Source) resolves a reference to an immutable revision and fetches it
//! whole; [`archive`] unpacks it in memory; the structure check and the scanner judge it; [`policy`] looks the verdict
//! up; a person is asked where the table says so; and [`Hub::install`](hub::Hub::install) scans once more and installs
//! the very bytes that were scanned. [`audit`] keeps what happened, [`lock`] what is there.
//!
//! Tables and the library are behind [`store::HubStore`]; the internet is behind `steward-fetch`. This crate knows no
//! transport of its own and no database.
#![warn(missing_docs)]

pub mod advisories;
pub mod archive;
pub mod audit;
pub mod error;
pub mod hub;
pub mod lock;
pub mod policy;
pub mod publish;
pub mod quarantine;
pub mod search;
pub mod source;
pub mod sources;
pub mod store;
pub mod withdrawal;

pub use steward_skill_provenance as provenance;
