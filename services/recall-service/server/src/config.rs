//! Settings of recall-service: the section `recall`.

use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use steward_recall_core::sessions::Limits;
use steward_runtime::Problem;

/// Settings of recall-service.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// Most teams whose files are open at the same time. Each takes up to sixteen descriptors while it is used, and
    /// four otherwise.
    pub open_teams: usize,
    /// Largest message in bytes, its tool arguments and sent bytes included.
    pub message_bytes: u64,
    /// Folder for backups of teams; unset: `recall/backups` in the data folder. Another disk is another chance.
    pub backup_folder: Option<PathBuf>,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            open_teams: 128,
            message_bytes: Limits::default().message_bytes,
            backup_folder: None,
        }
    }
}

impl Config {
    /// Everything that is wrong with the settings.
    pub fn validate(&self) -> Vec<Problem> {
        let mut problems = Vec::new();
        if !(1..=4_096).contains(&self.open_teams) {
            problems.push(Problem::new(
                "open_teams",
                format!("must be 1 to 4096, is {}", self.open_teams),
            ));
        }
        if !(1_024..=4_194_304).contains(&self.message_bytes) {
            let text = format!("must be 1024 to 4194304, is {}", self.message_bytes);
            problems.push(Problem::new("message_bytes", text));
        }
        problems
    }

    pub(crate) const fn limits(&self) -> Limits {
        Limits {
            message_bytes: self.message_bytes,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_defaults_are_good_and_every_wrong_setting_is_reported() {
        assert!(Config::default().validate().is_empty());
        let wrong = Config {
            open_teams: 0,
            message_bytes: 1,
            backup_folder: None,
        };
        let paths: Vec<String> = wrong.validate().into_iter().map(|problem| problem.path).collect();
        assert_eq!(paths, ["open_teams", "message_bytes"]);
    }
}
