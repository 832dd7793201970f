//! The numbers that bound a skill (`S-11`), as settings of an installation.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::name::Category;

/// Limits and switches. Lengths of text are in Unicode scalar values, never in bytes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Settings {
    /// Longest description that an agent may give a skill, and longest that the index shows, in characters.
    pub agent_description_chars: usize,
    /// Longest description of any skill, in characters.
    pub description_chars: usize,
    /// Longest `SKILL.md`, in characters.
    pub skill_md_chars: usize,
    /// Largest supporting file, in bytes.
    pub file_bytes: usize,
    /// Most files of a skill, `SKILL.md` included.
    pub files: usize,
    /// Largest skill, in bytes over all its files.
    pub skill_bytes: usize,
    /// Most skills in use in one scope.
    pub skills_per_scope: usize,
    /// Whether what an agent writes into a skill must pass the guard (`S-14`).
    pub guard_agent_created: bool,
    /// Whether curations age builtins too, the protected ones apart (`C-3`).
    pub prune_builtins: bool,
    /// Proposals that may wait for one person's decision.
    pub pending_proposals: usize,
    /// Days that a proposal waits for a decision before it expires.
    pub proposal_days: u32,
    /// Days that what a person rejected is not proposed again (`L-7`).
    pub rejection_days: u32,
    /// Categories whose skills the index shows without descriptions, those below them included (`S-4`).
    pub compact_categories: Vec<Category>,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            agent_description_chars: 60,
            description_chars: 1_024,
            skill_md_chars: 100_000,
            file_bytes: 1024 * 1024,
            files: 200,
            skill_bytes: 10 * 1024 * 1024,
            skills_per_scope: 1_000,
            guard_agent_created: true,
            prune_builtins: false,
            pending_proposals: 100,
            proposal_days: 30,
            rejection_days: 90,
            compact_categories: Vec::new(),
        }
    }
}

impl Settings {
    /// How long a proposal waits.
    pub const fn proposal_life(&self) -> Duration {
        days(self.proposal_days)
    }

    /// How long a rejected candidate is remembered.
    pub const fn rejection_memory(&self) -> Duration {
        days(self.rejection_days)
    }
}

const fn days(number: u32) -> Duration {
    Duration::from_secs(number as u64 * 24 * 60 * 60)
}
