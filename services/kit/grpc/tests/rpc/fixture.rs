//! A server with scripted handlers, reachable in both shapes.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::Duration;

use futures::StreamExt as _;
use futures::stream::BoxStream;
use opentelemetry::trace::TraceContextExt as _;
use steward_base::names::{TeamId, UserId};
use steward_base::{Clock, ErrorKind, Fault, FieldViolations, ResourceRef, Role, Timestamp};
use steward_client::{Credentials, ModelClient, RecallClient, Wire, ambient};
use steward_grpc::auth::keys::PUBLIC_FOLDER;
use steward_grpc::{Auth, Built, Claims, Listener, TokenSigner, caller, serve, status};
use steward_proto::agent::v1 as agent;
use steward_proto::agent::v1::model_service_server::{ModelService, ModelServiceServer};
use steward_proto::recall::v1 as recall;
use steward_proto::recall::v1::recall_service_server::{RecallService, RecallServiceServer};
use steward_runtime::Boot;
use steward_testkit::MockClock;
use tokio::sync::Semaphore;
use tonic::{Request, Response, Status};
use tracing_opentelemetry::OpenTelemetrySpanExt as _;

pub(crate) const DOMAIN: &str = "recall.steward.dev";

/// What the handlers share with the test.
#[derive(Debug)]
pub(crate) struct Probe {
    /// Calls that are inside a handler that waits.
    pub(crate) waiting: AtomicU32,
    /// Whether a waiting handler, or a stream, was dropped.
    pub(crate) dropped: AtomicBool,
    /// Lets waiting handlers go on.
    pub(crate) gate: Semaphore,
}

struct Noticed(Arc<Probe>);

impl Drop for Noticed {
    fn drop(&mut self) {
        self.0.dropped.store(true, Ordering::SeqCst);
    }
}

#[derive(Debug, thiserror::Error)]
enum Trouble {
    #[error("conversation {id} does not exist")]
    Missing { id: &'static str },
    #[error("could not read the index")]
    Broken(#[source] std::io::Error),
}

impl Fault for Trouble {
    fn kind(&self) -> ErrorKind {
        match self {
            Self::Missing { .. } => ErrorKind::NotFound,
            Self::Broken(_) => ErrorKind::Internal,
        }
    }

    fn reason(&self) -> &'static str {
        match self {
            Self::Missing { .. } => "SESSION_NOT_FOUND",
            Self::Broken(_) => "INTERNAL",
        }
    }

    fn metadata(&self) -> Vec<(&'static str, String)> {
        match self {
            Self::Missing { id } => vec![("session", (*id).to_owned())],
            Self::Broken(_) => Vec::new(),
        }
    }

    fn resource(&self) -> Option<ResourceRef> {
        let Self::Missing { id } = self else { return None };
        Some(ResourceRef {
            resource_type: "recall.steward.dev/Session",
            name: format!("teams/red/sessions/{id}"),
        })
    }
}

#[derive(Clone)]
struct Handlers(Arc<Probe>);

#[tonic::async_trait]
impl RecallService for Handlers {
    async fn search(
        &self,
        request: Request<recall::SearchRequest>,
    ) -> Result<Response<recall::SearchResponse>, Status> {
        let who = caller(&request)?;
        let team = who.team.as_ref().map(ToString::to_string).unwrap_or_default();
        let ambient = ambient::current();
        let expression = match request.get_ref().parent.as_str() {
            "whoami" => format!("{team} {} {:?}", who.origin, who.role),
            "request id" => ambient.request_id.as_deref().unwrap_or_default().to_owned(),
            "trace id" => trace_id(),
            "has deadline" => ambient.deadline.is_some().to_string(),
            "panic" => panic!("a bug with a secret"),
            "wait" => {
                let _noticed = Noticed(Arc::clone(&self.0));
                self.0.waiting.fetch_add(1, Ordering::SeqCst);
                self.0.gate.acquire().await.unwrap().forget();
                "waited".to_owned()
            }
            "missing" => return Err(status(&Trouble::Missing { id: "s1" }, DOMAIN)),
            "broken" => return Err(status(&Trouble::Broken(std::io::Error::other("secret path")), DOMAIN)),
            "invalid" => {
                let mut violations = FieldViolations::one("parent", "must name a user");
                violations.add("shape", "must be given");
                return Err(status(&violations, DOMAIN));
            }
            other => other.to_owned(),
        };
        Ok(Response::new(recall::SearchResponse {
            expression,
            ..Default::default()
        }))
    }
}

#[tonic::async_trait]
impl ModelService for Handlers {
    type GenerateStream = BoxStream<'static, Result<agent::GenerateResponse, Status>>;

