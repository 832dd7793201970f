//! The other services as a review sees them: called with the token of its job and with nothing else.

mod convert;
mod corrections;
mod generate;
mod history;
mod library;
pub(crate) mod people;

use std::sync::{Arc, OnceLock};

use async_trait::async_trait;
use steward_base::names::{TeamId, session_name, user_name};
use steward_base::{ErrorKind, Fault};
use steward_client::{ClientError, MemoryClient, ModelClient, RecallClient, SessionStoreClient, SkillClient};
use steward_curator_core::Error;
use steward_curator_core::ports::{
    KeptReply, Peers, Present, PresentEntry, PresentSkill, Route, SessionView, StagedCorrection, ToolOutcome, ToolUse,
};
use steward_curator_core::review::Review;
use steward_model::{Continuation, ModelRequest};
use steward_proto::agent::v1 as agent;
use steward_proto::memory::v1 as memory;
use steward_proto::recall::v1 as recall;
use steward_proto::skill::v1 as skill;
use steward_runtime::failpoint;
use steward_tools::{BuiltinTools, Clients, Failure, SKILL_MANAGE, ToolContext};

use crate::identity::JobToken;

pub(crate) use library::JobLibrary;

pub(crate) const AGENT: &str = "agent-orchestrator";
pub(crate) const MEMORY: &str = "memory-service";
pub(crate) const RECALL: &str = "recall-service";
pub(crate) const SKILLS: &str = "skill-registry";

/// Most memory entries of a store and most skills that a review is shown.
const SHOWN: i32 = 500;

/// Clients of the services, without credentials.
#[derive(Debug, Clone)]
pub(crate) struct PeerClients {
    pub(crate) sessions: SessionStoreClient,
    pub(crate) recall: RecallClient,
    pub(crate) memory: MemoryClient,
    pub(crate) skills: SkillClient,
    pub(crate) model: ModelClient,
}

/// The services for one claim.
pub(crate) struct JobPeers {
    clients: PeerClients,
    tools: BuiltinTools,
    review: Review,
    token: JobToken,
    /// The session's project; known once the session was read.
    project: OnceLock<Option<TeamId>>,
}

impl JobPeers {
    pub(crate) fn new(clients: &PeerClients, review: Review, token: JobToken) -> Arc<Self> {
        let credentials = token.credentials();
        let clients = PeerClients {
            sessions: clients.sessions.clone().with_credentials(credentials.clone()),
            recall: clients.recall.clone().with_credentials(credentials.clone()),
            memory: clients.memory.clone().with_credentials(credentials.clone()),
            skills: clients.skills.clone().with_credentials(credentials.clone()),
            model: clients.model.clone().with_credentials(credentials),
        };
        let tools = BuiltinTools::new(Clients {
            memory: clients.memory.clone(),
            skills: clients.skills.clone(),
            recall: clients.recall.clone(),
        });
        Arc::new(Self {
            clients,
            tools,
            review,
            token,
            project: OnceLock::new(),
        })
    }

    /// Whether a person is in the middle of a turn of the session.
    pub(crate) async fn has_open_turn(&self) -> Result<bool, Error> {
        let session = self.get_session().await?;
        Ok(!session.open_turn.is_empty() && session.open_turn != self.review.turn)
    }

    async fn get_session(&self) -> Result<recall::Session, Error> {
        let name = session_name(&self.review.team, &self.review.session);
        let response = self
            .clients
            .sessions
            .get_session(recall::GetSessionRequest {
                name,
                ..recall::GetSessionRequest::default()
            })
            .await;
        Ok(response
            .map_err(|error| Error::peer(RECALL, error))?
            .session
            .unwrap_or_default())
    }

    fn user(&self) -> String {
        user_name(&self.review.team, &self.review.user)
    }

    async fn entries(&self, target: &str) -> Result<Vec<PresentEntry>, Error> {
        let parent = format!("{}/memory/{target}", self.user());
        let request = memory::ListEntriesRequest {
            parent,
            page_size: SHOWN,
            page_token: String::new(),
        };
        let response = self
            .clients
            .memory
            .list_entries(request)
            .await
            .map_err(|error| Error::peer(MEMORY, error))?;
        let entry = |entry: memory::Entry| PresentEntry {
            target: target.to_owned(),
            text: entry.content,
        };
        Ok(response.entries.into_iter().map(entry).collect())
    }

