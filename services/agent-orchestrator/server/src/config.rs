//! Settings of agent-orchestrator: the section `agent`.

use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use steward_agent::counters::NudgeSettings;
use steward_base::PerTeam;
use steward_runtime::config::Teams;
use steward_runtime::{Problem, Secret};
use url::Url;

/// Settings of agent-orchestrator.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// The model that turns and reviews use.
    pub model: ModelConfig,
    /// Limits of a turn.
    pub turn: TurnConfig,
    /// When reviews become due (`T-3`).
    pub nudges: NudgeConfig,
    /// Seconds between two pushes of revocations to the other services; a change is pushed at once.
    pub revocation_push_seconds: u32,
    /// Most connections that read the access store at the same time.
    pub readers: u32,
    /// What a team has of its own, in a table `[agent.teams.red]`; what is not set there is as above.
    pub teams: Teams<TeamConfig>,
}

steward_runtime::team_settings! {
    /// What a team may set of its own.
    pub struct TeamConfig of Config {
        /// User turns until a memory review is due; 0 turns it off.
        memory_turns: u32 => nudges.memory_turns,
        /// Model calls until a skill review is due; 0 turns it off.
        skill_iterations: u32 => nudges.skill_iterations,
    }
}

/// A protocol between the service and the model's server.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum ModelProvider {
    /// OpenAI chat completions, which most servers speak.
    #[default]
    OpenAi,
    /// Anthropic messages.
    Anthropic,
}

/// How long the provider keeps what it caches of a prefix (`P-5`).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum CacheLife {
    /// Nothing is marked for its cache.
    #[serde(rename = "off")]
    Off,
    /// Five minutes, renewed by each use.
    #[default]
    #[serde(rename = "5m")]
    FiveMinutes,
    /// One hour, renewed by each use; dearer to write.
    #[serde(rename = "1h")]
    OneHour,
}

/// Whether the model reasons before it answers.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Reasoning {
    /// The model does what it does by default.
    #[default]
    Unset,
    /// No reasoning.
    Off,
    /// The model decides how much.
    Adaptive,
    /// At most `thinking_tokens`.
    Budget,
}

/// Choices within the Anthropic messages protocol. A change breaks the prefix of no session, but makes the provider's cache
/// begin anew.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct AnthropicModelConfig {
    /// Whether the model reasons before it answers.
    pub thinking: Reasoning,
    /// Most tokens of reasoning with `thinking = "budget"`; at least 1024 and less than `max_output_tokens`.
    pub thinking_tokens: Option<u32>,
    /// How long the provider keeps what it caches.
    pub cache: CacheLife,
    /// Values of the `anthropic-beta` header.
    pub betas: Vec<String>,
}

/// The model endpoint. Without `base_url` and `name` the service runs, and says so when somebody wants to talk.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct ModelConfig {
    /// Protocol of the server: `openai` for chat completions, `anthropic` for messages.
    pub provider: ModelProvider,
    /// Base URL of the server, for example `https://api.example.com/v1`.
    pub base_url: Option<String>,
    /// The provider's name for the model.
    pub name: Option<String>,
    /// Other models of the same server that a session may use instead.
    pub others: Vec<String>,
    /// Key for the server; local ones often need none.
    pub api_key: Option<Secret<String>>,
    /// Model for reviews at the same server; unset: the same as `name`.
    pub review_model: Option<String>,
    /// Window of the model, in tokens.
    pub context_window: u32,
    /// Most output tokens of one answer; unset: the provider's limit, or 16384 where the protocol wants a number.
    pub max_output_tokens: Option<u32>,
    /// Seconds that opening a connection may take.
    pub connect_seconds: u32,
    /// Seconds without a byte after which an answer counts as dead.
    pub silence_seconds: u32,
    /// Attempts in all for a model call whose error may heal (`T-10`).
    pub attempts: u32,
    /// Milliseconds before the second attempt; doubled for each further one.
    pub retry_base_ms: u32,
    /// Choices within the protocol `anthropic`.
    pub anthropic: AnthropicModelConfig,
}

/// Limits of a turn.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct TurnConfig {
    /// Model calls of one turn (`T-1`).
    pub iterations: u32,
    /// Seconds that a turn's lease lives without a heartbeat: after a crash a session is free again this late (`T-7`).
    pub lease_seconds: u32,
    /// Hours that a turn waits for the client's tool results (`T-8`).
    pub client_hours: u32,
    /// Turns that have ended and whose events are still kept in memory for those who attach again.
    pub kept_turns: u32,
    /// Milliseconds that a turn, or a new session, waits for the team's external memory; more than `memory.provider_ms`.
    pub external_memory_ms: u32,
}

