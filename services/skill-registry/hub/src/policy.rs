//! What a verdict comes to for a level of trust (`H-5`): one table, walked by a test.

use std::collections::BTreeSet;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use steward_base::Role;
use steward_skill_scanner::Verdict;

/// How far the origin of a skill is trusted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Trust {
    /// Shipped with Steward.
    Builtin,
    /// A repository on the team's list.
    Trusted,
    /// Anyone.
    Community,
    /// Written by an agent of the team.
    AgentCreated,
}

impl Trust {
    /// The stable name, in snake case.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Builtin => "builtin",
            Self::Trusted => "trusted",
            Self::Community => "community",
            Self::AgentCreated => "agent_created",
        }
    }

    /// How old a new revision must be before an update takes it, so that others may find what is wrong with it.
    pub const fn cool_down(self) -> Duration {
        const DAY: u64 = 24 * 60 * 60;
        match self {
            Self::Builtin | Self::AgentCreated => Duration::ZERO,
            Self::Trusted => Duration::from_secs(DAY),
            Self::Community => Duration::from_secs(3 * DAY),
        }
    }
}

/// What may happen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Decision {
    /// Install.
    Allow,
    /// A person with the right to must say so.
    Ask,
    /// Do not install.
    Block,
}

impl Decision {
    /// The stable name, in snake case.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Allow => "allow",
            Self::Ask => "ask",
            Self::Block => "block",
        }
    }
}

/// The table of `H-5`.
pub const fn decide(trust: Trust, verdict: Verdict) -> Decision {
    match (trust, verdict) {
        (Trust::Builtin, _)
        | (Trust::Trusted | Trust::AgentCreated, Verdict::Safe | Verdict::Caution)
        | (Trust::Community, Verdict::Safe) => Decision::Allow,
        (Trust::AgentCreated, Verdict::Dangerous) => Decision::Ask,
        (Trust::Trusted, Verdict::Dangerous) | (Trust::Community, Verdict::Caution | Verdict::Dangerous) => {
            Decision::Block
        }
    }
}

/// Whether a maintainer's force, given with a reason, lifts a block: a community caution, and nothing dangerous.
pub const fn force_lifts(trust: Trust, verdict: Verdict) -> bool {
    matches!((trust, verdict), (Trust::Community, Verdict::Caution))
}

/// The lowest role whose force counts.
pub const MAY_FORCE: Role = Role::Maintainer;

/// The repositories that a team trusts: exact names, `owner/repository` on a host.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct TrustList {
    repositories: BTreeSet<String>,
}

impl Default for TrustList {
    /// Publishers whose repositories every team would add anyway.
    fn default() -> Self {
        [
            "openai/skills",
            "anthropics/skills",
            "huggingface/skills",
            "NVIDIA/skills",
        ]
        .into_iter()
        .collect()
    }
}

impl<T: AsRef<str>> FromIterator<T> for TrustList {
    fn from_iter<I: IntoIterator<Item = T>>(repositories: I) -> Self {
        Self {
            repositories: repositories.into_iter().map(|name| key(name.as_ref())).collect(),
        }
    }
}

impl TrustList {
    /// The trust in a repository on a host: hosts other than github.com must be part of the entry.
    pub fn trust(&self, host: &str, repository: &str) -> Trust {
        let full = key(&format!("{host}/{repository}"));
        let listed = self.repositories.contains(&full)
            || host.eq_ignore_ascii_case("github.com") && self.repositories.contains(&key(repository));
        if listed { Trust::Trusted } else { Trust::Community }
    }
}

fn key(name: &str) -> String {
    name.trim().trim_matches('/').to_ascii_lowercase()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn h_5_every_cell_of_the_policy_has_its_answer() {
        use Decision::{Allow, Ask, Block};
        for (trust, answers) in [
            (Trust::Builtin, [Allow, Allow, Allow]),
            (Trust::Trusted, [Allow, Allow, Block]),
            (Trust::Community, [Allow, Block, Block]),
            (Trust::AgentCreated, [Allow, Allow, Ask]),
        ] {
            for (verdict, answer) in [Verdict::Safe, Verdict::Caution, Verdict::Dangerous]
                .into_iter()
                .zip(answers)
            {
                assert_eq!(decide(trust, verdict), answer, "{trust:?} {verdict}");
                let lifted = trust == Trust::Community && verdict == Verdict::Caution;
                assert_eq!(force_lifts(trust, verdict), lifted, "{trust:?} {verdict}");
            }
        }
    }

    #[test]
    fn h_5_trust_is_for_exact_repositories_on_their_host() {
        let list = TrustList::default();
        assert_eq!(list.trust("github.com", "anthropics/skills"), Trust::Trusted);
        assert_eq!(list.trust("github.com", "nvidia/Skills"), Trust::Trusted);
        for (host, repository) in [
            ("github.com", "anthropics/skills-2"),
            ("github.com", "anthropic/skills"),
            ("github.com", "evil/anthropics/skills"),
            ("git.evil.example", "anthropics/skills"),
            ("github.com.evil.example", "anthropics/skills"),
        ] {
            assert_eq!(list.trust(host, repository), Trust::Community, "{host}/{repository}");
        }
        let own: TrustList = ["git.own.example/team/skills"].into_iter().collect();
        assert_eq!(own.trust("git.own.example", "team/skills"), Trust::Trusted);
        assert_eq!(own.trust("github.com", "team/skills"), Trust::Community);
    }
}
