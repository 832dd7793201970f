//! What a new session is told: the memory snapshot and the skill index, read with a credential that permits nothing else.

use std::fmt;

use async_trait::async_trait;
use steward_base::names::{SessionId, user_name};
use steward_client::{MemoryClient, SkillClient};
use steward_orchestrator_core::Error;
use steward_orchestrator_core::session::Exposure;
use steward_proto::{common, memory, skill};

use super::failed;
use crate::signer::{Minter, Person};

/// What is known of a person at the beginning of a session.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Known {
    /// The memory snapshot, byte for byte; empty without entries.
    pub(crate) memory: String,
    /// The skill index, byte for byte; empty without skills.
    pub(crate) skills: String,
    /// What both show.
    pub(crate) exposures: Vec<Exposure>,
}

/// Reads what is known.
#[async_trait]
pub(crate) trait Knowledge: fmt::Debug + Send + Sync {
    /// For a session that offers `tools`, with the client's tools on `platform`.
    async fn known(
        &self,
        person: &Person,
        session: &SessionId,
        project: &str,
        tools: Vec<String>,
        platform: &str,
    ) -> Result<Known, Error>;
}

/// memory-service and skill-registry.
#[derive(Debug, Clone)]
pub(crate) struct RemoteKnowledge {
    memory: MemoryClient,
    skills: SkillClient,
    minter: Minter,
}

impl RemoteKnowledge {
    pub(crate) fn new(memory: MemoryClient, skills: SkillClient, minter: Minter) -> Self {
        Self { memory, skills, minter }
    }
}

#[async_trait]
impl Knowledge for RemoteKnowledge {
    async fn known(
        &self,
        person: &Person,
        session: &SessionId,
        project: &str,
        tools: Vec<String>,
        platform: &str,
    ) -> Result<Known, Error> {
        let capabilities = ["memory_snapshot", "skill_index"].map(str::to_owned).into();
        let credentials = self.minter.turn(person, session, "session-start", capabilities);
        let memory = self.memory.clone().with_credentials(credentials.clone());
        let skills = self.skills.clone().with_credentials(credentials);
        let user = user_name(&person.team, &person.user);
        let snapshot = memory.get_snapshot(memory::v1::GetSnapshotRequest {
            user: user.clone(),
            project: project.to_owned(),
            failed_checks: Vec::new(),
        });
        let index = skills.get_index(skill::v1::GetIndexRequest {
            user,
            tools,
            platform: platform.to_owned(),
            environments: Vec::new(),
        });
        // Both or neither: a session that begins without what is known would be that way for good.
        let (snapshot, index) = tokio::join!(snapshot, index);
        let snapshot = snapshot.map_err(|error| failed("memory-service", "read the memory snapshot", error))?;
        let index = index.map_err(|error| failed("skill-registry", "read the skill index", error))?;
        let exposures = snapshot.exposures.into_iter().chain(index.exposures);
        Ok(Known {
            memory: snapshot.text,
            skills: index.text,
            exposures: exposures.map(exposure_from_pb).collect(),
        })
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
