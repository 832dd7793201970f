//! `SessionService`: sessions as people see them.

use steward_base::names::session_name;
use steward_base::{FieldViolations, Integrity};
use steward_orchestrator_core::Error;
use steward_orchestrator_core::session::{
    ClientToolSpec, ContextFile, Environment, Message, Rewind, Said, Session, SessionKey, Setup,
};
use steward_proto::agent::v1 as pb;
use steward_proto::agent::v1::session_service_server::SessionService;
use steward_proto::common::v1 as common;
use tonic::{Request, Response, Status};

use super::convert::{exposure_to_pb, integrity_from_pb, session_key, timestamp_to_pb, usage_to_pb};
use super::{agent_status, own_user, person};
use crate::sessions::{Branch, Change, Sessions, Wanted};

/// Serves [`Sessions`].
#[derive(Debug, Clone)]
pub(crate) struct SessionRpc {
    sessions: Sessions,
}

impl SessionRpc {
    pub(crate) fn new(sessions: Sessions) -> Self {
        Self { sessions }
    }
}

fn key(field: &str, name: &str) -> Result<SessionKey, Error> {
    let mut violations = FieldViolations::new();
    session_key(field, name, &mut violations).ok_or(Error::Invalid(violations))
}

#[tonic::async_trait]
impl SessionService for SessionRpc {
    async fn create_session(
        &self,
        request: Request<pb::CreateSessionRequest>,
    ) -> Result<Response<pb::CreateSessionResponse>, Status> {
        let person = person(steward_grpc::caller(&request)?)?;
        let request = request.into_inner();
        own_user(&person, "parent", &request.parent).map_err(agent_status)?;
        let session = self
            .sessions
            .create(&person, wanted(request))
            .await
            .map_err(agent_status)?;
        Ok(Response::new(pb::CreateSessionResponse {
            session: Some(session_to_pb(session)),
        }))
    }

    async fn get_session(
        &self,
        request: Request<pb::GetSessionRequest>,
    ) -> Result<Response<pb::GetSessionResponse>, Status> {
        let person = person(steward_grpc::caller(&request)?)?;
        let key = key("name", &request.into_inner().name).map_err(agent_status)?;
        let session = self.sessions.get(&person, &key).await.map_err(agent_status)?;
        Ok(Response::new(pb::GetSessionResponse {
            session: Some(session_to_pb(session)),
        }))
    }

    async fn update_session(
        &self,
        request: Request<pb::UpdateSessionRequest>,
    ) -> Result<Response<pb::UpdateSessionResponse>, Status> {
        let person = person(steward_grpc::caller(&request)?)?;
        let (key, change) = change(request.into_inner()).map_err(agent_status)?;
        let session = self
            .sessions
            .update(&person, &key, change)
            .await
            .map_err(agent_status)?;
        Ok(Response::new(pb::UpdateSessionResponse {
            session: Some(session_to_pb(session)),
        }))
    }

    async fn list_sessions(
        &self,
        request: Request<pb::ListSessionsRequest>,
    ) -> Result<Response<pb::ListSessionsResponse>, Status> {
        let person = person(steward_grpc::caller(&request)?)?;
        let request = request.into_inner();
        own_user(&person, "parent", &request.parent).map_err(agent_status)?;
        let page = self
            .sessions
            .list(&person, request.page_size, &request.page_token)
            .await;
        let page = page.map_err(agent_status)?;
        Ok(Response::new(pb::ListSessionsResponse {
            sessions: page.sessions.into_iter().map(session_to_pb).collect(),
            next_page_token: page.next_page_token,
        }))
    }

    async fn delete_session(
        &self,
        request: Request<pb::DeleteSessionRequest>,
    ) -> Result<Response<pb::DeleteSessionResponse>, Status> {
        let person = person(steward_grpc::caller(&request)?)?;
        let request = request.into_inner();
        let key = key("name", &request.name).map_err(agent_status)?;
        self.sessions
            .delete(&person, &key, &request.etag)
            .await
            .map_err(agent_status)?;
        Ok(Response::new(pb::DeleteSessionResponse {}))
    }

    async fn rewind_session(
        &self,
        request: Request<pb::RewindSessionRequest>,
    ) -> Result<Response<pb::RewindSessionResponse>, Status> {
        let person = person(steward_grpc::caller(&request)?)?;
        let request = request.into_inner();
        let key = key("name", &request.name).map_err(agent_status)?;
        let rewind = Rewind {
            to_seq: request.to_seq,
            etag: request.etag,
            request_id: request.request_id,
        };
        let session = self.sessions.rewind(&person, &key, rewind).await;
        Ok(Response::new(pb::RewindSessionResponse {
            session: Some(session_to_pb(session.map_err(agent_status)?)),
        }))
    }

    async fn fork_session(
        &self,
        request: Request<pb::ForkSessionRequest>,
    ) -> Result<Response<pb::ForkSessionResponse>, Status> {
        let person = person(steward_grpc::caller(&request)?)?;
        let request = request.into_inner();
        let key = key("name", &request.name).map_err(agent_status)?;
        let branch = Branch {
            through_seq: request.through_seq,
            title: request.title,
            request_id: request.request_id,
        };
        let session = self.sessions.fork(&person, &key, branch).await;
        Ok(Response::new(pb::ForkSessionResponse {
            session: Some(session_to_pb(session.map_err(agent_status)?)),
        }))
    }

