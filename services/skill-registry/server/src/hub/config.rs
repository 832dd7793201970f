//! Settings of the hub: the section `skills.hub`.

use std::collections::BTreeSet;
use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use steward_base::names::TeamId;
use steward_runtime::{Problem, Secret};
use steward_skill_hub::sources;
use url::Url;

use super::signing::SignatureConfig;

/// Names of all sources.
pub(super) const SOURCES: [&str; 10] = [
    "official",
    "index",
    "github",
    "skills.sh",
    "clawhub",
    "claude-marketplace",
    "lobehub",
    "browse.sh",
    "well-known",
    "url",
];

/// Settings of the hub.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct HubConfig {
    /// Whether skills from outside can be brought in. What is installed stays in any case.
    pub enabled: bool,
    /// Names of sources that are switched off.
    pub disabled: Vec<String>,
    /// Repositories that are trusted: `owner/repository` on github.com, `host/owner/repository` elsewhere.
    pub trusted: Vec<String>,
    /// Teams that trust others instead.
    pub teams: Vec<TeamTrust>,
    /// Folder with the optional skills of this installation, read at start; each is a folder with a SKILL.md. They are trusted
    /// like Steward itself. Empty for none.
    pub official: PathBuf,
    /// Address of a central index, a JSON file; empty for none.
    pub index: String,
    /// The API of GitHub, or of a host that speaks it.
    pub github_api: String,
    /// Name of that host, as trust lists write it.
    pub github_host: String,
    /// Token for that API, which goes to no other host.
    pub github_token: Option<Secret<String>>,
    /// Repositories that are searched.
    pub repositories: Vec<String>,
    /// Repositories that hold a marketplace file.
    pub marketplaces: Vec<String>,
    /// Address of skills.sh.
    pub skills_sh: String,
    /// Address of its partners' audits; empty to leave them out.
    pub skills_sh_audit: String,
    /// Address of ClawHub.
    pub clawhub: String,
    /// Address of LobeHub's market.
    pub lobehub: String,
    /// Address of browse.sh.
    pub browse_sh: String,
    /// Origins (`http://host:port`) that may be asked although they are not https or not public: a mirror of one's own.
    pub permitted_origins: Vec<String>,
    /// Longest time that a source may take to answer a search, in seconds.
    pub search_seconds: u32,
    /// Longest time for one request, redirects included, in seconds.
    pub request_seconds: u32,
    /// Requests to one host in a minute.
    pub requests_per_minute: u32,
    /// Largest answer, in megabytes.
    pub answer_megabytes: u32,
    /// Answers that are remembered by their ETag, in megabytes.
    pub cache_megabytes: u32,
    /// Most items of a team that wait in quarantine.
    pub quarantine_items: usize,
    /// Tokens for other hosts, each of which goes to its host alone: for indexes that are not for everyone.
    pub tokens: Vec<HostToken>,
    /// Addresses of advisories in the shape of OSV: what they name is yanked, or revoked where they say so.
    pub advisories: Vec<String>,
    /// Hours between two looks at whether sources or advisories withdrew what is installed; 0 to look on demand only.
    pub check_hours: u32,
    /// By what the signatures that skills carry are verified, and whose are asked for.
    pub signatures: SignatureConfig,
}

/// A token and the host that may see it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct HostToken {
    /// The host, without a port.
    pub host: String,
    /// The token, which is sent as `Authorization: Bearer`.
    pub token: Option<Secret<String>>,
}

/// Whom one team trusts.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct TeamTrust {
    /// Id of the team.
    pub team: String,
    /// Its repositories, instead of those above.
    pub trusted: Vec<String>,
}

impl Default for HubConfig {
    fn default() -> Self {
        let sources = sources::Settings::default();
        Self {
            enabled: true,
            disabled: Vec::new(),
            trusted: sources.repositories.clone(),
            teams: Vec::new(),
            official: PathBuf::new(),
            index: sources.index,
            github_api: sources.github_api,
            github_host: sources.github_host,
            github_token: None,
            repositories: sources.repositories,
            marketplaces: sources.marketplaces,
            skills_sh: sources.skills_sh,
            skills_sh_audit: sources.skills_sh_audit,
            clawhub: sources.clawhub,
            lobehub: sources.lobehub,
            browse_sh: sources.browse_sh,
            permitted_origins: Vec::new(),
            search_seconds: 10,
            request_seconds: 30,
            requests_per_minute: 120,
            answer_megabytes: 32,
            cache_megabytes: 16,
            quarantine_items: 100,
            tokens: Vec::new(),
            advisories: Vec::new(),
            check_hours: 24,
            signatures: SignatureConfig::default(),
        }
    }
}

