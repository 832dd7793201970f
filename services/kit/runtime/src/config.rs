//! Settings in layers: defaults in code, then a TOML file, then the environment (`STEWARD__SECTION__KEY`), then flags.
//!
//! A configuration is a serde struct with `#[serde(default, deny_unknown_fields)]` and a [`Validate`]. Loading reports
//! every problem at once, each with the setting's path and the layer it came from. [`Loaded::settings`] shows the
//! effective values with their origin; a [`Secret`] never shows itself.

mod load;
mod secret;
mod teams;

use std::fmt;

pub use load::{Layers, Loaded, Setting, load};
pub use secret::Secret;
pub use teams::{TeamSettings, Teams};

/// Exit code for a wrong command line or configuration.
pub const EXIT_USAGE: u8 = 64;

/// Prefix of environment variables that are settings.
pub const ENVIRONMENT_PREFIX: &str = "STEWARD__";

/// One thing that is wrong with the configuration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// The setting, for example `memory.max_entry_chars`.
    pub path: String,
    /// What is wrong and what would be right.
    pub message: String,
}

impl Problem {
    /// With the setting's path inside its section.
    pub fn new(path: impl Into<String>, message: impl Into<String>) -> Self {
        Self {
            path: path.into(),
            message: message.into(),
        }
    }

    /// The same problem as seen from the section's parent.
    #[must_use]
    pub fn within(mut self, section: &str) -> Self {
        self.path = if self.path.is_empty() {
            section.to_owned()
        } else {
            format!("{section}.{}", self.path)
        };
        self
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.path.is_empty() {
            f.write_str(&self.message)
        } else {
            write!(f, "{}: {}", self.path, self.message)
        }
    }
}

/// A configuration that can say everything that is wrong with it.
pub trait Validate {
    /// All problems, not the first.
    fn validate(&self) -> Vec<Problem>;
}

/// The problems as lines, each with a leading dash, for stderr.
pub fn list(problems: &[Problem]) -> String {
    problems.iter().fold(String::new(), |text, problem| {
        text + "  - " + &problem.to_string() + "\n"
    })
}

/// A variable of the environment that is no setting of a service: `STEWARD_LOG`, `STEWARD_CONFIG`. `None` when it is
/// unset, empty or not UTF-8.
#[expect(
    clippy::disallowed_methods,
    reason = "this module is the one that reads the environment"
)]
pub fn environment_value(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.is_empty())
}

/// The variables that are settings, by name, for [`Layers::environment`].
pub fn environment() -> Vec<(String, String)> {
    std::env::vars_os()
        .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
        .filter(|(name, _)| name.starts_with(ENVIRONMENT_PREFIX))
        .collect()
}
