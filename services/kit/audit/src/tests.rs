//! The log behind real edges, near and far: what is recorded, what is not, who sees it.

mod bounds;
mod matrix;
mod reading;

use std::convert::Infallible;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use http_body_util::BodyExt as _;
use steward_base::names::{TeamId, UserId};
use steward_base::{Caller, Clock as _, Identity, Origin, Role};
use steward_client::{Credentials, Wire, WireRequest, WireResponse};
use steward_grpc::{AuditRecord, Auth, Built, Claims, Listener, PublicKeys, Revocations, TokenSigner, serve};
use steward_proto::access::v1 as pb;
use steward_proto::access::v1::audit_service_client::AuditServiceClient;
use steward_runtime::Boot;
use steward_testkit::MockClock;
use tonic::server::NamedService;
use tonic::{Code, Request, Status};
use tower::Service;

use crate::{Audit, Config};

pub(crate) const WRITE: &str = "steward.memory.v1.MemoryService/Apply";
pub(crate) const READ: &str = "steward.memory.v1.MemoryService/GetEntry";

/// A denied call, as the edge describes it.
pub(crate) fn denied(caller: Option<Caller>) -> AuditRecord {
    AuditRecord {
        service: "memory-service",
        method: WRITE.to_owned(),
        principal: caller.map(Arc::new),
        resources: Vec::new(),
        request_id: "r1".into(),
        peer: "10.0.0.1:40".to_owned(),
        code: Code::Unauthenticated,
        reason: Some("CREDENTIAL_MISSING".to_owned()),
    }
}

pub(crate) fn person(team: &str, user: &str) -> Caller {
    Caller {
        team: Some(TeamId::parse(team).unwrap()),
        user: Some(UserId::parse(user).unwrap()),
        role: Role::Member,
        origin: Origin::Foreground,
        identity: Identity::User,
        token_id: format!("token-{user}"),
    }
}

/// Stands for memory-service: answers what the header `x-answer` says, after it has read the request.
#[derive(Debug, Clone)]
struct Fake;

impl NamedService for Fake {
    const NAME: &'static str = "steward.memory.v1.MemoryService";
}

#[expect(
    clippy::disallowed_methods,
    reason = "any status will do, as from a handler that decided so"
)]
fn scripted(code: Code) -> WireResponse {
    Status::new(code, "scripted").into_http()
}

impl Service<WireRequest> for Fake {
    type Response = WireResponse;
    type Error = Infallible;
    type Future = std::pin::Pin<Box<dyn Future<Output = Result<WireResponse, Infallible>> + Send>>;

    fn poll_ready(&mut self, _context: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: WireRequest) -> Self::Future {
        Box::pin(async move {
            let (parts, body) = request.into_parts();
            let mut body = std::pin::pin!(body);
            while std::future::poll_fn(|context| http_body::Body::poll_frame(body.as_mut(), context))
                .await
                .is_some()
            {}
            let answer = parts.headers.get("x-answer").and_then(|value| value.to_str().ok());
            let code = answer.and_then(|number| number.parse().ok()).unwrap_or(0);
            let mut response = scripted(Code::from_i32(code));
            if code == 0 {
                // An empty message, then how it went.
                let trailers = http::HeaderMap::from_iter([(
                    http::HeaderName::from_static("grpc-status"),
                    http::HeaderValue::from_static("0"),
                )]);
                let message = http_body_util::Full::new(bytes::Bytes::from_static(&[0; 5]));
                let whole = message.with_trailers(std::future::ready(Some(Ok(trailers))));
                *response.body_mut() = tonic::body::Body::new(whole);
                response.headers_mut().remove("grpc-status");
            }
            Ok(response)
        })
    }
}