impl HubConfig {
    /// Everything that is wrong with the settings.
    pub(crate) fn validate(&self) -> Vec<Problem> {
        let mut problems = Vec::new();
        for name in self.disabled.iter().filter(|name| !SOURCES.contains(&name.as_str())) {
            let known = SOURCES.join(", ");
            problems.push(Problem::new("hub.disabled", format!("{name:?} is none of {known}")));
        }
        for (path, address, may_be_empty) in [
            ("hub.index", &self.index, true),
            ("hub.github_api", &self.github_api, false),
            ("hub.skills_sh", &self.skills_sh, false),
            ("hub.skills_sh_audit", &self.skills_sh_audit, true),
            ("hub.clawhub", &self.clawhub, false),
            ("hub.lobehub", &self.lobehub, false),
            ("hub.browse_sh", &self.browse_sh, false),
        ] {
            let left_out = may_be_empty && address.is_empty();
            if !(left_out || is_address(address)) {
                problems.push(Problem::new(path, "must be an http(s) address without credentials"));
            }
        }
        for origin in self.permitted_origins.iter().filter(|origin| !is_address(origin)) {
            let text = format!("{origin:?} is no origin, http(s)://host:port");
            problems.push(Problem::new("hub.permitted_origins", text));
        }
        for (index, team) in self.teams.iter().enumerate() {
            if let Err(problem) = TeamId::parse(team.team.as_str()) {
                problems.push(Problem::new(
                    format!("hub.teams[{index}].team"),
                    format!("{:?} {problem}", team.team),
                ));
            }
            problems.extend(self.untrusted(&format!("hub.teams[{index}].trusted"), &team.trusted));
        }
        problems.extend(self.untrusted("hub.trusted", &self.trusted));
        for (path, value, max) in [
            ("hub.search_seconds", self.search_seconds, 60),
            ("hub.request_seconds", self.request_seconds, 300),
            ("hub.requests_per_minute", self.requests_per_minute, 10_000),
            ("hub.answer_megabytes", self.answer_megabytes, 256),
            ("hub.cache_megabytes", self.cache_megabytes, 1_024),
        ] {
            if !(1..=max).contains(&value) {
                problems.push(Problem::new(path, format!("must be 1 to {max}, is {value}")));
            }
        }
        if !(1..=10_000).contains(&self.quarantine_items) {
            problems.push(Problem::new("hub.quarantine_items", "must be 1 to 10000"));
        }
        problems.extend(self.wrong_lists());
        problems.extend(self.signatures.validate());
        problems
    }

    /// What is wrong with tokens, advisories and the folder of official skills.
    fn wrong_lists(&self) -> Vec<Problem> {
        let mut problems = Vec::new();
        for address in self.advisories.iter().filter(|address| !is_address(address)) {
            let text = format!("{address:?} is no http(s) address without credentials");
            problems.push(Problem::new("hub.advisories", text));
        }
        for (index, token) in self.tokens.iter().enumerate() {
            let is_host = Url::parse(&format!("https://{}", token.host))
                .is_ok_and(|url| url.host_str() == Some(token.host.as_str()) && url.port().is_none());
            if !is_host || token.token.is_none() {
                let text = "must have a host, in lower case and without a port, and a token";
                problems.push(Problem::new(format!("hub.tokens[{index}]"), text));
            }
        }
        if !self.official.as_os_str().is_empty() && !self.official.is_absolute() {
            problems.push(Problem::new("hub.official", "must be an absolute path, or empty"));
        }
        if self.check_hours > 720 {
            problems.push(Problem::new("hub.check_hours", "must be at most 720"));
        }
        problems
    }