    async fn corrections(&self) -> Result<Vec<StagedCorrection>, Error> {
        corrections::load(&self.clients.memory, &self.review).await
    }

    async fn present_skills(&self) -> Result<Vec<PresentSkill>, Error> {
        let request = skill::ListSkillsRequest {
            parent: self.user(),
            page_size: SHOWN,
            ..Default::default()
        };
        let response = self
            .clients
            .skills
            .list_skills(request)
            .await
            .map_err(|error| Error::peer(SKILLS, error))?;
        Ok(response.skills.iter().map(convert::present_skill).collect())
    }
}

#[async_trait]
impl Peers for JobPeers {
    async fn session(&self) -> Result<SessionView, Error> {
        let session = self.get_session().await?;
        self.project
            .get_or_init(|| TeamId::parse(session.project.as_str()).ok());
        let messages = history::load(&self.clients.sessions, &self.review).await?;
        history::view(session, messages, &self.review)
    }

    async fn present(&self) -> Result<Present, Error> {
        let mut present = Present::default();
        if self.review.kinds.memory {
            for target in ["profile", "notes"] {
                present.memory.extend(self.entries(target).await?);
            }
            present.corrections = self.corrections().await?;
        }
        present.skills = self.present_skills().await?;
        Ok(present)
    }

    async fn route(&self) -> Result<Route, Error> {
        let response = self.clients.model.get_model_route(agent::GetModelRouteRequest {}).await;
        let route = response.map_err(|error| Error::peer(AGENT, error))?;
        Ok(Route {
            review_model: route.review_model,
            context_window: u64::from(route.context_window),
        })
    }

    async fn generate(&self, request: ModelRequest, beside: Continuation) -> Result<KeptReply, Error> {
        generate::generate(&self.clients.model, self.user(), request, beside).await
    }

    async fn call(&self, call: ToolUse) -> Result<ToolOutcome, Error> {
        let writes = call.evidence.is_some();
        let context = ToolContext {
            team: self.review.team.clone(),
            user: self.review.user.clone(),
            session: Some(self.review.session.clone()),
            project: self.project.get().cloned().flatten(),
            work: self.review.id.to_string(),
            credentials: self.token.credentials(),
            key: call.key,
            evidence: call.evidence.as_ref().map(convert::cited),
            variables: None,
        };
        if writes {
            failpoint::hit("review.effect.before");
        }
        let answer = self.tools.call(&context, &call.name, &call.arguments).await;
        if writes {
            failpoint::hit("review.effect.after");
        }
        if let Some(failure) = answer.failure.as_ref().filter(|failure| !is_answer(failure)) {
            let service = if call.name == SKILL_MANAGE { SKILLS } else { MEMORY };
            return Err(Error::peer(
                service,
                Unanswered {
                    kind: failure.kind,
                    reason: failure.reason,
                },
            ));
        }
        let line = answer.summary;
        let write = answer.effect.map(|effect| convert::write(effect, line));
        Ok(ToolOutcome {
            content: answer.content,
            is_error: answer.is_error,
            spans: answer.spans,
            write,
        })
    }
}

/// Whether the model can do something with the failure. All others mean that the call was not decided, and are met by a
/// later try with the same key.
fn is_answer(failure: &Failure) -> bool {
    match failure.kind {
        ErrorKind::InvalidInput
        | ErrorKind::NotFound
        | ErrorKind::AlreadyExists
        | ErrorKind::Precondition
        | ErrorKind::Exhausted
        | ErrorKind::Forbidden => true,
        ErrorKind::Conflict => !failure.is_stale_fence(),
        ErrorKind::Unauthenticated
        | ErrorKind::Unavailable
        | ErrorKind::Timeout
        | ErrorKind::Internal
        | ErrorKind::DataLoss => false,
    }
}

/// A tool's service that did not decide.
#[derive(Debug, thiserror::Error)]
#[error("the call of a tool was not decided ({reason})")]
struct Unanswered {
    kind: ErrorKind,
    reason: &'static str,
}

impl Fault for Unanswered {
    fn kind(&self) -> ErrorKind {
        self.kind
    }

    fn reason(&self) -> &'static str {
        self.reason
    }
}

/// An error of a peer, for calls in the worker's own name.
pub(crate) fn by(service: &'static str) -> impl Fn(ClientError) -> Error {
    move |error| Error::peer(service, error)
}
