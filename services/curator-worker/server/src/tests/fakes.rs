//! recall, memory, skills and the orchestrator, as far as a review sees them.
#![expect(
    clippy::disallowed_methods,
    reason = "the fakes answer with statuses of their own making"
)]

mod unused;

use std::collections::{HashMap, VecDeque};
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard};

use futures::Stream;
use steward_client::Wire;
use steward_proto::access::v1 as access;
use steward_proto::access::v1::access_service_server::AccessServiceServer;
use steward_proto::agent::v1 as agent;
use steward_proto::agent::v1::generate_response::Item;
use steward_proto::agent::v1::model_service_server::{ModelService, ModelServiceServer};
use steward_proto::common::v1 as common;
use steward_proto::memory::v1 as memory;
use steward_proto::memory::v1::memory_service_server::MemoryServiceServer;
use steward_proto::recall::v1 as recall;
use steward_proto::recall::v1::session_store_service_server::SessionStoreServiceServer;
use steward_proto::skill::v1 as skill;
use steward_proto::skill::v1::skill_service_server::SkillServiceServer;
use tokio::sync::Notify;
use tonic::{Code, Request, Response, Status};
use tonic_types::{ErrorDetails, StatusExt as _};

const TOOLS: &str = r#"[{"name":"memory","description":"","input_schema":{}},{"name":"skill_manage","description":"","input_schema":{}}]"#;

/// One answer of the model.
#[derive(Debug, Clone)]
pub(super) enum Turn {
    /// Text and calls.
    Answer(String, Vec<agent::ModelToolCall>),
    /// Nothing, ever.
    Hang,
    /// This, once released.
    Wait(Box<Turn>),
}

pub(super) fn says(text: &str) -> Turn {
    Turn::Answer(text.to_owned(), Vec::new())
}

pub(super) fn calls(calls: &[(&str, &str)]) -> Turn {
    let call = |(index, (name, arguments)): (usize, &(&str, &str))| agent::ModelToolCall {
        id: format!("c{index}"),
        name: (*name).to_owned(),
        arguments_json: (*arguments).to_owned(),
    };
    Turn::Answer(String::new(), calls.iter().enumerate().map(call).collect())
}

#[derive(Default)]
pub(super) struct State {
    turns: VecDeque<Turn>,
    requests: Vec<agent::GenerateRequest>,
    due: Vec<recall::DueReview>,
    applied: Vec<memory::ApplyRequest>,
    pub(super) proposals: Vec<memory::Proposal>,
    pub(super) approved: Vec<memory::ApproveProposalRequest>,
    exchanged: Vec<access::ExchangeJobTokenRequest>,
    refuse_tokens: Option<&'static str>,
    stored_already: bool,
    lose_next_answer: bool,
    open_turn: String,
    looks: usize,
}

/// All of them.
#[derive(Clone, Default)]
pub(super) struct Fakes {
    state: Arc<Mutex<State>>,
    released: Arc<Notify>,
}

impl Fakes {
    pub(super) fn new(turns: impl IntoIterator<Item = Turn>) -> Self {
        let fakes = Self::default();
        fakes.script(turns);
        fakes
    }

