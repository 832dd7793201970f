//! `steward.memory.v1.ProviderService`: decodes, asks the desk, encodes. No error of a provider becomes an error here.

use steward_base::names::{parse_session, parse_user};
use steward_base::{Caller, FieldViolations};
use steward_memory_core::provider::{Event, Scope, ToolCall};
use steward_memory_core::{Error, Owner};
use steward_proto::memory::v1 as pb;
use steward_proto::memory::v1::provider_service_server::ProviderService;
use tonic::{Request, Response, Status};

use super::convert::checked;
use super::fail;
use crate::providers::{Asked, Desk, Queued};

/// Longest text of a request, in characters.
const MOST_TEXT: usize = 1_000_000;

/// The RPCs around external memories.
#[derive(Debug, Clone)]
pub(crate) struct ProviderHandlers {
    desk: Desk,
}

impl ProviderHandlers {
    pub(crate) const fn new(desk: Desk) -> Self {
        Self { desk }
    }
}

/// Whose session it is, if it is the caller's.
fn scope(caller: &Caller, user: &str, session: &str, text: &str) -> Result<Scope, Error> {
    let mut violations = FieldViolations::new();
    let person = violations.take("user", parse_user(user));
    let named = violations.take("session", parse_session(session));
    if text.chars().count() > MOST_TEXT {
        violations.add("text", format!("must have at most {MOST_TEXT} characters"));
    }
    violations.into_result()?;
    let (team, user) = checked(person, "user")?;
    let (of, session) = checked(named, "session")?;
    if caller.team.as_ref() != Some(&team) || caller.user.as_ref() != Some(&user) {
        return Err(Error::StoreNotFound {
            store: Owner::Person(user).name(&team),
        });
    }
    let bound = caller.session().is_none_or(|bound| bound == session.as_str());
    if of != team || !bound {
        return Err(Error::invalid(
            "session",
            "must be a session of the user, and the one of the credential",
        ));
    }
    Ok(Scope { team, user, session })
}

fn split<T>(asked: Asked<T>) -> (pb::ProviderStatus, Option<T>) {
    match asked {
        Asked::Answered(answer) => (pb::ProviderStatus::Answered, Some(answer)),
        Asked::None => (pb::ProviderStatus::None, None),
        Asked::Unavailable => (pb::ProviderStatus::Unavailable, None),
    }
}

/// What became of a write: of one that is waited for when it was made, else as soon as it stands in line.
async fn became(queued: Asked<Queued>, wait: bool) -> pb::ProviderStatus {
    match queued {
        Asked::Answered(queued) if wait => split(queued.made().await).0,
        queued => split(queued).0,
    }
}

fn event_from_pb(event: pb::ProviderEvent, detail: String) -> Result<Event, Error> {
    Ok(match event {
        pb::ProviderEvent::Unspecified => return Err(Error::invalid("event", "must be given")),
        pb::ProviderEvent::TurnStart => Event::TurnStart(detail),
        pb::ProviderEvent::PreCompress => Event::PreCompress(detail),
        pb::ProviderEvent::MemoryWrite => Event::MemoryWrite(detail),
        pb::ProviderEvent::Delegation => Event::Delegation(detail),
        pb::ProviderEvent::SessionEnd => Event::SessionEnd,
    })
}

#[tonic::async_trait]
impl ProviderService for ProviderHandlers {
    async fn open_provider_session(
        &self,
        request: Request<pb::OpenProviderSessionRequest>,
    ) -> Result<Response<pb::OpenProviderSessionResponse>, Status> {
        let caller = steward_grpc::caller(&request)?.clone();
        let request = request.into_inner();
        let scope = scope(&caller, &request.user, &request.session, "").map_err(fail)?;
        let (status, offer) = split(self.desk.open(&caller, &scope).await);
        let offer = offer.unwrap_or_default();
        let tools = offer.tools.into_iter().map(|tool| pb::ProviderTool {
            name: tool.name,
            description: tool.description,
            parameters_json: tool.parameters_json,
        });
        Ok(Response::new(pb::OpenProviderSessionResponse {
            status: status.into(),
            system_prompt_block: offer.block,
            tools: tools.collect(),
        }))
    }

    async fn recall_from_provider(
        &self,
        request: Request<pb::RecallFromProviderRequest>,
    ) -> Result<Response<pb::RecallFromProviderResponse>, Status> {
        let caller = steward_grpc::caller(&request)?.clone();
        let request = request.into_inner();
        let scope = scope(&caller, &request.user, &request.session, &request.message).map_err(fail)?;
        let (status, block) = split(self.desk.recall(&caller, &scope, &request.message).await);
        Ok(Response::new(pb::RecallFromProviderResponse {
            status: status.into(),
            block: block.unwrap_or_default(),
        }))
    }

    async fn sync_turn_to_provider(
        &self,
        request: Request<pb::SyncTurnToProviderRequest>,
    ) -> Result<Response<pb::SyncTurnToProviderResponse>, Status> {
        let caller = steward_grpc::caller(&request)?.clone();
        let request = request.into_inner();
        let scope = scope(&caller, &request.user, &request.session, &request.message).map_err(fail)?;
        let queued = self
            .desk
            .sync(&caller, &scope, request.turn, &request.message, &request.answer);
        let is_queued = matches!(queued, Asked::Answered(_));
        Ok(Response::new(pb::SyncTurnToProviderResponse {
            queued: is_queued,
            status: became(queued, request.wait).await.into(),
        }))
    }

    async fn call_provider_tool(
        &self,
        request: Request<pb::CallProviderToolRequest>,
    ) -> Result<Response<pb::CallProviderToolResponse>, Status> {
        let caller = steward_grpc::caller(&request)?.clone();
        let request = request.into_inner();
        let scope = scope(&caller, &request.user, &request.session, &request.arguments_json).map_err(fail)?;
        let call = ToolCall {
            tool: request.tool,
            arguments_json: request.arguments_json,
            id: request.call,
        };
        let (status, reply) = split(self.desk.call(&caller, &scope, &call).await);
        let (content, is_error) = reply.map_or_else(
            || {
                (
                    "The external memory does not answer; go on without it.".to_owned(),
                    true,
                )
            },
            |reply| (reply.content, reply.is_error),
        );
        Ok(Response::new(pb::CallProviderToolResponse {
            status: status.into(),
            content,
            is_error,
        }))
    }

    async fn tell_provider(
        &self,
        request: Request<pb::TellProviderRequest>,
    ) -> Result<Response<pb::TellProviderResponse>, Status> {
        let caller = steward_grpc::caller(&request)?.clone();
        let request = request.into_inner();
        let scope = scope(&caller, &request.user, &request.session, &request.detail).map_err(fail)?;
        let kind = pb::ProviderEvent::try_from(request.event).unwrap_or(pb::ProviderEvent::Unspecified);
        let event = event_from_pb(kind, request.detail).map_err(fail)?;
        let (status, text) = if matches!(event, Event::PreCompress(_)) {
            split(self.desk.before_compression(&caller, &scope, &event).await)
        } else {
            let queued = self.desk.tell(&caller, &scope, event, request.event_id);
            (became(queued, request.wait).await, None)
        };
        Ok(Response::new(pb::TellProviderResponse {
            status: status.into(),
            text: text.unwrap_or_default(),
        }))
    }
}
