//! The configuration of a whole installation: one section per service, the same shape for one process and for five, so
//! that a file moves between them unchanged.

use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use steward_runtime::config::{Problem, Validate};

/// Where the single binary listens: loopback, so that nothing is open to a network unless someone says so.
pub const DEFAULT_LISTEN: &str = "127.0.0.1:7400";

/// Everything that can be set. Layers: these defaults, then a TOML file, then `STEWARD__SECTION__KEY`, then flags.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// Where the process listens and keeps its data.
    pub server: ServerConfig,
    /// How credentials are verified.
    pub auth: steward_grpc::AuthConfig,
    /// The audit log that each process keeps.
    pub audit: steward_audit::Config,
    /// Logs and traces.
    pub telemetry: steward_runtime::telemetry::Config,
    /// Where the other services are, when they run as processes of their own.
    pub peers: PeersConfig,
    /// agent-orchestrator.
    pub agent: steward_orchestrator::Config,
    /// skill-registry.
    pub skills: steward_skill::Config,
    /// memory-service.
    pub memory: steward_memory::Config,
    /// recall-service.
    pub recall: steward_recall::Config,
    /// curator-worker.
    pub learning: steward_curator::Config,
}

/// Where the process listens and keeps its data.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct ServerConfig {
    /// `host:port`, or `unix:/path`. Port 0 takes a free one; the ready line says which.
    pub listen: String,
    /// Folder with everything that is kept; the user's own data folder by default. Local disks only.
    pub data_dir: Option<PathBuf>,
    /// Seconds that a soft stop waits for running calls and jobs.
    pub stop_seconds: u64,
}

impl Default for ServerConfig {
    fn default() -> Self {
        Self {
            listen: DEFAULT_LISTEN.to_owned(),
            data_dir: None,
            stop_seconds: 25,
        }
    }
}

/// Addresses of the other services. Not used by the process that holds all of them.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct PeersConfig {
    /// recall-service.
    pub recall: String,
    /// memory-service.
    pub memory: String,
    /// skill-registry.
    pub skills: String,
    /// agent-orchestrator.
    pub agent: String,
}

impl Default for PeersConfig {
    fn default() -> Self {
        let at = |host: &str, port: u16| format!("http://{host}:{port}");
        Self {
            recall: at("recall-service", 7401),
            memory: at("memory-service", 7402),
            skills: at("skill-registry", 7403),
            agent: at("agent-orchestrator", 7404),
        }
    }
}

impl Config {
    /// The data folder in effect.
    pub fn data_dir(&self) -> PathBuf {
        self.server
            .data_dir
            .clone()
            .unwrap_or_else(steward_cli::connect::default_data_dir)
    }
}

impl Validate for Config {
    fn validate(&self) -> Vec<Problem> {
        let mut problems = Vec::new();
        let mut section = |name: &str, found: Vec<Problem>| {
            problems.extend(found.into_iter().map(|problem| problem.within(name)));
        };
        section("server", self.server.validate());
        section("auth", self.auth.validate());
        section("audit", self.audit.validate());
        section("telemetry", self.telemetry.validate());
        section("agent", self.agent.validate());
        section("skills", self.skills.validate());
        section("memory", self.memory.validate());
        section("recall", self.recall.validate());
        section("learning", self.learning.validate());
        problems
    }
}

impl ServerConfig {
    fn validate(&self) -> Vec<Problem> {
        let mut problems = Vec::new();
        let has_port = self
            .listen
            .rsplit_once(':')
            .is_some_and(|(_, port)| port.parse::<u16>().is_ok());
        if !has_port && !self.listen.starts_with("unix:/") {
            problems.push(Problem::new("listen", "must be host:port or unix:/path"));
        }
        if self.stop_seconds == 0 {
            problems.push(Problem::new("stop_seconds", "must be at least 1"));
        }
        problems
    }
}
