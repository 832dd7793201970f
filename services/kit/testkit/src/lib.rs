//! Test tools that every crate shares: a clock that stands still, ids that count, waiting for a condition instead of for
//! a time, folders that survive a failure, a model server that does what a script says, a site with pages, and runs with
//! input that a generator makes.
//!
//! Nothing here belongs into a product binary. Helpers panic with a sentence when a test is wrong, since a test has
//! nobody to hand an error to.
#![expect(clippy::expect_used, reason = "a helper of tests fails the test with a sentence")]
#![warn(missing_docs)]

mod clock;
mod crypto;
pub mod fuzz;
mod hard_texts;
mod ids;
pub mod model_server;
pub mod rules;
mod site;
mod temp_dir;
mod wait;

pub use clock::MockClock;
pub use crypto::install_crypto;
pub use hard_texts::hard_texts;
pub use ids::SeqIds;
pub use model_server::{ModelServer, RecordedRequest, Reply, ScriptedBlock, ScriptedCall, ScriptedUsage};
pub use site::Site;
pub use temp_dir::TempDir;
pub use wait::{PATIENCE, wait_for, wait_for_some};