/// Who calls in a test.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Who {
    Nobody,
    Stranger,
    Person(&'static str, &'static str, Role),
    Turn(&'static str),
    Job(&'static str),
    Worker,
}

struct Rig {
    boot: Boot,
    clock: MockClock,
    signer: TokenSigner,
    local: Wire,
    remote: Wire,
    folder: tempfile::TempDir,
}

impl Rig {
    async fn start() -> Self {
        Self::start_in(tempfile::tempdir().unwrap(), Config::default()).await
    }

    async fn start_in(folder: tempfile::TempDir, config: Config) -> Self {
        let clock = MockClock::default();
        let boot = Boot::new(folder.path()).with_clock(Arc::new(clock.clone()));
        let signer = TokenSigner::load_or_create(&folder.path().join("keys")).unwrap();
        let keys = PublicKeys::watch(&folder.path().join("keys/public")).unwrap();
        let home = TeamId::parse("home").unwrap();
        let audit = Audit::open(folder.path(), config, home, &boot).await.unwrap();
        let revocations = Revocations::in_memory(Arc::clone(&boot.clock));
        let auth = Arc::new(Auth::new(keys, revocations, Arc::clone(&boot.clock)).with_audit(audit.sink()));
        let fake = Built::builder("memory-service", &boot, Arc::clone(&auth))
            .service(Fake)
            .build()
            .await
            .unwrap();
        let audit = audit.build("memory-service", auth, &boot).await.unwrap();
        let built = Built::join("memory-service", &boot, vec![fake, audit]).await.unwrap();
        let local = built.local_client();
        let listener = Listener::bind("127.0.0.1:0").await.unwrap();
        let serving = serve(listener, built, &boot.tasks).unwrap();
        let remote = Wire::connect(&serving.endpoint).unwrap();
        Self {
            boot,
            clock,
            signer,
            local,
            remote,
            folder,
        }
    }

    fn shapes(&self) -> [Wire; 2] {
        [self.local.clone(), self.remote.clone()]
    }

    fn token(&self, who: Who) -> Option<String> {
        let (from, to) = (self.clock.now(), self.clock.now().plus(Duration::from_hours(1)));
        let claims = |team: &str, user: &str, role| {
            let (team, user) = (TeamId::parse(team).unwrap(), UserId::parse(user).unwrap());
            Claims::user(format!("token-{user}"), team, user, role, from, to)
        };
        let caps = |cap: &str| [cap.to_owned()].into();
        let session = || steward_base::names::SessionId::parse("s1").unwrap();
        let claims = match who {
            Who::Nobody => return None,
            Who::Stranger => {
                let stranger = TokenSigner::generate().unwrap();
                return Some(stranger.sign(&claims("red", "ann", Role::Admin)).unwrap());
            }
            Who::Person(team, user, role) => claims(team, user, role),
            Who::Turn(cap) => claims("red", "ann", Role::Member).for_turn(session(), "t1", caps(cap)),
            Who::Job(cap) => {
                let job = steward_base::JobRef {
                    id: "job-1".to_owned(),
                    fence: 7,
                };
                claims("red", "ann", Role::Member).for_job(job, Origin::Review, Some(session()), caps(cap))
            }
            Who::Worker => Claims::service("token-worker", "curator-worker", from, to),
        };
        Some(self.signer.sign(&claims).unwrap())
    }

    fn credentials(&self, who: Who) -> Credentials {
        self.token(who)
            .map_or_else(Credentials::anonymous, |token| Credentials::token(&token).unwrap())
    }

    /// Calls `method` with any message; the handler answers with `answer`.
    async fn call<M>(&self, wire: &Wire, who: Who, method: &str, message: M, answer: Code) -> Code
    where
        M: prost::Message + Default + 'static,
    {
        let wire = wire.clone().with_credentials(self.credentials(who));
        let mut grpc = tonic::client::Grpc::new(wire);
        grpc.ready().await.unwrap();
        let mut request = Request::new(message);
        let headers = request.metadata_mut();
        headers.insert("x-answer", i32::from(answer).to_string().parse().unwrap());
        headers.insert("x-request-id", "req-1".parse().unwrap());
        let path = format!("/{method}").parse().unwrap();
        let codec = tonic_prost::ProstCodec::<M, M>::default();
        let answered = grpc.unary(request, path, codec).await;
        answered.map_or_else(|status| status.code(), |_| Code::Ok)
    }

    async fn list(&self, who: Who, request: pb::ListAuditEventsRequest) -> Result<Vec<pb::AuditEvent>, Status> {
        let mut client = AuditServiceClient::new(self.local.clone().with_credentials(self.credentials(who)));
        let answer = client.list_audit_events(request).await?;
        Ok(answer.into_inner().audit_events)
    }

    async fn stop(self) -> tempfile::TempDir {
        let Self {
            boot,
            local,
            remote,
            folder,
            ..
        } = self;
        drop((local, remote));
        let stopped = boot.tasks.shutdown(Duration::from_secs(30)).await;
        assert!(!stopped.forced && !stopped.failed, "{stopped:?}");
        folder
    }
}

const ADMIN: Who = Who::Person("red", "root", Role::Admin);
const HOME: Who = Who::Person("home", "owner", Role::Admin);

fn of(team: &str) -> pb::ListAuditEventsRequest {
    pb::ListAuditEventsRequest {
        parent: format!("teams/{team}"),
        ..Default::default()
    }
}

fn apply(content: &str) -> steward_proto::memory::v1::ApplyRequest {
    use steward_proto::memory::v1::{AddEntry, ApplyRequest, Operation, operation::Action};
    ApplyRequest {
        store: "teams/red/users/ann/memory/notes".to_owned(),
        operations: vec![Operation {
            action: Some(Action::Add(AddEntry {
                content: content.to_owned(),
            })),
        }],
        ..Default::default()
    }
}