    pub(super) fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap()
    }

    pub(super) fn recall(&self) -> Wire {
        Wire::local(SessionStoreServiceServer::new(self.clone()))
    }

    pub(super) fn memory(&self) -> Wire {
        Wire::local(MemoryServiceServer::new(self.clone()))
    }

    pub(super) fn skills(&self) -> Wire {
        Wire::local(SkillServiceServer::new(self.clone()))
    }

    pub(super) fn agent(&self) -> Wire {
        Wire::local(ModelServiceServer::new(self.clone()))
    }

    pub(super) fn access(&self) -> Wire {
        Wire::local(AccessServiceServer::new(self.clone()))
    }

    /// What the model answers from now on.
    pub(super) fn script(&self, turns: impl IntoIterator<Item = Turn>) {
        self.state().turns = turns.into_iter().collect();
    }

    /// Lets a waiting answer go.
    pub(super) fn release(&self) {
        self.released.notify_waiters();
    }

    pub(super) fn due(&self, id: &str, to_seq: u64, memory: bool, skills: bool) {
        self.add_due("s", id, to_seq, memory, skills);
    }

    pub(super) fn due_of(&self, session: &str, id: &str, to_seq: u64) {
        self.add_due(session, id, to_seq, true, false);
    }

    fn add_due(&self, session: &str, id: &str, to_seq: u64, memory: bool, skills: bool) {
        let session = format!("teams/red/sessions/{session}");
        self.state().due.push(recall::DueReview {
            name: format!("{session}/dueReviews/{id}"),
            session,
            user: "teams/red/users/ann".to_owned(),
            memory,
            skills,
            to_seq,
            turn: "t".to_owned(),
            create_time: Some(prost_types::Timestamp {
                seconds: 1_000,
                nanos: 0,
            }),
            traceparent: String::new(),
        });
    }

    pub(super) fn due_count(&self) -> usize {
        self.state().due.len()
    }

    pub(super) fn everything_is_stored(&self) {
        self.state().stored_already = true;
    }

    /// The next write takes effect, but its answer does not arrive.
    pub(super) fn lose_next_answer(&self) {
        self.state().lose_next_answer = true;
    }

    pub(super) fn refuse_tokens(&self, reason: &'static str) {
        self.state().refuse_tokens = Some(reason);
    }

    pub(super) fn accept_tokens(&self) {
        self.state().refuse_tokens = None;
    }

    /// How often the session was asked for.
    pub(super) fn looks(&self) -> usize {
        self.state().looks
    }

    /// A person talks in the session again.
    pub(super) fn open_turn(&self, turn: &str) {
        turn.clone_into(&mut self.state().open_turn);
    }

    pub(super) fn requests(&self) -> Vec<agent::GenerateRequest> {
        self.state().requests.clone()
    }

    pub(super) fn applied(&self) -> Vec<memory::ApplyRequest> {
        self.state().applied.clone()
    }

    pub(super) fn exchanged(&self) -> Vec<access::ExchangeJobTokenRequest> {
        self.state().exchanged.clone()
    }

    fn exchange(
        &self,
        request: Request<access::ExchangeJobTokenRequest>,
    ) -> Result<access::ExchangeJobTokenResponse, Status> {
        expect_token(&request, "service-token")?;
        let mut state = self.state();
        if let Some(reason) = state.refuse_tokens {
            return Err(refusal(Code::PermissionDenied, reason));
        }
        state.exchanged.push(request.into_inner());
        Ok(access::ExchangeJobTokenResponse {
            credential: "job-token".to_owned(),
            expire_time: None,
        })
    }

    fn approve(
        &self,
        request: Request<memory::ApproveProposalRequest>,
    ) -> Result<memory::ApproveProposalResponse, Status> {
        expect_token(&request, "job-token")?;
        let request = request.into_inner();
        let mut state = self.state();
        let proposal = state.proposals.iter().find(|known| known.name == request.name).cloned();
        state.approved.push(request);
        Ok(memory::ApproveProposalResponse { proposal })
    }

    fn apply(&self, request: Request<memory::ApplyRequest>) -> Result<memory::ApplyResponse, Status> {
        expect_token(&request, "job-token")?;
        let mut state = self.state();
        let request = request.into_inner();
        let entry = format!("{}/entries/e", request.store);
        state.applied.push(request);
        if std::mem::take(&mut state.lose_next_answer) {
            return Err(Status::new(Code::Unavailable, "lost"));
        }
        let kind = if state.stored_already {
            memory::change::Kind::Unchanged
        } else {
            memory::change::Kind::Added
        };
        let change = memory::Change {
            kind: kind.into(),
            entry,
            revision: 1,
            ..Default::default()
        };
        Ok(memory::ApplyResponse {
            changes: vec![change],
            tool_text: "Saved.".to_owned(),
            ..Default::default()
        })
    }
}

fn refusal(code: Code, reason: &str) -> Status {
    Status::with_error_details(
        code,
        "refused",
        ErrorDetails::with_error_info(reason, "test", HashMap::<String, String>::new()),
    )
}

fn expect_token<T>(request: &Request<T>, token: &str) -> Result<(), Status> {
    let shown = request
        .metadata()
        .get("authorization")
        .and_then(|value| value.to_str().ok())
        .unwrap_or_default();
    if shown == format!("Bearer {token}") {
        Ok(())
    } else {
        Err(Status::new(
            Code::Unauthenticated,
            format!("{shown} instead of {token}"),
        ))
    }
}

fn list_entries() -> memory::ListEntriesResponse {
    let entry = memory::Entry {
        content: "Prefers short answers".to_owned(),
        ..Default::default()
    };
    memory::ListEntriesResponse {
        entries: vec![entry],
        ..Default::default()
    }
}

