//! `steward.skill.v1.CommandService`: what a person types, and what a session opens at its start.

#[cfg(test)]
mod tests;

use std::sync::Arc;

use steward_proto::common::v1 as common;
use steward_proto::skill::v1 as pb;
use steward_proto::skill::v1::command::Kind as PbKind;
use steward_proto::skill::v1::command_service_server::CommandService;
use steward_skill_core::Skills;
use steward_skill_core::commands::{Command, Context, Kind};
use steward_skill_core::index::Entry;
use steward_skill_core::view_skill::Surroundings;
use tonic::{Request, Response, Status};

use super::convert::{variable_to_pb, viewer};
use super::fail;

/// The RPCs on commands.
#[derive(Debug, Clone)]
pub(crate) struct CommandHandlers {
    skills: Arc<Skills>,
}

impl CommandHandlers {
    pub(crate) const fn new(skills: Arc<Skills>) -> Self {
        Self { skills }
    }
}

#[tonic::async_trait]
impl CommandService for CommandHandlers {
    async fn list_commands(
        &self,
        request: Request<pb::ListCommandsRequest>,
    ) -> Result<Response<pb::ListCommandsResponse>, Status> {
        let actor = viewer(&request, "parent", &request.get_ref().parent)?;
        let commands = self.skills.list_commands(&actor).await.map_err(fail)?;
        Ok(Response::new(pb::ListCommandsResponse {
            commands: commands.into_iter().map(command_to_pb).collect(),
        }))
    }

    async fn expand_command(
        &self,
        request: Request<pb::ExpandCommandRequest>,
    ) -> Result<Response<pb::ExpandCommandResponse>, Status> {
        let actor = viewer(&request, "parent", &request.get_ref().parent)?;
        let request = request.into_inner();
        let context = context_from_pb(request.context);
        let expanded = self
            .skills
            .expand_command(&actor, &request.text, &context)
            .await
            .map_err(fail)?;
        Ok(Response::new(pb::ExpandCommandResponse {
            message: expanded.text,
            instruction: expanded.instruction,
            exposures: expanded.opened.into_iter().map(opened_to_pb).collect(),
            problems: expanded.problems,
            missing: expanded
                .missing
                .into_iter()
                .map(|variable| variable_to_pb(variable, false))
                .collect(),
        }))
    }

    async fn preload_skills(
        &self,
        request: Request<pb::PreloadSkillsRequest>,
    ) -> Result<Response<pb::PreloadSkillsResponse>, Status> {
        let actor = viewer(&request, "parent", &request.get_ref().parent)?;
        let request = request.into_inner();
        let context = context_from_pb(request.context);
        let opened = self
            .skills
            .preload_skills(&actor, &request.skills, &context)
            .await
            .map_err(fail)?;
        Ok(Response::new(pb::PreloadSkillsResponse {
            text: opened.text,
            exposures: opened.opened.into_iter().map(opened_to_pb).collect(),
            problems: opened.problems,
            missing: opened
                .missing
                .into_iter()
                .map(|variable| variable_to_pb(variable, false))
                .collect(),
        }))
    }
}

fn context_from_pb(context: Option<pb::CommandContext>) -> Context {
    let context = context.unwrap_or_default();
    Context {
        session: context.session,
        skill_folder: context.skill_folder,
        config: context
            .config
            .into_iter()
            .map(|entry| (entry.key, entry.value))
            .collect(),
        surroundings: Surroundings {
            variables: context.variables.into_iter().collect(),
            known: context.variables_known,
        },
    }
}

fn command_to_pb(command: Command) -> pb::Command {
    let kind = match command.kind {
        Kind::Skill => PbKind::Skill,
        Kind::Bundle => PbKind::Bundle,
        Kind::Own => PbKind::Own,
    };
    pb::Command {
        slug: command.slug,
        kind: kind.into(),
        target: command.target,
        description: command.description,
        candidates: command.candidates,
    }
}

fn opened_to_pb(entry: Entry) -> common::Exposure {
    common::Exposure {
        artifact: entry.resource,
        revision: entry.revision,
        stage: "loaded".to_owned(),
        ..common::Exposure::default()
    }
}