    async fn list_session_messages(
        &self,
        request: Request<pb::ListSessionMessagesRequest>,
    ) -> Result<Response<pb::ListSessionMessagesResponse>, Status> {
        let person = person(steward_grpc::caller(&request)?)?;
        let request = request.into_inner();
        let key = key("parent", &request.parent).map_err(agent_status)?;
        let page = self
            .sessions
            .messages(&person, &key, request.page_size, &request.page_token)
            .await;
        let page = page.map_err(agent_status)?;
        Ok(Response::new(pb::ListSessionMessagesResponse {
            messages: page.messages.into_iter().map(message_to_pb).collect(),
            next_page_token: page.next_page_token,
        }))
    }
}

fn wanted(request: pb::CreateSessionRequest) -> Wanted {
    let session = request.session.unwrap_or_default();
    Wanted {
        title: session.title,
        project: session.project,
        model: session.model,
        skip_review: session.skip_review,
        setup: setup(request.setup.unwrap_or_default()),
        request_id: request.request_id,
    }
}

fn change(request: pb::UpdateSessionRequest) -> Result<(SessionKey, Change), Error> {
    let mut violations = FieldViolations::new();
    let session = request.session.unwrap_or_default();
    let key = session_key("session.name", &session.name, &mut violations);
    let mut change = Change {
        etag: session.etag,
        request_id: request.request_id,
        ..Change::default()
    };
    let paths = request.update_mask.unwrap_or_default().paths;
    if paths.is_empty() {
        violations.add("update_mask", "must name what is to change");
    }
    for path in &paths {
        match path.as_str() {
            "title" => change.title = Some(session.title.clone()),
            "model" => change.model = Some(session.model.clone()),
            "client_tools" => {
                change.client_tools = Some(request.client_tools.iter().cloned().map(client_tool).collect());
            }
            _ => violations.add("update_mask", "may name `title`, `model` and `client_tools`"),
        }
    }
    if change.client_tools.is_none() && !request.client_tools.is_empty() {
        violations.add("client_tools", "must be in `update_mask` to count");
    }
    violations.into_result()?;
    let key = key.ok_or_else(|| Error::field("session.name", "must name a session"))?;
    Ok((key, change))
}

fn setup(setup: pb::SessionSetup) -> Setup {
    let files = setup.context_files.into_iter().map(|file| ContextFile {
        path: file.path,
        text: file.text,
    });
    let environment = setup.environment.unwrap_or_default();
    Setup {
        system_message: setup.system_message,
        context_files: files.collect(),
        client_tools: setup.client_tools.into_iter().map(client_tool).collect(),
        environment: Environment {
            os: environment.os,
            home: environment.home,
            working_dir: environment.working_dir,
            shell: environment.shell,
            variables: environment.variables_known.then_some(environment.variables),
        },
        platform_hint: setup.platform_hint,
        failed_checks: setup.failed_checks,
        preload_skills: setup.preload_skills,
    }
}

fn client_tool(tool: pb::ClientTool) -> ClientToolSpec {
    let integrity = if tool.integrity == i32::from(common::Integrity::Unspecified) {
        Some(Integrity::UnknownTool)
    } else {
        integrity_from_pb(tool.integrity)
    };
    ClientToolSpec {
        name: tool.name,
        description: tool.description,
        input_schema: tool.input_schema_json,
        integrity,
    }
}

fn session_to_pb(session: Session) -> pb::Session {
    pb::Session {
        name: session_name(&session.key.team, &session.key.id),
        user: steward_base::names::user_name(&session.key.team, &session.user),
        title: session.title,
        project: session.project,
        model: session.model,
        system_prompt: session.system_prompt.to_string(),
        tools_json: session.tools_json.to_string(),
        skip_review: session.skip_review,
        usage: Some(usage_to_pb(session.usage)),
        unplanned_prefix_breaks: session.prefix.unplanned_breaks,
        last_seq: session.last_seq,
        open_turn: session.open_turn.unwrap_or_default(),
        exposures: session.exposures.into_iter().map(exposure_to_pb).collect(),
        create_time: Some(timestamp_to_pb(session.created)),
        last_active_time: Some(timestamp_to_pb(session.last_active)),
        turns_since_memory: session.counters.turns_since_memory,
        iterations_since_skill: session.counters.iterations_since_skill,
        planned_prefix_breaks: session.prefix.planned_breaks,
        last_prefix_break_reason: session.prefix.last_break_reason,
        etag: session.etag,
    }
}

fn message_to_pb(message: Message) -> pb::SessionMessage {
    let (role, tools, is_error) = match message.body.said {
        Said::User => ("user", Vec::new(), false),
        Said::Assistant { calls } => ("assistant", calls.into_iter().map(|call| call.name).collect(), false),
        Said::Tool { tool, is_error, .. } => ("tool", vec![tool], is_error),
    };
    pb::SessionMessage {
        seq: message.seq,
        role: role.to_owned(),
        text: message.body.text,
        tools,
        is_error,
        turn: message.body.turn,
        create_time: Some(timestamp_to_pb(message.created)),
    }
}
