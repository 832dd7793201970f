//! `AgentService`: turns.

mod event;

use std::pin::Pin;

use futures::{Stream, StreamExt as _};
use steward_base::names::session_name;
use steward_base::{FieldViolations, Integrity};
use steward_orchestrator_core::Error;
use steward_orchestrator_core::session::SessionKey;
use steward_orchestrator_core::turn::{Attachment, ClientResult, UserMessage, check_request_id};
use steward_proto::agent::v1 as pb;
use steward_proto::agent::v1::agent_service_server::AgentService;
use steward_proto::common::v1 as common;
use tonic::{Request, Response, Status};

use super::convert::{integrity_from_pb, session_key};
use super::{agent_status, own_user, person};
use crate::turns::{Following, Input, Turns};

/// Serves [`Turns`].
#[derive(Debug, Clone)]
pub(crate) struct AgentRpc {
    turns: Turns,
}

impl AgentRpc {
    pub(crate) fn new(turns: Turns) -> Self {
        Self { turns }
    }
}

type Streamed<T> = Pin<Box<dyn Stream<Item = Result<T, Status>> + Send>>;

/// A checked request of RunTurn.
struct Checked {
    key: SessionKey,
    request_id: String,
    input: Input,
    steer: bool,
}

#[tonic::async_trait]
impl AgentService for AgentRpc {
    type RunTurnStream = Streamed<pb::RunTurnResponse>;
    type WatchTurnStream = Streamed<pb::WatchTurnResponse>;

    async fn run_turn(&self, request: Request<pb::RunTurnRequest>) -> Result<Response<Self::RunTurnStream>, Status> {
        let person = person(steward_grpc::caller(&request)?)?;
        let Checked {
            key,
            request_id,
            input,
            steer,
        } = checked(request.into_inner()).map_err(agent_status)?;
        let following = match input {
            Input::Message(message) if steer => self.turns.steer(&person, &key, request_id, &message).await,
            input => self.turns.run(person, key, request_id, input).await,
        };
        let events = numbered(following.map_err(agent_status)?);
        let items = events.map(|event| Ok(pb::RunTurnResponse { event: Some(event) }));
        Ok(Response::new(Box::pin(items)))
    }

    async fn watch_turn(
        &self,
        request: Request<pb::WatchTurnRequest>,
    ) -> Result<Response<Self::WatchTurnStream>, Status> {
        let person = person(steward_grpc::caller(&request)?)?;
        let request = request.into_inner();
        let key = required_key("session", &request.session).map_err(agent_status)?;
        let following = self
            .turns
            .watch(&person, &key, &request.turn, request.after_event)
            .await;
        let events = numbered(following.map_err(agent_status)?);
        let items = events.map(|event| Ok(pb::WatchTurnResponse { event: Some(event) }));
        Ok(Response::new(Box::pin(items)))
    }

    async fn interrupt_turn(
        &self,
        request: Request<pb::InterruptTurnRequest>,
    ) -> Result<Response<pb::InterruptTurnResponse>, Status> {
        let person = person(steward_grpc::caller(&request)?)?;
        let key = required_key("session", &request.into_inner().session).map_err(agent_status)?;
        let turn = self.turns.interrupt(&person, &key).await.map_err(agent_status)?;
        Ok(Response::new(pb::InterruptTurnResponse {
            turn: turn.unwrap_or_default(),
        }))
    }

    async fn list_pending_actions(
        &self,
        request: Request<pb::ListPendingActionsRequest>,
    ) -> Result<Response<pb::ListPendingActionsResponse>, Status> {
        let person = person(steward_grpc::caller(&request)?)?;
        own_user(&person, "parent", &request.into_inner().parent).map_err(agent_status)?;
        let pending = self.turns.pending(&person).await.map_err(agent_status)?;
        let actions = pending.into_iter().map(|waits| pb::PendingAction {
            session: session_name(&waits.session.team, &waits.session.id),
            turn: waits.turn,
            calls: waits.calls.into_iter().map(event::pending_call_to_pb).collect(),
        });
        Ok(Response::new(pb::ListPendingActionsResponse {
            actions: actions.collect(),
        }))
    }
}

fn numbered(following: Following) -> impl Stream<Item = pb::TurnEvent> + Send {
    let Following { turn, events } = following;
    events.map(move |(number, happened)| event::event_to_pb(number, &turn, happened))
}

fn required_key(field: &str, name: &str) -> Result<SessionKey, Error> {
    let mut violations = FieldViolations::new();
    session_key(field, name, &mut violations).ok_or(Error::Invalid(violations))
}

fn checked(request: pb::RunTurnRequest) -> Result<Checked, Error> {
    let mut violations = FieldViolations::new();
    let key = session_key("session", &request.session, &mut violations);
    check_request_id(&request.request_id, &mut violations);
    let input = match request.input {
        Some(pb::run_turn_request::Input::UserMessage(message)) => {
            let message = user_message(message);
            message.check(&mut violations);
            Some(Input::Message(message))
        }
        Some(pb::run_turn_request::Input::ToolResults(results)) => {
            if request.steer {
                violations.add("steer", "goes with a user message only");
            }
            let results: Vec<ClientResult> = results.results.into_iter().map(client_result).collect();
            ClientResult::check_all(&results, &mut violations);
            Some(Input::Results(results))
        }
        None => {
            violations.add("input", "must be a user message or tool results");
            None
        }
    };
    match (key, input) {
        (Some(key), Some(input)) if violations.is_empty() => Ok(Checked {
            key,
            request_id: request.request_id,
            input,
            steer: request.steer,
        }),
        _ => Err(Error::Invalid(violations)),
    }
}

fn user_message(message: pb::UserMessage) -> UserMessage {
    let attachments = message.attachments.into_iter().map(|attachment| Attachment {
        integrity: if attachment.integrity == i32::from(common::Integrity::Unspecified) {
            Some(Integrity::External)
        } else {
            integrity_from_pb(attachment.integrity)
        },
        name: attachment.name,
        text: attachment.text,
    });
    UserMessage {
        text: message.text,
        attachments: attachments.collect(),
    }
}

fn client_result(result: pb::ToolResult) -> ClientResult {
    ClientResult {
        integrity: integrity_from_pb(result.integrity),
        call_id: result.call_id,
        content: result.content,
        is_error: result.is_error,
        source: result.source,
    }
}
