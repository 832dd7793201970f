//! Settings of curator-worker: the section `learning`.

mod curation;

use std::path::PathBuf;
use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use steward_curator_core::summary::Detail;
use steward_queue::QueueOptions;
use steward_runtime::Problem;

pub use curation::CurationConfig;

/// Longest life of a job's token, and so of a lease, in seconds.
const MAX_LEASE: u32 = 600;

/// Settings of curator-worker.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// File with the worker's own token; unset: `agent/curator-worker.token` in the data folder, which the orchestrator
    /// makes at its first start.
    pub token_file: Option<PathBuf>,
    /// Reviews that run at the same time in this process.
    pub reviewers: u32,
    /// Reviews of one team that run at the same time.
    pub reviews_per_team: u32,
    /// Seconds that a claim lives without a heartbeat: after a crash a review goes on this late.
    pub lease_seconds: u32,
    /// Seconds between two heartbeats. A request to cancel or to give way is seen this late at most.
    pub heartbeat_seconds: u32,
    /// Tries of a review (`R-1`).
    pub attempts: u32,
    /// Times that a review gives way to a new turn before it runs to its end (`R-2`).
    pub releases: u32,
    /// Seconds before the second try; doubled for each further one.
    pub backoff_seconds: u32,
    /// Seconds that a worker leaves the queue alone after its review gave way.
    pub give_way_seconds: u32,
    /// Milliseconds between two looks at the due reviews.
    pub outbox_milliseconds: u32,
    /// How much people are told of their reviews, unless their client asks for more or less.
    pub review_line: ReviewLine,
    /// Seconds between two pulls of the revocations.
    pub revocation_seconds: u32,
    /// Most connections that read at the same time.
    pub readers: u32,
    /// When libraries are curated.
    pub curation: CurationConfig,
}

/// How much people are told of a review (`R-8`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ReviewLine {
    /// Nothing.
    Off,
    /// One line that names each write once.
    On,
    /// The same with the opening words of what was written.
    Verbose,
}

impl From<ReviewLine> for Detail {
    fn from(line: ReviewLine) -> Self {
        match line {
            ReviewLine::Off => Self::Off,
            ReviewLine::On => Self::On,
            ReviewLine::Verbose => Self::Verbose,
        }
    }
}

impl Default for Config {
    fn default() -> Self {
        Self {
            token_file: None,
            reviewers: 2,
            reviews_per_team: 4,
            lease_seconds: 60,
            heartbeat_seconds: 5,
            attempts: 3,
            releases: 2,
            backoff_seconds: 30,
            give_way_seconds: 5,
            outbox_milliseconds: 1_000,
            review_line: ReviewLine::On,
            revocation_seconds: 10,
            readers: 4,
            curation: CurationConfig::default(),
        }
    }
}

impl Config {
    /// Everything that is wrong with the settings.
    pub fn validate(&self) -> Vec<Problem> {
        let mut problems = Vec::new();
        for (path, value, least, most) in [
            ("reviewers", self.reviewers, 0, 64),
            ("reviews_per_team", self.reviews_per_team, 1, 64),
            ("lease_seconds", self.lease_seconds, 5, MAX_LEASE),
            ("heartbeat_seconds", self.heartbeat_seconds, 1, 60),
            ("attempts", self.attempts, 1, 20),
            ("releases", self.releases, 0, 20),
            ("backoff_seconds", self.backoff_seconds, 0, 3_600),
            ("give_way_seconds", self.give_way_seconds, 0, 600),
            ("outbox_milliseconds", self.outbox_milliseconds, 10, 60_000),
            ("revocation_seconds", self.revocation_seconds, 1, 3_600),
            ("readers", self.readers, 1, 64),
        ] {
            if !(least..=most).contains(&value) {
                problems.push(Problem::new(path, format!("must be {least} to {most}, is {value}")));
            }
        }
        if self.heartbeat_seconds.saturating_mul(3) > self.lease_seconds {
            problems.push(Problem::new(
                "heartbeat_seconds",
                "must be at most a third of `lease_seconds`",
            ));
        }
        self.curation.validate(&mut problems);
        problems
    }

    pub(crate) fn queue(&self) -> QueueOptions {
        QueueOptions {
            max_attempts: self.attempts,
            max_releases: self.releases,
            team_cap: self.reviews_per_team,
            backoff: seconds(self.backoff_seconds),
            ..QueueOptions::default()
        }
    }

    pub(crate) fn lease(&self) -> Duration {
        seconds(self.lease_seconds)
    }

    pub(crate) fn heartbeat(&self) -> Duration {
        seconds(self.heartbeat_seconds)
    }
}

pub(crate) fn seconds(seconds: u32) -> Duration {
    Duration::from_secs(u64::from(seconds))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_defaults_are_those_of_the_rules() {
        let config = Config::default();
        assert!(config.validate().is_empty());
        let queue = config.queue();
        assert_eq!((queue.max_attempts, queue.max_releases, config.reviewers), (3, 2, 2));
    }

    #[test]
    fn every_wrong_setting_is_reported() {
        let config = Config {
            reviewers: 65,
            attempts: 0,
            heartbeat_seconds: 30,
            curation: CurationConfig {
                archive_days: 30,
                ..CurationConfig::default()
            },
            ..Config::default()
        };
        let paths: Vec<String> = config.validate().into_iter().map(|problem| problem.path).collect();
        assert_eq!(
            paths,
            ["reviewers", "attempts", "heartbeat_seconds", "curation.archive_days"]
        );
    }
}
