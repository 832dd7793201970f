//! A server with scripted handlers, reachable in both shapes.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::Duration;

use futures::StreamExt as _;
use futures::stream::BoxStream;
use opentelemetry::trace::TraceContextExt as _;
use steward_base::names::{TeamId, UserId};
use steward_base::{Clock, ErrorKind, Fault, FieldViolations, ResourceRef, Role, Timestamp};
use steward_client::{Credentials, ModelClient, RecallClient, ReviewClient, Wire, ambient};
use steward_grpc::{AuthConfig, Built, Claims, Listener, MAX_MESSAGE_BYTES, TokenSigner, caller, serve, status};
use steward_proto::agent::v1 as agent;
use steward_proto::agent::v1::model_service_server::{ModelService, ModelServiceServer};
use steward_proto::learning::v1 as learning;
use steward_proto::learning::v1::review_service_server::{ReviewService, ReviewServiceServer};
use steward_proto::recall::v1 as recall;
use steward_proto::recall::v1::recall_service_server::{RecallService, RecallServiceServer};
use steward_runtime::Boot;
use steward_testkit::MockClock;
use tokio::sync::Semaphore;
use tonic::{Request, Response, Status, Streaming};
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
            "flood" => {
                let mut violations = FieldViolations::new();
                for index in 0..2000 {
                    violations.add(
                        format!("entries[{index}].content"),
                        "不能为空，也不能超过两千个字".repeat(4),
                    );
                }
                return Err(status(&violations, DOMAIN));
            }
            "invalid" => {
                let mut violations = FieldViolations::one("parent", "must name a user");
                violations.add("shape", "must be given");
                return Err(status(&violations, DOMAIN));
            }
            "large" => "x".repeat(MAX_MESSAGE_BYTES - 100),
            "too large" => "x".repeat(MAX_MESSAGE_BYTES),
            other => other.to_owned(),
        };
        Ok(Response::new(recall::SearchResponse {
            expression,
            ..Default::default()
        }))
    }

    type ExportSessionsStream = BoxStream<'static, Result<recall::ExportSessionsResponse, Status>>;

    async fn export_sessions(
        &self,
        _request: Request<recall::ExportSessionsRequest>,
    ) -> Result<Response<Self::ExportSessionsStream>, Status> {
        Ok(Response::new(futures::stream::empty().boxed()))
    }

    async fn import_sessions(
        &self,
        _request: Request<Streaming<recall::ImportSessionsRequest>>,
    ) -> Result<Response<recall::ImportSessionsResponse>, Status> {
        Ok(Response::new(recall::ImportSessionsResponse::default()))
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
        if request.get_ref().model == "endless" {
            let item = agent::generate_response::Item::TextDelta("more".to_owned());
            let endless = futures::stream::repeat(Ok(agent::GenerateResponse { item: Some(item) }));
            return Ok(Response::new(endless.boxed()));
        }
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

#[tonic::async_trait]
impl ReviewService for Handlers {
    type WatchReviewsStream = BoxStream<'static, Result<learning::WatchReviewsResponse, Status>>;

    async fn watch_reviews(
        &self,
        _request: Request<learning::WatchReviewsRequest>,
    ) -> Result<Response<Self::WatchReviewsStream>, Status> {
        let noticed = Noticed(Arc::clone(&self.0));
        let first = futures::stream::iter([Ok(learning::WatchReviewsResponse::default())]);
        let rest = futures::stream::poll_fn(move |_| {
            let _keep = &noticed;
            std::task::Poll::Pending
        });
        Ok(Response::new(first.chain(rest).boxed()))
    }

    async fn list_reviews(
        &self,
        _request: Request<learning::ListReviewsRequest>,
    ) -> Result<Response<learning::ListReviewsResponse>, Status> {
        Ok(Response::new(learning::ListReviewsResponse::default()))
    }

    async fn get_review(
        &self,
        _request: Request<learning::GetReviewRequest>,
    ) -> Result<Response<learning::GetReviewResponse>, Status> {
        Ok(Response::new(learning::GetReviewResponse::default()))
    }

    async fn retry_review(
        &self,
        _request: Request<learning::RetryReviewRequest>,
    ) -> Result<Response<learning::RetryReviewResponse>, Status> {
        Ok(Response::new(learning::RetryReviewResponse::default()))
    }

    async fn cancel_review(
        &self,
        _request: Request<learning::CancelReviewRequest>,
    ) -> Result<Response<learning::CancelReviewResponse>, Status> {
        Ok(Response::new(learning::CancelReviewResponse::default()))
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
        Self::start_with("127.0.0.1:0", AuthConfig::default()).await
    }

    pub(crate) async fn start_on(address: &str) -> Self {
        Self::start_with(address, AuthConfig::default()).await
    }

    pub(crate) async fn start_with(address: &str, config: AuthConfig) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let clock = MockClock::default();
        let boot = Boot::new(folder.path()).with_clock(Arc::new(clock.clone()));
        // The server comes up before the signer has made its key, as it may in a cluster.
        let auth = config
            .open(folder.path(), folder.path(), Arc::clone(&boot.clock))
            .unwrap();
        let signer = TokenSigner::load_or_create(&folder.path().join("agent/keys")).unwrap();
        let probe = Arc::new(Probe {
            waiting: AtomicU32::new(0),
            dropped: AtomicBool::new(false),
            gate: Semaphore::new(0),
        });
        let handlers = Handlers(Arc::clone(&probe));
        let listener = Listener::bind(&address.replace("{folder}", &folder.path().display().to_string()))
            .await
            .unwrap();
        let auth = Arc::new(auth);
        let built = Built::builder("recall-service", &boot, Arc::clone(&auth))
            .service(
                RecallServiceServer::new(handlers.clone())
                    .max_decoding_message_size(MAX_MESSAGE_BYTES)
                    .max_encoding_message_size(MAX_MESSAGE_BYTES),
            )
            .service(ModelServiceServer::new(handlers.clone()))
            .build()
            .await
            .unwrap();
        let reviews = Built::builder("curator-worker", &boot, Arc::clone(&auth))
            .service(ReviewServiceServer::new(handlers))
            .build()
            .await
            .unwrap();
        let built = Built::join("steward", &boot, vec![built, reviews]).await.unwrap();
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

    /// The worker, as one of the services.
    pub(crate) fn service(&self) -> Credentials {
        self.sign(&self.service_claims("curator-worker"))
    }

    /// The service that revokes.
    pub(crate) fn orchestrator(&self) -> Credentials {
        self.sign(&self.service_claims("agent-orchestrator"))
    }

    pub(crate) fn service_claims(&self, name: &str) -> Claims {
        let to = self.now().plus(Duration::from_hours(1));
        Claims::service(format!("token-{name}"), name, self.now(), to)
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

pub(crate) fn reviews(wire: Wire, credentials: Credentials) -> ReviewClient {
    ReviewClient::new(wire).with_credentials(credentials)
}

pub(crate) fn search(what: &str) -> recall::SearchRequest {
    recall::SearchRequest {
        parent: what.to_owned(),
        ..Default::default()
    }
}
