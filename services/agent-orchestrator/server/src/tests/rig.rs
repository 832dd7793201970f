//! What the tests of this crate stand on: the service's handlers behind the real edge, over sessions in memory, tools that
//! count, knowledge that can change, and a scripted model over HTTP. A process can be lost at any store or tool call, and
//! another one started on what it left.

mod beside;
mod store;
mod tools;

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use steward_agent::counters::NudgeSettings;
use steward_base::names::{SessionId, TeamId, UserId};
use steward_base::{Clock as _, PerTeam, Role};
use steward_client::{Client, ClientError, Credentials, ResponseStream};
use steward_grpc::{Auth, Built, Claims, Revocations, TokenSigner};
use steward_orchestrator_core::Error;
use steward_orchestrator_core::session::{Exposure, InMemorySessionStore, SessionKey, SessionStore};
use steward_proto::agent::v1 as pb;
use steward_proto::agent::v1::agent_service_server::AgentServiceServer;
use steward_proto::agent::v1::model_service_server::ModelServiceServer;
use steward_proto::agent::v1::session_service_server::SessionServiceServer;
use steward_runtime::reconcile::Nudge;
use steward_runtime::{Boot, Tasks};
use steward_testkit::{MockClock, ModelServer, SeqIds, TempDir};

use crate::config::ModelConfig;
use crate::grpc::{AgentRpc, ModelRpc, SessionRpc};
use crate::locks::SessionLocks;
use crate::model::Models;
use crate::owed::InMemoryOwed;
use crate::peers::{About, Knowledge, Known, Offered};
use crate::sessions::Sessions;
use crate::signer::{KeySigner, Minter, Person};
use crate::turns::{KeptSessions, Limits, Parts, Turns};

pub(crate) use beside::{FakeBeside, Mood};
pub(crate) use store::{CrashingStore, When};
pub(crate) use tools::CountingTools;

/// The item of an event.
pub(crate) type Item = pb::turn_event::Event;

/// Project, failed checks, skills to open.
pub(crate) type AskedWith = (String, Vec<String>, Vec<String>);

/// What is known at the beginning of a session; tests change it between sessions.
#[derive(Debug, Default)]
pub(crate) struct ChangingKnowledge(
    pub(crate) Mutex<Known>,
    /// What sessions asked with.
    pub(crate) Mutex<Vec<AskedWith>>,
    /// What the external memory offers.
    pub(crate) Mutex<Offered>,
);

#[async_trait]
impl Knowledge for ChangingKnowledge {
    async fn known(&self, about: About<'_>) -> Result<Known, Error> {
        let (project, checks) = (about.project.to_owned(), about.failed_checks.to_vec());
        self.1.lock().unwrap().push((project, checks, about.preloaded.to_vec()));
        Ok(self.0.lock().unwrap().clone())
    }

    async fn provider(&self, _person: &Person, _session: &SessionId, _project: &str) -> Offered {
        self.2.lock().unwrap().clone()
    }
}

/// Settings of a rig that tests change.
#[derive(Debug, Clone)]
pub(crate) struct Options {
    pub(crate) nudges: PerTeam<NudgeSettings>,
    pub(crate) iterations: u32,
    /// Ended turns that a process remembers.
    pub(crate) kept_turns: usize,
    /// Life of a lease without a heartbeat.
    pub(crate) lease: Duration,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            nudges: NudgeSettings::default().into(),
            iterations: 20,
            kept_turns: 64,
            lease: Duration::from_mins(5),
        }
    }
}

/// What outlives a process.
pub(crate) struct World {
    pub(crate) clock: MockClock,
    pub(crate) store: Arc<InMemorySessionStore>,
    pub(crate) tools: Arc<CountingTools>,
    pub(crate) knowledge: Arc<ChangingKnowledge>,
    pub(crate) beside: Arc<FakeBeside>,
    pub(crate) owed: Arc<InMemoryOwed>,
    pub(crate) model: ModelServer,
    signer: Arc<TokenSigner>,
    ids: SeqIds,
    options: Options,
    _folder: TempDir,
    boot: Boot,
}

/// One process of the service.
pub(crate) struct Process {
    pub(crate) store: Arc<CrashingStore>,
    pub(crate) tasks: Tasks,
    pub(crate) turns: Turns,
    built: Built,
}