    async fn generate(
        &self,
        request: Request<agent::GenerateRequest>,
    ) -> Result<Response<Self::GenerateStream>, Status> {
        let panics = request.get_ref().model == "panic";
        let noticed = Noticed(Arc::clone(&self.0));
        let item = agent::generate_response::Item::TextDelta("first".to_owned());
        let first = futures::stream::iter([Ok(agent::GenerateResponse { item: Some(item) })]);
        let rest = futures::stream::poll_fn(move |_| {
            let _keep = &noticed;
            assert!(!panics, "a bug in a stream");
            std::task::Poll::Pending
        });
        Ok(Response::new(first.chain(rest).boxed()))
    }

    async fn get_model_route(
        &self,
        _request: Request<agent::GetModelRouteRequest>,
    ) -> Result<Response<agent::GetModelRouteResponse>, Status> {
        Ok(Response::new(agent::GetModelRouteResponse::default()))
    }
}

/// The trace that the present span belongs to.
pub(crate) fn trace_id() -> String {
    tracing::Span::current()
        .context()
        .span()
        .span_context()
        .trace_id()
        .to_string()
}

/// A running server.
pub(crate) struct Stack {
    pub(crate) boot: Boot,
    pub(crate) clock: MockClock,
    pub(crate) signer: TokenSigner,
    pub(crate) probe: Arc<Probe>,
    pub(crate) endpoint: String,
    pub(crate) local: Wire,
    pub(crate) remote: Wire,
    pub(crate) folder: tempfile::TempDir,
}

impl Stack {
    pub(crate) async fn start() -> Self {
        Self::start_on("127.0.0.1:0").await
    }

    pub(crate) async fn start_on(address: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let clock = MockClock::default();
        let boot = Boot::new(folder.path()).with_clock(Arc::new(clock.clone()));
        let keys = folder.path().join("keys");
        let signer = TokenSigner::load_or_create(&keys).unwrap();
        let auth = Auth::open(&keys.join(PUBLIC_FOLDER), folder.path(), Arc::clone(&boot.clock)).unwrap();
        let probe = Arc::new(Probe {
            waiting: AtomicU32::new(0),
            dropped: AtomicBool::new(false),
            gate: Semaphore::new(0),
        });
        let handlers = Handlers(Arc::clone(&probe));
        let listener = Listener::bind(&address.replace("{folder}", &folder.path().display().to_string()))
            .await
            .unwrap();
        let built = Built::builder("recall-service", &boot, Arc::new(auth))
            .service(RecallServiceServer::new(handlers.clone()))
            .service(ModelServiceServer::new(handlers))
            .build()
            .await
            .unwrap();
        let local = built.local_client();
        let endpoint = serve(listener, built, &boot.tasks).unwrap().endpoint;
        let remote = Wire::connect(&endpoint).unwrap();
        Self {
            boot,
            clock,
            signer,
            probe,
            endpoint,
            local,
            remote,
            folder,
        }
    }

    /// The same server, near and far.
    pub(crate) fn shapes(&self) -> [Wire; 2] {
        [self.local.clone(), self.remote.clone()]
    }

    pub(crate) fn now(&self) -> Timestamp {
        self.clock.now()
    }

    pub(crate) fn user_claims(&self, role: Role) -> Claims {
        let (team, user) = (TeamId::parse("red").unwrap(), UserId::parse("ann").unwrap());
        Claims::user(
            "token-ann",
            team,
            user,
            role,
            self.now(),
            self.now().plus(Duration::from_hours(1)),
        )
    }

    pub(crate) fn sign(&self, claims: &Claims) -> Credentials {
        Credentials::token(&self.signer.sign(claims).unwrap()).unwrap()
    }

    pub(crate) fn user(&self, role: Role) -> Credentials {
        self.sign(&self.user_claims(role))
    }

    pub(crate) fn service(&self) -> Credentials {
        let claims = Claims::service(
            "token-worker",
            "curator-worker",
            self.now(),
            self.now().plus(Duration::from_hours(1)),
        );
        self.sign(&claims)
    }

    pub(crate) async fn stop(self) {
        self.probe.gate.add_permits(100);
        let Self {
            boot, local, remote, ..
        } = self;
        drop((local, remote));
        let stopped = boot.tasks.shutdown(Duration::from_secs(30)).await;
        assert!(!stopped.forced && !stopped.failed, "{stopped:?}");
    }
}

pub(crate) fn recall(wire: Wire, credentials: Credentials) -> RecallClient {
    RecallClient::new(wire).with_credentials(credentials)
}

pub(crate) fn model(wire: Wire, credentials: Credentials) -> ModelClient {
    ModelClient::new(wire).with_credentials(credentials)
}

pub(crate) fn search(what: &str) -> recall::SearchRequest {
    recall::SearchRequest {
        parent: what.to_owned(),
        ..Default::default()
    }
}