    /// A trusted entry names a repository exactly; a whole owner or host is nobody in particular.
    #[expect(clippy::unused_self, reason = "stands with the check that it is a part of")]
    fn untrusted(&self, path: &str, entries: &[String]) -> Vec<Problem> {
        let exact = |entry: &String| {
            let parts: Vec<&str> = entry.split('/').collect();
            (2..=3).contains(&parts.len()) && parts.iter().all(|part| !part.is_empty() && *part != "*")
        };
        let wrong = entries.iter().filter(|entry| !exact(entry));
        wrong
            .map(|entry| Problem::new(path, format!("{entry:?} is no owner/repository")))
            .collect()
    }

    pub(crate) fn check_interval(&self) -> std::time::Duration {
        std::time::Duration::from_hours(self.check_hours.into())
    }

    pub(crate) fn source_settings(&self) -> sources::Settings {
        sources::Settings {
            disabled: self.disabled.clone(),
            index: self.index.clone(),
            github_api: self.github_api.clone(),
            github_host: self.github_host.clone(),
            repositories: self.repositories.clone(),
            marketplaces: self.marketplaces.clone(),
            skills_sh: self.skills_sh.clone(),
            skills_sh_audit: self.skills_sh_audit.clone(),
            clawhub: self.clawhub.clone(),
            lobehub: self.lobehub.clone(),
            browse_sh: self.browse_sh.clone(),
        }
    }

    pub(crate) fn fetch_settings(&self) -> steward_fetch::Settings {
        let default = steward_fetch::Settings::default();
        steward_fetch::Settings {
            permitted_origins: self.permitted_origins.iter().cloned().collect::<BTreeSet<_>>(),
            max_bytes: u64::from(self.answer_megabytes) << 20,
            timeout_seconds: self.request_seconds.into(),
            requests_per_minute: self.requests_per_minute,
            burst: default.burst.min(self.requests_per_minute),
            ..default
        }
    }

    pub(crate) fn tokens(&self) -> Vec<steward_fetch::Token> {
        let host = Url::parse(&self.github_api)
            .ok()
            .and_then(|url| url.host_str().map(str::to_owned));
        let token = self.github_token.as_ref().zip(host);
        let token = token.map(|(token, host)| steward_fetch::Token {
            host,
            authorization: format!("Bearer {}", token.reveal()),
        });
        let others = self.tokens.iter().filter_map(|other| {
            other.token.as_ref().map(|token| steward_fetch::Token {
                host: other.host.clone(),
                authorization: format!("Bearer {}", token.reveal()),
            })
        });
        token.into_iter().chain(others).collect()
    }
}

fn is_address(text: &str) -> bool {
    Url::parse(text).is_ok_and(|url| {
        matches!(url.scheme(), "https" | "http")
            && url.host_str().is_some()
            && url.username().is_empty()
            && url.password().is_none()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_defaults_are_those_of_the_sources() {
        let config = HubConfig::default();
        assert!(config.validate().is_empty(), "{:?}", config.validate());
        assert_eq!(config.source_settings(), sources::Settings::default());
        assert!(config.tokens().is_empty());
    }

    #[test]
    fn every_wrong_setting_is_reported() {
        let config = HubConfig {
            disabled: vec!["nowhere".to_owned()],
            github_api: "ftp://api.example".to_owned(),
            clawhub: "https://me:secret@clawhub.example".to_owned(),
            permitted_origins: vec!["localhost".to_owned()],
            trusted: vec!["acme".to_owned(), "acme/*".to_owned()],
            teams: vec![TeamTrust {
                team: "Not A Team".to_owned(),
                trusted: vec!["acme/skills".to_owned()],
            }],
            search_seconds: 0,
            quarantine_items: 0,
            ..HubConfig::default()
        };
        let paths: Vec<String> = config.validate().into_iter().map(|problem| problem.path).collect();
        assert_eq!(
            paths,
            [
                "hub.disabled",
                "hub.github_api",
                "hub.clawhub",
                "hub.permitted_origins",
                "hub.teams[0].team",
                "hub.trusted",
                "hub.trusted",
                "hub.search_seconds",
                "hub.quarantine_items",
            ]
        );
    }
}
