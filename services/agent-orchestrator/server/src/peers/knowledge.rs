//! What a new session is told: the memory snapshot, the skill index, skills that it opens at its start, and what the team's
//! external memory adds; read with a credential that permits nothing else.

use std::fmt;
use std::time::Duration;

use async_trait::async_trait;
use serde_json::value::RawValue;
use steward_base::names::{SessionId, session_name, user_name};
use steward_client::{CommandClient, Credentials, MemoryClient, ProviderClient, SkillClient, Wire};
use steward_model::ToolSpec;
use steward_orchestrator_core::Error;
use steward_orchestrator_core::session::Exposure;
use steward_proto::{common, memory, skill};
use tokio::time::timeout;

use super::failed;
use crate::signer::{Minter, Person};

/// What is known of a person at the beginning of a session.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Known {
    /// The memory snapshot, byte for byte; empty without entries.
    pub(crate) memory: String,
    /// The skill index, byte for byte; empty without skills.
    pub(crate) skills: String,
    /// The skills that the session opens, with their text; empty without any.
    pub(crate) preloaded: String,
    /// What all of them show.
    pub(crate) exposures: Vec<Exposure>,
}

/// What a session is to be told of.
#[derive(Debug, Clone, Copy)]
pub(crate) struct About<'a> {
    pub(crate) person: &'a Person,
    pub(crate) session: &'a SessionId,
    /// May be empty.
    pub(crate) project: &'a str,
    /// Names of the tools that it offers.
    pub(crate) tools: &'a [String],
    /// Where the client's tools run.
    pub(crate) platform: &'a str,
    /// Checks of memory entries that failed in the client's workspace.
    pub(crate) failed_checks: &'a [String],
    /// Skills that it opens.
    pub(crate) preloaded: &'a [String],
}

/// What the team's external memory adds to a session.
#[derive(Debug, Clone, Default)]
pub(crate) struct Offered {
    /// Whether there is one, even if it does not answer now.
    pub(crate) there: bool,
    /// Its block for the prompt; may be empty.
    pub(crate) block: String,
    /// Its tools, none with the name of a built-in one.
    pub(crate) tools: Vec<ToolSpec>,
}

/// Reads what is known.
#[async_trait]
pub(crate) trait Knowledge: fmt::Debug + Send + Sync {
    /// What is in memory and in the library.
    async fn known(&self, about: About<'_>) -> Result<Known, Error>;

    /// Begins the session with the external memory. One that is silent, or a store that is, adds nothing: a session never
    /// fails for it (`M-15`).
    async fn provider(&self, person: &Person, session: &SessionId, project: &str) -> Offered;
}

/// memory-service and skill-registry.
#[derive(Debug, Clone)]
pub(crate) struct RemoteKnowledge {
    memory: MemoryClient,
    provider: ProviderClient,
    skills: SkillClient,
    commands: CommandClient,
    minter: Minter,
    /// How long a new session waits for the external memory.
    patience: Duration,
}

impl RemoteKnowledge {
    pub(crate) fn new(memory: Wire, skills: Wire, minter: Minter, patience: Duration) -> Self {
        Self {
            memory: MemoryClient::new(memory.clone()),
            provider: ProviderClient::new(memory),
            skills: SkillClient::new(skills.clone()),
            commands: CommandClient::new(skills),
            minter,
            patience,
        }
    }

    fn credentials<const N: usize>(&self, person: &Person, session: &SessionId, may: [&str; N]) -> Credentials {
        let capabilities = may.map(str::to_owned).into();
        self.minter.turn(person, session, "session-start", capabilities)
    }

