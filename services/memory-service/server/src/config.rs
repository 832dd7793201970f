//! Settings of memory-service: the section `memory`.

use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use steward_memory_core::Limits;
use steward_runtime::Problem;

/// Largest budget that may be set, in characters: an answer of the tool lists a whole store.
const MAX_BUDGET: usize = 100_000;

/// Settings of memory-service.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// Budget of a store of notes, in characters, separators included.
    pub notes_chars: usize,
    /// Budget of a profile, in characters, separators included.
    pub profile_chars: usize,
    /// Refusals for lack of room in one turn, after which the answer is final until something is removed.
    pub refusals_per_turn: u32,
    /// Most operations in one call.
    pub batch_operations: usize,
    /// Most proposals that may wait for a decision, per owner.
    pub pending_proposals: usize,
    /// Days that a proposal waits for a decision before it expires.
    pub proposal_days: u32,
    /// Days for which a rejected candidate is not proposed again.
    pub rejection_days: u32,
    /// Most connections that read at the same time.
    pub readers: u32,
}

impl Default for Config {
    fn default() -> Self {
        let limits = Limits::default();
        Self {
            notes_chars: limits.notes,
            profile_chars: limits.profile,
            refusals_per_turn: limits.refusals,
            batch_operations: limits.batch,
            pending_proposals: limits.pending,
            proposal_days: 30,
            rejection_days: 90,
            readers: 4,
        }
    }
}

impl Config {
    /// Everything that is wrong with the settings.
    pub fn validate(&self) -> Vec<Problem> {
        let mut problems = Vec::new();
        for (path, value, max) in [
            ("notes_chars", self.notes_chars, MAX_BUDGET),
            ("profile_chars", self.profile_chars, MAX_BUDGET),
            ("batch_operations", self.batch_operations, 500),
            ("pending_proposals", self.pending_proposals, 10_000),
        ] {
            if !(1..=max).contains(&value) {
                problems.push(Problem::new(path, format!("must be 1 to {max}, is {value}")));
            }
        }
        if !(1..=100).contains(&self.refusals_per_turn) {
            problems.push(Problem::new("refusals_per_turn", "must be 1 to 100"));
        }
        for (path, days) in [
            ("proposal_days", self.proposal_days),
            ("rejection_days", self.rejection_days),
        ] {
            if !(1..=3_650).contains(&days) {
                problems.push(Problem::new(path, format!("must be 1 to 3650, is {days}")));
            }
        }
        if !(1..=64).contains(&self.readers) {
            problems.push(Problem::new("readers", "must be 1 to 64"));
        }
        problems
    }

    pub(crate) const fn limits(&self) -> Limits {
        Limits {
            notes: self.notes_chars,
            profile: self.profile_chars,
            refusals: self.refusals_per_turn,
            batch: self.batch_operations,
            pending: self.pending_proposals,
            proposal_life: days(self.proposal_days),
            rejection_memory: days(self.rejection_days),
        }
    }
}

const fn days(days: u32) -> Duration {
    Duration::from_secs(days as u64 * 86_400)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_defaults_are_those_of_the_rules() {
        let config = Config::default();
        assert!(config.validate().is_empty());
        assert_eq!(config.limits(), Limits::default());
        assert_eq!((config.notes_chars, config.profile_chars), (2_200, 1_375));
    }

    #[test]
    fn every_wrong_setting_is_reported() {
        let config = Config {
            notes_chars: 0,
            readers: 0,
            refusals_per_turn: 0,
            ..Config::default()
        };
        let paths: Vec<String> = config.validate().into_iter().map(|problem| problem.path).collect();
        assert_eq!(paths, ["notes_chars", "refusals_per_turn", "readers"]);
    }
}
