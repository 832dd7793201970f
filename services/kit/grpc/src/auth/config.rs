//! The `auth` section of the configuration.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use steward_base::Clock;
use steward_runtime::Problem;

use super::Auth;
use super::keys::{KeyError, PUBLIC_FOLDER};

/// How credentials are verified.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct AuthConfig {
    /// The signer's public keys: a PEM file, or a folder of them, which may still be empty. By default where a signer on
    /// the same data folder puts them, `agent/keys/public`.
    pub public_keys: Option<PathBuf>,
    /// Whether health answers without a credential. Probes have none.
    pub open_health: bool,
    /// Whether reflection answers without a credential. It tells what is served, and nothing of what is stored.
    pub open_reflection: bool,
}

impl Default for AuthConfig {
    fn default() -> Self {
        Self {
            public_keys: None,
            open_health: true,
            open_reflection: true,
        }
    }
}

impl AuthConfig {
    /// Everything that is wrong with it.
    pub fn validate(&self) -> Vec<Problem> {
        let mut problems = Vec::new();
        if self
            .public_keys
            .as_ref()
            .is_some_and(|path| path.as_os_str().is_empty())
        {
            problems.push(Problem::new("public_keys", "must be a path, or not be set"));
        }
        problems
    }

    /// The access decisions of a process on `data_dir`; what is revoked is kept in `folder`, which must exist.
    pub fn open(&self, data_dir: &Path, folder: &Path, clock: Arc<dyn Clock>) -> Result<Auth, KeyError> {
        let beside = || data_dir.join("agent").join("keys").join(PUBLIC_FOLDER);
        let keys = self.public_keys.clone().unwrap_or_else(beside);
        Ok(Auth::open(&keys, folder, clock)?
            .with_open_health(self.open_health)
            .with_open_reflection(self.open_reflection))
    }
}