    /// The opened skills; nothing is asked where none are wanted.
    async fn preload(&self, about: About<'_>) -> Result<skill::v1::PreloadSkillsResponse, Error> {
        if about.preloaded.is_empty() {
            return Ok(skill::v1::PreloadSkillsResponse::default());
        }
        let credentials = self.credentials(about.person, about.session, ["skill_view"]);
        let commands = self.commands.clone().with_credentials(credentials);
        let request = skill::v1::PreloadSkillsRequest {
            parent: user_name(&about.person.team, &about.person.user),
            skills: about.preloaded.to_vec(),
            context: Some(skill::v1::CommandContext {
                session: about.session.to_string(),
                ..skill::v1::CommandContext::default()
            }),
        };
        let answer = commands.preload_skills(request).await;
        answer.map_err(|error| failed("skill-registry", "open the skills of a session", error))
    }
}

#[async_trait]
impl Knowledge for RemoteKnowledge {
    async fn known(&self, about: About<'_>) -> Result<Known, Error> {
        let credentials = self.credentials(about.person, about.session, ["memory_snapshot", "skill_index"]);
        let memory = self.memory.clone().with_credentials(credentials.clone());
        let skills = self.skills.clone().with_credentials(credentials);
        let user = user_name(&about.person.team, &about.person.user);
        let snapshot = memory.get_snapshot(memory::v1::GetSnapshotRequest {
            user: user.clone(),
            project: about.project.to_owned(),
            failed_checks: about.failed_checks.to_vec(),
        });
        let index = skills.get_index(skill::v1::GetIndexRequest {
            user,
            tools: about.tools.to_vec(),
            platform: about.platform.to_owned(),
            environments: Vec::new(),
        });
        // All or nothing: a session that begins without what is known would be that way for good.
        let (snapshot, index, opened) = tokio::join!(snapshot, index, self.preload(about));
        let snapshot = snapshot.map_err(|error| failed("memory-service", "read the memory snapshot", error))?;
        let index = index.map_err(|error| failed("skill-registry", "read the skill index", error))?;
        let opened = opened?;
        let exposures = snapshot
            .exposures
            .into_iter()
            .chain(index.exposures)
            .chain(opened.exposures);
        Ok(Known {
            memory: snapshot.text,
            skills: index.text,
            preloaded: opened.text,
            exposures: exposures.map(exposure_from_pb).collect(),
        })
    }

    async fn provider(&self, person: &Person, session: &SessionId, project: &str) -> Offered {
        let credentials = self.credentials(person, session, ["memory_provider"]);
        let provider = self.provider.clone().with_credentials(credentials);
        let request = memory::v1::OpenProviderSessionRequest {
            user: user_name(&person.team, &person.user),
            session: session_name(&person.team, session),
            project: project.to_owned(),
        };
        let answer = match timeout(self.patience, provider.open_provider_session(request)).await {
            Ok(Ok(answer)) => answer,
            Ok(Err(error)) => {
                tracing::warn!(error.reason = error.reason, "no external memory could be asked for");
                return Offered::default();
            }
            Err(_elapsed) => {
                tracing::warn!("no external memory could be asked for in time");
                return Offered::default();
            }
        };
        Offered {
            there: answer.status() != memory::v1::ProviderStatus::None,
            block: answer.system_prompt_block,
            tools: answer.tools.into_iter().filter_map(tool_from_pb).collect(),
        }
    }
}

/// A tool of the external memory; one whose schema is none is left out.
fn tool_from_pb(tool: memory::v1::ProviderTool) -> Option<ToolSpec> {
    match RawValue::from_string(tool.parameters_json) {
        Ok(input_schema) => Some(ToolSpec {
            name: tool.name,
            description: tool.description,
            input_schema,
        }),
        Err(error) => {
            tracing::warn!(tool = tool.name, %error, "a tool of the external memory has no schema and is left out");
            None
        }
    }
}

pub(super) fn exposure_from_pb(exposure: common::v1::Exposure) -> Exposure {
    Exposure {
        artifact: exposure.artifact,
        revision: exposure.revision,
        stage: exposure.stage,
        assignment_unit: exposure.assignment_unit,
        arm: exposure.arm,
        propensity: exposure.propensity,
    }
}