impl World {
    pub(crate) fn new(model: ModelServer, options: Options) -> Self {
        let clock = MockClock::default();
        let ids = SeqIds::new();
        let folder = TempDir::new("orchestrator");
        let boot = Boot::new(folder.path())
            .with_clock(Arc::new(clock.clone()))
            .with_ids(Arc::new(ids.clone()));
        Self {
            store: Arc::new(InMemorySessionStore::new(Arc::new(clock.clone()))),
            tools: Arc::default(),
            knowledge: Arc::default(),
            beside: Arc::default(),
            owed: Arc::default(),
            signer: Arc::new(TokenSigner::generate().unwrap()),
            clock,
            model,
            ids,
            options,
            _folder: folder,
            boot,
        }
    }

    /// Starts a process on what there is.
    pub(crate) async fn start(&self) -> Process {
        self.start_with(&self.model_config()).await
    }

    pub(crate) async fn start_with(&self, model: &ModelConfig) -> Process {
        self.start_as("here", model).await
    }

    /// Starts a process of another installation on the same stores.
    pub(crate) async fn start_elsewhere(&self) -> Process {
        self.start_as("elsewhere", &self.model_config()).await
    }

    pub(crate) fn model_config(&self) -> ModelConfig {
        ModelConfig {
            base_url: Some(self.model.base_url()),
            name: Some("scripted".to_owned()),
            retry_base_ms: 1,
            ..ModelConfig::default()
        }
    }

    async fn start_as(&self, holder: &str, model: &ModelConfig) -> Process {
        let clock: Arc<dyn steward_base::Clock> = Arc::new(self.clock.clone());
        let auth = Auth::new(
            self.signer.public_keys(),
            Revocations::in_memory(Arc::clone(&clock)),
            Arc::clone(&clock),
        );
        let store = Arc::new(CrashingStore::over(Arc::clone(&self.store)));
        let sessions: Arc<dyn SessionStore> = Arc::clone(&store) as _;
        let models = Models::from_config(model, Arc::clone(&clock)).unwrap();
        let signer = Arc::new(KeySigner::new(TokenSigner::generate().unwrap()));
        let minter = Minter::new(signer, Arc::clone(&clock), Arc::new(self.ids.clone()));
        let knowledge: Arc<dyn Knowledge> = Arc::clone(&self.knowledge) as _;
        let (locks, kept) = (SessionLocks::default(), KeptSessions::default());
        let facade = Sessions::new(
            Arc::clone(&sessions),
            (locks.clone(), kept.clone()),
            knowledge,
            models.clone(),
            Arc::clone(&clock),
            (Arc::clone(&self.owed) as _, Nudge::new()),
        );
        let tasks = Tasks::new();
        let turns = Turns::new(Parts {
            sessions,
            locks,
            kept,
            models: models.clone(),
            tools: Arc::clone(&self.tools) as _,
            beside: Arc::clone(&self.beside) as _,
            owed: Arc::clone(&self.owed) as _,
            minter,
            tasks: tasks.clone(),
            clock,
            holder: holder.to_owned(),
            limits: Limits {
                iterations: self.options.iterations,
                lease: self.options.lease,
                client_wait: Duration::from_hours(24),
                nudges: self.options.nudges.clone(),
            },
            kept_turns: self.options.kept_turns,
        });
        let built = Built::builder("agent-orchestrator", &self.boot, Arc::new(auth))
            .service(SessionServiceServer::new(SessionRpc::new(facade)))
            .service(AgentServiceServer::new(AgentRpc::new(turns.clone())))
            .service(ModelServiceServer::new(ModelRpc::new(models)))
            .build()
            .await
            .unwrap();
        Process {
            store,
            tasks,
            turns,
            built,
        }
    }

    /// A client of `process` with a token of this person.
    pub(crate) fn client(&self, process: &Process, user: &str) -> Client {
        self.client_in(process, "red", user)
    }

    pub(crate) fn client_in(&self, process: &Process, team: &str, user: &str) -> Client {
        let now = self.clock.now();
        let (team, user) = (TeamId::parse(team).unwrap(), UserId::parse(user).unwrap());
        let end = now.plus(Duration::from_hours(1000));
        let claims = Claims::user("token", team, user, Role::Member, now, end);
        self.client_with(process, &claims)
    }

    pub(crate) fn job_client(&self, process: &Process, user: &str, capabilities: &[&str]) -> Client {
        let now = self.clock.now();
        let (team, user) = (TeamId::parse("red").unwrap(), UserId::parse(user).unwrap());
        let capabilities: BTreeSet<String> = capabilities.iter().map(|one| (*one).to_owned()).collect();
        let job = steward_base::JobRef {
            id: "job".to_owned(),
            fence: 1,
        };
        let end = now.plus(Duration::from_mins(5));
        let claims = Claims::user("token", team, user, Role::Member, now, end);
        self.client_with(
            process,
            &claims.for_job(job, steward_base::Origin::Review, None, capabilities),
        )
    }

