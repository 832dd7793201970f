//! Settings of memory-service: the section `memory`.

use std::collections::BTreeSet;
use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use steward_base::PerTeam;
use steward_base::names::TeamId;
use steward_memory_core::Limits;
use steward_runtime::config::Teams;
use steward_runtime::{Problem, Secret};

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
    /// External memories, at most one a team. None by default.
    pub providers: Vec<ProviderConfig>,
    /// Milliseconds that an external memory has to answer what a person waits for.
    pub provider_ms: u32,
    /// What a team has of its own, in a table `[memory.teams.red]`; what is not set there is as above.
    pub teams: Teams<TeamConfig>,
}

steward_runtime::team_settings! {
    /// What a team may set of its own.
    pub struct TeamConfig of Config {
        /// Budget of a store of notes, in characters, separators included.
        notes_chars: usize => notes_chars,
        /// Budget of a profile, in characters, separators included.
        profile_chars: usize => profile_chars,
        /// Refusals for lack of room in one turn, after which the answer is final until something is removed.
        refusals_per_turn: u32 => refusals_per_turn,
        /// Most proposals that may wait for a decision, per owner.
        pending_proposals: usize => pending_proposals,
        /// Days that a proposal waits for a decision before it expires.
        proposal_days: u32 => proposal_days,
        /// Days for which a rejected candidate is not proposed again.
        rejection_days: u32 => rejection_days,
    }
}

/// How a team's external memory is reached.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ProviderConfig {
    /// The team's id.
    pub team: String,
    /// What it speaks.
    pub kind: ProviderKind,
    /// Where it is: `http://host:port`, `https://host:port`, and for gRPC also `unix:///path`.
    pub url: String,
    /// Its API key or token; empty for none.
    #[serde(default)]
    pub key: Secret<String>,
}

/// What an external memory speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ProviderKind {
    /// `steward.memory.provider.v1`.
    Grpc,
    /// The REST API of a Mem0 server.
    Mem0,
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
            providers: Vec::new(),
            provider_ms: 1_500,
            teams: Teams::default(),
        }
    }
}

impl Config {
    /// Everything that is wrong with the settings.
    pub fn validate(&self) -> Vec<Problem> {
        let mut problems = self.judge();
        problems.extend(self.teams.validate(self, Self::judge));
        problems
    }

    /// What is wrong with the settings of one team, or of all.
    fn judge(&self) -> Vec<Problem> {
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
        if !(10..=60_000).contains(&self.provider_ms) {
            problems.push(Problem::new("provider_ms", "must be 10 to 60000"));
        }
        let mut teams = BTreeSet::new();
        for (index, provider) in self.providers.iter().enumerate() {
            if let Err(problem) = TeamId::parse(provider.team.as_str()) {
                problems.push(Problem::new(format!("providers[{index}].team"), problem.to_string()));
            } else if !teams.insert(&provider.team) {
                let problem = format!("team {} has an external memory already", provider.team);
                problems.push(Problem::new(format!("providers[{index}].team"), problem));
            }
        }
        problems
    }

    /// The limits, team by team.
    pub(crate) fn limits(&self) -> PerTeam<Limits> {
        self.teams.of(self, Self::own_limits)
    }

    const fn own_limits(&self) -> Limits {
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
        assert_eq!(config.limits(), PerTeam::from(Limits::default()));
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

    /// `M-1`: each number is a setting, per team.
    #[test]
    fn a_team_has_budgets_and_terms_of_its_own() {
        let red = TeamConfig {
            notes_chars: Some(4_000),
            proposal_days: Some(7),
            ..TeamConfig::default()
        };
        let mut config = Config {
            teams: Teams::from_iter([("red".to_owned(), red)]),
            ..Config::default()
        };
        assert_eq!(config.validate(), []);
        let limits = config.limits();
        let own = limits.of(&TeamId::parse("red").unwrap());
        assert_eq!((own.notes, own.profile, own.proposal_life), (4_000, 1_375, days(7)));
        assert_eq!(limits.of(&TeamId::parse("blue").unwrap()), &Limits::default());
        let bad = TeamConfig {
            notes_chars: Some(MAX_BUDGET + 1),
            ..TeamConfig::default()
        };
        config.teams = Teams::from_iter([("red".to_owned(), bad)]);
        let paths: Vec<String> = config.validate().into_iter().map(|problem| problem.path).collect();
        assert_eq!(paths, ["teams.red.notes_chars"]);
    }

    /// `M-15`.
    #[test]
    fn a_second_external_memory_of_a_team_is_refused() {
        let provider = |team: &str| ProviderConfig {
            team: team.to_owned(),
            kind: ProviderKind::Mem0,
            url: "http://localhost:8000".to_owned(),
            key: Secret::default(),
        };
        let config = Config {
            providers: vec![provider("red"), provider("blue"), provider("red"), provider("No Team")],
            ..Config::default()
        };
        let paths: Vec<String> = config.validate().into_iter().map(|problem| problem.path).collect();
        assert_eq!(paths, ["providers[2].team", "providers[3].team"]);
    }
}
