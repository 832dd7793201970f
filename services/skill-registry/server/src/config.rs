//! Settings of skill-registry: the section `skills`.

use std::path::PathBuf;
use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use steward_base::names::TeamId;
use steward_runtime::Problem;
use steward_skill_core::Settings;
use steward_skill_core::name::Category;

pub use crate::hub::config::{HostToken, HubConfig, TeamTrust};
pub use crate::serve::config::ServeConfig;

/// Settings of skill-registry.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// Longest description that an agent may give a skill, in characters. The index shows 60.
    pub agent_description_chars: usize,
    /// Longest description of any skill, in characters.
    pub description_chars: usize,
    /// Longest SKILL.md, in characters.
    pub skill_md_chars: usize,
    /// Largest support file, in bytes.
    pub file_bytes: usize,
    /// Most files of a skill, SKILL.md included.
    pub files: usize,
    /// Largest skill, in bytes over all its files.
    pub skill_bytes: usize,
    /// Most skills in use, per person and per team.
    pub skills_per_scope: usize,
    /// Whether what an agent writes into a skill must pass the guard.
    pub guard_agent_created: bool,
    /// Whether curations age the skills that come with Steward too; those that Steward needs stay in any case.
    pub prune_builtins: bool,
    /// Writes of reviews that may wait for one person's decision; what is over that is refused.
    pub pending_proposals: usize,
    /// Days that a proposal waits for a decision before it expires.
    pub proposal_days: u32,
    /// Days that what a person rejected is not proposed again.
    pub rejection_days: u32,
    /// Categories whose skills the index shows without descriptions, those below them included.
    pub compact_categories: Vec<String>,
    /// Folders outside whose skills are read and never written.
    pub external: Vec<External>,
    /// Seconds between two looks at those folders.
    pub external_seconds: u32,
    /// File with the keys that the teams' secrets are encrypted with: 64 hexadecimal digits a line, the newest first. Empty:
    /// `skills/secrets.key` below the data folder, made when the first secret is set.
    pub secret_keys: PathBuf,
    /// Most connections that read at the same time.
    pub readers: u32,
    /// Skills from outside.
    pub hub: HubConfig,
    /// Skills for others.
    pub serve: ServeConfig,
}

/// A folder outside.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct External {
    /// Absolute path. Folders with a SKILL.md below it are skills, those above them their categories.
    pub path: PathBuf,
    /// Ids of the teams that see it; empty for all.
    pub teams: Vec<String>,
}

impl Default for Config {
    fn default() -> Self {
        let settings = Settings::default();
        Self {
            agent_description_chars: settings.agent_description_chars,
            description_chars: settings.description_chars,
            skill_md_chars: settings.skill_md_chars,
            file_bytes: settings.file_bytes,
            files: settings.files,
            skill_bytes: settings.skill_bytes,
            skills_per_scope: settings.skills_per_scope,
            guard_agent_created: settings.guard_agent_created,
            prune_builtins: settings.prune_builtins,
            pending_proposals: settings.pending_proposals,
            proposal_days: settings.proposal_days,
            rejection_days: settings.rejection_days,
            compact_categories: Vec::new(),
            external: Vec::new(),
            external_seconds: 30,
            secret_keys: PathBuf::new(),
            readers: 4,
            hub: HubConfig::default(),
            serve: ServeConfig::default(),
        }
    }
}

impl Config {
    /// Everything that is wrong with the settings.
    pub fn validate(&self) -> Vec<Problem> {
        let mut problems = Vec::new();
        for (path, value, max) in [
            ("agent_description_chars", self.agent_description_chars, 1_024),
            ("description_chars", self.description_chars, 4_096),
            ("skill_md_chars", self.skill_md_chars, 1_000_000),
            // A file travels in one message.
            ("file_bytes", self.file_bytes, 8 * 1024 * 1024),
            ("files", self.files, 2_000),
            ("skill_bytes", self.skill_bytes, 100 * 1024 * 1024),
            ("skills_per_scope", self.skills_per_scope, 10_000),
            ("pending_proposals", self.pending_proposals, 10_000),
            ("proposal_days", self.proposal_days as usize, 3_650),
            ("rejection_days", self.rejection_days as usize, 3_650),
        ] {
            if !(1..=max).contains(&value) {
                problems.push(Problem::new(path, format!("must be 1 to {max}, is {value}")));
            }
        }
        for category in &self.compact_categories {
            if let Err(problem) = Category::parse(category) {
                problems.push(Problem::new("compact_categories", format!("{category:?} {problem}")));
            }
        }
        for (index, folder) in self.external.iter().enumerate() {
            if !folder.path.is_absolute() {
                problems.push(Problem::new(
                    format!("external[{index}].path"),
                    "must be an absolute path",
                ));
            }
            for team in &folder.teams {
                if let Err(problem) = TeamId::parse(team.as_str()) {
                    problems.push(Problem::new(
                        format!("external[{index}].teams"),
                        format!("{team:?} {problem}"),
                    ));
                }
            }
        }
        if !(1..=86_400).contains(&self.external_seconds) {
            problems.push(Problem::new("external_seconds", "must be 1 to 86400"));
        }
        if !self.secret_keys.as_os_str().is_empty() && !self.secret_keys.is_absolute() {
            problems.push(Problem::new("secret_keys", "must be an absolute path, or empty"));
        }
        if !(1..=64).contains(&self.readers) {
            problems.push(Problem::new("readers", "must be 1 to 64"));
        }
        problems.extend(self.hub.validate());
        problems.extend(self.serve.validate());
        problems
    }

    pub(crate) fn external_interval(&self) -> Duration {
        Duration::from_secs(self.external_seconds.into())
    }

    pub(crate) fn settings(&self) -> Settings {
        Settings {
            agent_description_chars: self.agent_description_chars,
            description_chars: self.description_chars,
            skill_md_chars: self.skill_md_chars,
            file_bytes: self.file_bytes,
            files: self.files,
            skill_bytes: self.skill_bytes,
            skills_per_scope: self.skills_per_scope,
            guard_agent_created: self.guard_agent_created,
            prune_builtins: self.prune_builtins,
            pending_proposals: self.pending_proposals,
            proposal_days: self.proposal_days,
            rejection_days: self.rejection_days,
            compact_categories: self
                .compact_categories
                .iter()
                .filter_map(|category| Category::parse(category).ok())
                .collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_defaults_are_those_of_the_rules() {
        let config = Config::default();
        assert!(config.validate().is_empty());
        assert_eq!(config.settings(), Settings::default());
    }

    #[test]
    fn every_wrong_setting_is_reported() {
        let config = Config {
            files: 0,
            readers: 0,
            file_bytes: usize::MAX,
            ..Config::default()
        };
        let paths = config
            .validate()
            .into_iter()
            .map(|problem| problem.path)
            .collect::<Vec<_>>();
        assert_eq!(paths, ["file_bytes", "files", "readers"]);
    }
}