    fn client_with(&self, process: &Process, claims: &Claims) -> Client {
        let token = self.signer.sign(claims).unwrap();
        let credentials = Credentials::token(&token).unwrap();
        Client::new(process.built.local_client().with_credentials(credentials))
    }
}

impl Process {
    /// Ends it as a power failure would: whatever runs is dropped where it is.
    pub(crate) async fn kill(self) {
        self.tasks.abort();
        self.tasks.shutdown(Duration::from_secs(30)).await;
    }
}

/// A shell that runs at the client.
pub(crate) fn shell() -> pb::ClientTool {
    pb::ClientTool {
        name: "shell".to_owned(),
        description: "Runs a command.".to_owned(),
        input_schema_json: r#"{"type":"object","properties":{"z":{},"a":{}}}"#.to_owned(),
        integrity: steward_proto::common::v1::Integrity::Workspace.into(),
    }
}

pub(crate) fn new_session(user: &str, request_id: &str, client_tools: Vec<pb::ClientTool>) -> pb::CreateSessionRequest {
    pb::CreateSessionRequest {
        parent: format!("teams/red/users/{user}"),
        session: None,
        setup: Some(pb::SessionSetup {
            client_tools,
            ..pb::SessionSetup::default()
        }),
        request_id: request_id.to_owned(),
    }
}

/// A session of Ann's, with a shell; its resource name.
pub(crate) async fn session(client: &Client) -> String {
    let created = client
        .sessions
        .create_session(new_session("ann", "s1", vec![shell()]))
        .await
        .unwrap();
    created.session.unwrap().name
}

pub(crate) fn key(session: &str) -> SessionKey {
    let (team, id) = steward_base::names::parse_session(session).unwrap();
    SessionKey { team, id }
}

pub(crate) fn says(session: &str, request_id: &str, text: &str) -> pb::RunTurnRequest {
    pb::RunTurnRequest {
        session: session.to_owned(),
        request_id: request_id.to_owned(),
        input: Some(pb::run_turn_request::Input::UserMessage(pb::UserMessage {
            text: text.to_owned(),
            attachments: Vec::new(),
        })),
        steer: false,
    }
}

pub(crate) fn answers(session: &str, request_id: &str, results: &[(&str, &str)]) -> pb::RunTurnRequest {
    let results = results.iter().map(|(call_id, content)| pb::ToolResult {
        call_id: (*call_id).to_owned(),
        content: (*content).to_owned(),
        ..pb::ToolResult::default()
    });
    pb::RunTurnRequest {
        session: session.to_owned(),
        request_id: request_id.to_owned(),
        input: Some(pb::run_turn_request::Input::ToolResults(pb::ToolResults {
            results: results.collect(),
        })),
        steer: false,
    }
}

/// All events of a segment.
pub(crate) async fn run(client: &Client, request: pb::RunTurnRequest) -> Result<Vec<Item>, ClientError> {
    let mut stream = client.agent.run_turn(request).await?;
    let mut items = Vec::new();
    while let Some(item) = stream.message().await? {
        items.push(item.event.unwrap().event.unwrap());
    }
    Ok(items)
}

/// The next event of a running segment.
pub(crate) async fn next(stream: &mut ResponseStream<pb::RunTurnResponse>) -> Item {
    stream.message().await.unwrap().unwrap().event.unwrap().event.unwrap()
}

/// The answer of a turn that is expected to complete.
pub(crate) fn completed(items: &[Item]) -> &pb::TurnCompleted {
    match items.last() {
        Some(Item::Completed(completed)) => completed,
        other => panic!("the turn ends with {other:?}"),
    }
}

/// The text of all deltas.
pub(crate) fn text(items: &[Item]) -> String {
    let deltas = items.iter().filter_map(|item| match item {
        Item::TextDelta(delta) => Some(delta.text.as_str()),
        _ => None,
    });
    deltas.collect()
}

/// The calls that the client is to run.
pub(crate) fn required(items: &[Item]) -> Vec<&pb::PendingCall> {
    match items.last() {
        Some(Item::RequiresAction(action)) => action.calls.iter().collect(),
        other => panic!("the segment ends with {other:?}"),
    }
}

pub(crate) fn exposure(artifact: &str) -> Exposure {
    Exposure {
        artifact: artifact.to_owned(),
        revision: "1".to_owned(),
        stage: "snapshot".to_owned(),
        assignment_unit: String::new(),
        arm: String::new(),
        propensity: None,
    }
}
