//! A credential that cannot be printed by accident.

use std::fmt;

use serde::Deserialize;

/// A secret text. `Debug` and logs show `[secret]`; only [`Secret::expose`] yields it.
#[derive(Clone, PartialEq, Eq, Deserialize)]
#[serde(transparent)]
pub struct Secret(String);

impl Secret {
    /// Wraps a credential.
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// The credential itself, for the one place that sends it.
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("[secret]")
    }
}
