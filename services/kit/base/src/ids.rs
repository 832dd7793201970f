//! Fresh identifiers as a parameter.

use std::fmt;

/// Where an operation takes new identifiers from.
pub trait IdGen: fmt::Debug + Send + Sync {
    /// A new identifier: 32 lower-case hexadecimal characters, a UUIDv7, so that later ones sort after earlier ones.
    fn new_id(&self) -> String;
}

/// Identifiers from the machine's clock and random source.
#[derive(Debug, Clone, Copy, Default)]
pub struct RandomIds;

impl IdGen for RandomIds {
    #[expect(clippy::disallowed_methods, reason = "this is the one place that draws identifiers")]
    fn new_id(&self) -> String {
        uuid::Uuid::now_v7().simple().to_string()
    }
}