/// When reviews become due.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct NudgeConfig {
    /// User turns until a memory review is due; 0 turns it off.
    pub memory_turns: u32,
    /// Model calls until a skill review is due; 0 turns it off.
    pub skill_iterations: u32,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            model: ModelConfig::default(),
            turn: TurnConfig::default(),
            nudges: NudgeConfig::default(),
            revocation_push_seconds: 10,
            readers: 4,
            teams: Teams::default(),
        }
    }
}

impl Default for ModelConfig {
    fn default() -> Self {
        Self {
            provider: ModelProvider::default(),
            base_url: None,
            name: None,
            others: Vec::new(),
            api_key: None,
            review_model: None,
            context_window: 128_000,
            max_output_tokens: None,
            connect_seconds: 10,
            silence_seconds: 120,
            attempts: 4,
            retry_base_ms: 1_000,
            anthropic: AnthropicModelConfig::default(),
        }
    }
}

impl Default for TurnConfig {
    fn default() -> Self {
        Self {
            iterations: 90,
            lease_seconds: 20,
            client_hours: 24,
            kept_turns: 256,
            external_memory_ms: 2_000,
        }
    }
}

impl Default for NudgeConfig {
    fn default() -> Self {
        Self {
            memory_turns: 10,
            skill_iterations: 10,
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
        let mut problems = self.model.validate();
        for (path, value, least, most) in [
            ("model.context_window", self.model.context_window, 1_000, 100_000_000),
            ("model.connect_seconds", self.model.connect_seconds, 1, 600),
            ("model.silence_seconds", self.model.silence_seconds, 1, 3_600),
            ("model.attempts", self.model.attempts, 1, 10),
            ("turn.iterations", self.turn.iterations, 1, 1_000),
            ("turn.lease_seconds", self.turn.lease_seconds, 1, 300),
            ("turn.client_hours", self.turn.client_hours, 1, 24 * 30),
            ("turn.kept_turns", self.turn.kept_turns, 0, 100_000),
            ("turn.external_memory_ms", self.turn.external_memory_ms, 10, 60_000),
            ("revocation_push_seconds", self.revocation_push_seconds, 1, 3_600),
            ("readers", self.readers, 1, 64),
        ] {
            if !(least..=most).contains(&value) {
                problems.push(Problem::new(path, format!("must be {least} to {most}, is {value}")));
            }
        }
        problems
    }

    /// When reviews become due, team by team.
    pub(crate) fn nudges(&self) -> PerTeam<NudgeSettings> {
        self.teams.of(self, |own| NudgeSettings {
            memory_turns: own.nudges.memory_turns,
            skill_iterations: own.nudges.skill_iterations,
        })
    }

    pub(crate) fn lease(&self) -> Duration {
        Duration::from_secs(self.turn.lease_seconds.into())
    }

    /// How long an external memory is waited for.
    pub(crate) fn external_memory(&self) -> Duration {
        Duration::from_millis(self.turn.external_memory_ms.into())
    }
}

impl ModelConfig {
    /// How to ask a server at `base_url` which models it has: the address and the headers, the key among them. Nothing is
    /// spent by it.
    pub fn list_request(&self, base_url: &str) -> (String, Vec<(&'static str, String)>) {
        let base = base_url.trim().trim_end_matches('/');
        let key = self.api_key.as_ref().map(|key| key.reveal().as_str());
        match self.provider {
            ModelProvider::OpenAi => {
                let headers = key.map(|key| ("authorization", format!("Bearer {key}")));
                (format!("{base}/models"), headers.into_iter().collect())
            }
            ModelProvider::Anthropic => {
                let root = base.strip_suffix("/messages").unwrap_or(base);
                let root = root.strip_suffix("/v1").unwrap_or(root);
                let version = steward_model::AnthropicOptions::default().version;
                let mut headers = vec![("anthropic-version", version)];
                headers.extend(key.map(|key| ("x-api-key", key.to_owned())));
                (format!("{root}/v1/models"), headers)
            }
        }
    }

    fn validate(&self) -> Vec<Problem> {
        let mut problems = Vec::new();
        let given = |value: &Option<String>| value.as_deref().is_some_and(|text| !text.trim().is_empty());
        if given(&self.base_url) != given(&self.name) {
            problems.push(Problem::new("model", "needs both base_url and name, or neither"));
        }
        if self.others.iter().any(|name| name.trim().is_empty()) {
            problems.push(Problem::new("model.others", "must hold names of models"));
        }
        if !self.others.is_empty() && !given(&self.name) {
            problems.push(Problem::new("model.others", "goes with model.name only"));
        }
        problems.extend(self.check_reasoning());
        if let Some(text) = self.base_url.as_deref().filter(|text| !text.trim().is_empty()) {
            match Url::parse(text.trim()) {
                Ok(url) if !matches!(url.scheme(), "http" | "https") || url.host().is_none() => {
                    problems.push(Problem::new("model.base_url", "must begin with http:// or https://"));
                }
                Ok(url) if !url.username().is_empty() || url.password().is_some() => {
                    problems.push(Problem::new(
                        "model.base_url",
                        "must hold no credential; the key goes to model.api_key",
                    ));
                }
                Ok(_) => {}
                // The text may hold what should have been the key, so it is not repeated.
                Err(error) => problems.push(Problem::new("model.base_url", format!("is not a URL: {error}"))),
            }
        }
        problems
    }

    fn check_reasoning(&self) -> Option<Problem> {
        let most = self
            .max_output_tokens
            .unwrap_or(steward_model::AnthropicOptions::default().max_tokens);
        match (self.anthropic.thinking, self.anthropic.thinking_tokens) {
            (Reasoning::Budget, Some(tokens)) if tokens >= 1024 && tokens < most => None,
            (Reasoning::Budget, _) => Some(Problem::new(
                "model.anthropic.thinking_tokens",
                format!("must be at least 1024 and less than the {most} tokens of an answer"),
            )),
            (_, None) => None,
            (_, Some(_)) => Some(Problem::new(
                "model.anthropic.thinking_tokens",
                "goes with thinking = \"budget\" only",
            )),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn paths(config: &Config) -> Vec<String> {
        config.validate().into_iter().map(|problem| problem.path).collect()
    }

    /// `T-3`: each number is a setting, per team.
    #[test]
    fn a_team_has_intervals_of_its_own() {
        let red = TeamConfig {
            memory_turns: Some(3),
            ..TeamConfig::default()
        };
        let config = Config {
            teams: Teams::from_iter([("red".to_owned(), red)]),
            ..Config::default()
        };
        assert_eq!(config.validate(), []);
        let nudges = config.nudges();
        let of = |team: &str| {
            let own = nudges.of(&steward_base::names::TeamId::parse(team).unwrap());
            (own.memory_turns, own.skill_iterations)
        };
        assert_eq!((of("red"), of("blue")), ((3, 10), (10, 10)));
    }

    #[test]
    fn the_defaults_are_those_of_the_rules_and_need_no_model() {
        let config = Config::default();
        assert!(config.validate().is_empty());
        assert_eq!((config.turn.iterations, config.turn.client_hours), (90, 24));
        assert_eq!((config.nudges.memory_turns, config.nudges.skill_iterations), (10, 10));
    }

    #[test]
    fn every_wrong_setting_is_reported() {
        let mut config = Config::default();
        config.model.base_url = Some("https://me:key@example.com/v1".to_owned());
        config.turn.lease_seconds = 0;
        config.readers = 0;
        assert_eq!(
            paths(&config),
            ["model", "model.base_url", "turn.lease_seconds", "readers"]
        );
        config.model.name = Some("m".to_owned());
        config.model.base_url = Some("ftp://example.com".to_owned());
        assert_eq!(paths(&config)[0], "model.base_url");
    }

    #[test]
    fn reasoning_and_other_models_need_what_belongs_to_them() {
        let mut config = Config::default();
        config.model.others = vec!["quick".to_owned(), " ".to_owned()];
        config.model.anthropic.thinking = Reasoning::Budget;
        let budget = "model.anthropic.thinking_tokens";
        assert_eq!(paths(&config), ["model.others", "model.others", budget]);
        config.model.others.clear();
        for (tokens, wrong) in [
            (Some(1_023), true),
            (Some(16_384), true),
            (Some(1_024), false),
            (None, true),
        ] {
            config.model.anthropic.thinking_tokens = tokens;
            assert_eq!(paths(&config).contains(&budget.to_owned()), wrong, "{tokens:?}");
        }
        config.model.anthropic.thinking = Reasoning::Adaptive;
        config.model.anthropic.thinking_tokens = Some(2_000);
        assert_eq!(paths(&config), [budget]);
    }

    #[test]
    fn models_are_listed_as_the_protocol_wants_it() {
        let config: ModelConfig =
            serde_json::from_value(serde_json::json!({"provider": "anthropic", "api_key": "k"})).unwrap();
        for base in [
            "https://a.example",
            "https://a.example/v1/",
            "https://a.example/v1/messages",
        ] {
            let (url, headers) = config.list_request(base);
            assert_eq!(url, "https://a.example/v1/models");
            assert!(headers.contains(&("x-api-key", "k".to_owned())), "{headers:?}");
        }
        let open = ModelConfig {
            provider: ModelProvider::OpenAi,
            ..config
        };
        let (url, headers) = open.list_request("https://a.example/v1");
        assert_eq!(url, "https://a.example/v1/models");
        assert_eq!(headers, [("authorization", "Bearer k".to_owned())]);
    }

    #[test]
    fn a_key_is_never_shown() {
        let config: Config =
            serde_json::from_value(serde_json::json!({"model": {"api_key": "sk-not-to-be-seen"}})).unwrap();
        let shown = format!("{config:?} {}", serde_json::to_string(&config).unwrap());
        assert!(!shown.contains("sk-not-to-be-seen"));
    }
}
