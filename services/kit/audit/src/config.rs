//! Settings of the audit log: the section `audit`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use steward_runtime::Problem;

/// Settings of the audit log, which every process keeps for itself.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// Days that a record is kept.
    pub keep_days: u32,
    /// Most MiB that the records of a process take; the oldest go before their time, those without a team first.
    pub max_mib: u32,
    /// Denied calls of one caller that are kept one by one in a minute, and of all callers without a credential together;
    /// further ones are counted.
    pub denied_per_minute: u32,
    /// Most connections that read at the same time.
    pub readers: u32,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            keep_days: 400,
            max_mib: 256,
            denied_per_minute: 60,
            readers: 2,
        }
    }
}

impl Config {
    /// Everything that is wrong with the settings.
    pub fn validate(&self) -> Vec<Problem> {
        let mut problems = Vec::new();
        for (path, value, max) in [
            ("keep_days", self.keep_days, 36_500),
            ("max_mib", self.max_mib, 1_048_576),
            ("denied_per_minute", self.denied_per_minute, 100_000),
            ("readers", self.readers, 64),
        ] {
            if !(1..=max).contains(&value) {
                problems.push(Problem::new(path, format!("must be 1 to {max}, is {value}")));
            }
        }
        problems
    }
}