fn get_session(
    fakes: &Fakes,
    request: &Request<recall::GetSessionRequest>,
) -> Result<recall::GetSessionResponse, Status> {
    expect_token(request, "job-token")?;
    if request.get_ref().name != "teams/red/sessions/s" {
        return Err(refusal(Code::NotFound, "SESSION_NOT_FOUND"));
    }
    fakes.state().looks += 1;
    Ok(recall::GetSessionResponse {
        session: Some(recall::Session {
            model: "parent".to_owned(),
            system_prompt: "the parent's prompt".to_owned(),
            stable_prompt_bytes: 10,
            tools_json: TOOLS.to_owned(),
            open_turn: fakes.state().open_turn.clone(),
            ..Default::default()
        }),
        ..Default::default()
    })
}

/// A message of the model as its provider writes it.
fn native(blocks: &str) -> common::NativeBlocks {
    common::NativeBlocks {
        provider: "vendor".to_owned(),
        model: "parent".to_owned(),
        blocks_json: format!("[\"{blocks}\"]"),
    }
}

fn list_messages() -> recall::ListMessagesResponse {
    let message = |seq, role: recall::MessageRole, text: &str| recall::Message {
        seq,
        role: role.into(),
        text: text.to_owned(),
        ..Default::default()
    };
    let answer = recall::Message {
        native: Some(native("said")),
        ..message(2, recall::MessageRole::Assistant, "I will.")
    };
    let messages = vec![
        message(1, recall::MessageRole::User, "Use metric units from now on."),
        answer,
    ];
    recall::ListMessagesResponse {
        messages,
        next_page_token: String::new(),
    }
}

#[tonic::async_trait]
impl ModelService for Fakes {
    type GenerateStream = Pin<Box<dyn Stream<Item = Result<agent::GenerateResponse, Status>> + Send>>;

    async fn generate(
        &self,
        request: Request<agent::GenerateRequest>,
    ) -> Result<Response<Self::GenerateStream>, Status> {
        expect_token(&request, "job-token")?;
        let released = Arc::clone(&self.released);
        let (number, turn) = {
            let mut state = self.state();
            state.requests.push(request.into_inner());
            (state.requests.len(), state.turns.pop_front())
        };
        let (text, calls) = match turn {
            Some(Turn::Answer(text, calls)) => (text, calls),
            Some(Turn::Wait(after)) => {
                released.notified().await;
                let Turn::Answer(text, calls) = *after else {
                    return Err(refusal(Code::Internal, "INTERNAL"));
                };
                (text, calls)
            }
            Some(Turn::Hang) => std::future::pending().await,
            None => return Err(refusal(Code::Unavailable, "MODEL_UNAVAILABLE")),
        };
        let mut items = vec![Item::TextDelta(text)];
        let finish_reason = if calls.is_empty() { "stop" } else { "tool_calls" }.to_owned();
        items.extend(calls.into_iter().map(Item::ToolCall));
        let usage = Some(common::Usage {
            input_tokens: Some(10),
            ..Default::default()
        });
        items.push(Item::Finish(agent::GenerateFinish {
            finish_reason,
            usage,
            native: Some(native(&format!("answer {number}"))),
            // There is a price for the first one.
            cost_picodollars: (number == 1).then_some(2_600_000),
            ..Default::default()
        }));
        let items = items
            .into_iter()
            .map(|item| Ok(agent::GenerateResponse { item: Some(item) }));
        Ok(Response::new(Box::pin(futures::stream::iter(items))))
    }

    async fn get_model_route(
        &self,
        _: Request<agent::GetModelRouteRequest>,
    ) -> Result<Response<agent::GetModelRouteResponse>, Status> {
        Ok(Response::new(agent::GetModelRouteResponse {
            configured: true,
            model: "parent".to_owned(),
            review_model: "parent".to_owned(),
            context_window: 128_000,
            ..Default::default()
        }))
    }
}

fn list_skills() -> skill::ListSkillsResponse {
    skill::ListSkillsResponse::default()
}

fn acknowledge(fakes: &Fakes, names: &[String]) -> recall::AcknowledgeDueReviewsResponse {
    fakes.state().due.retain(|due| !names.contains(&due.name));
    recall::AcknowledgeDueReviewsResponse { acknowledged: 0 }
}
