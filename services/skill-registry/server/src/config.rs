//! Settings of skill-registry: the section `skills`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use steward_runtime::Problem;
use steward_skill_core::Settings;

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
    /// Most connections that read at the same time.
    pub readers: u32,
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
            readers: 4,
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
        ] {
            if !(1..=max).contains(&value) {
                problems.push(Problem::new(path, format!("must be 1 to {max}, is {value}")));
            }
        }
        if !(1..=64).contains(&self.readers) {
            problems.push(Problem::new("readers", "must be 1 to 64"));
        }
        problems
    }

    pub(crate) const fn settings(&self) -> Settings {
        Settings {
            agent_description_chars: self.agent_description_chars,
            description_chars: self.description_chars,
            skill_md_chars: self.skill_md_chars,
            file_bytes: self.file_bytes,
            files: self.files,
            skill_bytes: self.skill_bytes,
            skills_per_scope: self.skills_per_scope,
            guard_agent_created: self.guard_agent_created,
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
