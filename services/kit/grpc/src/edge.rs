//! The outermost layer of every server, in one place because the order matters: credential, span and request id, then the
//! decision on access, then a place in the audit log, then the handler, under the deadline and with panics caught around
//! it.
//!
//! When the process stops, calls that run are finished, and so are streams that do something. A stream that only shows
//! something (`NO_SIDE_EFFECTS` in the contract: the `Watch…` methods, and health and reflection) may have no end, so it is
//! ended with UNAVAILABLE once nothing more is ready in it; its client watches on elsewhere, or later, from its last
//! cursor.

mod audit;
mod body;
mod call;
mod error;
mod metrics;

use std::borrow::Cow;
use std::convert::Infallible;
use std::fmt;
use std::future::Future;
use std::panic::AssertUnwindSafe;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use futures::FutureExt as _;
use http::header::AUTHORIZATION;
use http::{HeaderMap, HeaderValue};
use opentelemetry::propagation::Extractor;
use steward_base::names::TeamId;
use steward_base::{Caller, IdGen};
use steward_client::ambient::{self, Ambient, REQUEST_ID_HEADER};
use steward_client::{WireRequest, WireResponse, parse_timeout};
use steward_proto::methods::{self, Idempotency};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tonic::Status;
use tonic::service::Routes;
use tower::util::BoxCloneSyncService;
use tower::{Service, ServiceExt as _};
use tracing::Instrument as _;
use tracing_opentelemetry::OpenTelemetrySpanExt as _;

use self::audit::Audit;
use self::body::EdgeBody;
use self::call::{Call, service_behind};
use self::error::EdgeError;
use self::metrics::{CallMetrics, method_name};
use crate::audit::Peer;
use crate::auth::{AccessError, Auth, Identified, policy};
use crate::handler::{Credential, Presented};
use crate::status::status;

pub use self::metrics::word as code_name;

/// A server as the in-process client sees it: what is mounted on a port, boxed.
pub type LocalService = BoxCloneSyncService<WireRequest, WireResponse, Infallible>;

/// Who calls, as far as a credential says.
type Known = Result<Option<Identified>, AccessError>;

/// Which service of ours a gRPC service belongs to: `steward.memory.v1.MemoryService` to `memory-service`.
#[derive(Debug, Clone)]
pub(crate) struct Owners {
    /// The gRPC services and their owners.
    pub(crate) services: Vec<(&'static str, &'static str)>,
    /// The owner of what every server has.
    pub(crate) rest: &'static str,
}

impl Owners {
    fn of(&self, path: &str) -> &'static str {
        let service = path.trim_start_matches('/').split('/').next().unwrap_or_default();
        let owner = self.services.iter().find(|(name, _)| *name == service);
        owner.map_or(self.rest, |(_, owner)| owner)
    }
}

/// All handlers of a server behind the layers that every call passes.
#[derive(Clone)]
pub(crate) struct Edge {
    routes: Routes,
    auth: Arc<Auth>,
    ids: Arc<dyn IdGen>,
    owners: Arc<Owners>,
    metrics: CallMetrics,
    stopping: CancellationToken,
}

impl fmt::Debug for Edge {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Edge").finish_non_exhaustive()
    }
}

impl Edge {
    pub(crate) fn new(
        routes: Routes,
        auth: Arc<Auth>,
        ids: Arc<dyn IdGen>,
        owners: Owners,
        stopping: CancellationToken,
    ) -> Self {
        Self {
            routes: routes.prepare(),
            auth,
            ids,
            owners: Arc::new(owners),
            metrics: CallMetrics::of_process(),
            stopping,
        }
    }

    async fn handle(self, mut request: WireRequest) -> WireResponse {
        let given = request.headers().get_all(AUTHORIZATION);
        let identified = self.auth.identify(given.iter().map(HeaderValue::as_bytes));
        if let Some(value) = request.headers_mut().remove(AUTHORIZATION) {
            request.extensions_mut().insert(Presented(value));
        }
        // Also when the call is denied below: that is when one wants to know.
        let caller = identified.as_ref().ok().and_then(Option::as_ref);
        let caller = caller.map(|identified| Arc::clone(&identified.caller));
        let mut call = self.begin(&request, caller.as_ref());
        let stopping = only_shows(&call.path).then(|| self.stopping.clone());
        if let Some(sink) = self.auth.audit() {
            let mut audit = Audit::new(Arc::clone(sink), caller, Peer::of(request.extensions()));
            request = audit.watch(request);
            call.audit = Some(audit);
        }
        let (ambient, span) = (call.ambient.clone(), call.span.clone());
        let answered = ambient::scope(ambient, self.answer(&mut call, request, identified)).instrument(span);
        let response = answered.await;
        if let Some(status) = Status::from_header_map(response.headers()) {
            call.end_with(&status);
        }
        let (mut parts, body) = response.into_parts();
        if let Some(id) = call
            .ambient
            .request_id
            .as_deref()
            .and_then(|id| HeaderValue::try_from(id).ok())
        {
            parts.headers.insert(REQUEST_ID_HEADER, id);
        }
        http::Response::from_parts(parts, tonic::body::Body::new(EdgeBody::new(body, call, stopping)))
    }

    /// The span has all that is known from the beginning: what is added later costs more.
    fn begin(&self, request: &WireRequest, caller: Option<&Arc<Caller>>) -> Call {
        let path = request.uri().path().to_owned();
        let id: Arc<str> = given_id(request.headers()).unwrap_or_else(|| self.ids.new_id()).into();
        let deadline = parse_timeout(request.headers()).and_then(|timeout| {
            // The transport has a timer of its own that knows no reason; ours has to come first.
            let margin = Duration::from_millis(2).min(timeout / 2);
            Instant::now().checked_add(timeout.saturating_sub(margin))
        });
        let name = method_name(&path);
        let service = self.owners.of(&path);
        let asking = caller.map(|caller| service_behind(&caller.identity));
        let span = tracing::info_span!(
            "rpc",
            otel.name = name,
            otel.kind = "server",
            rpc.system = "grpc",
            rpc.method = name,
            rpc.grpc.status_code = tracing::field::Empty,
            otel.status_code = tracing::field::Empty,
            error.reason = tracing::field::Empty,
            service = service,
            caller.service = asking.as_deref(),
            request.id = &*id,
            caller.team = caller.and_then(|caller| caller.team.as_ref()).map(TeamId::as_str),
            caller.token = caller.map(|caller| caller.token_id.as_str()),
        );
        let parent = opentelemetry::global::get_text_map_propagator(|propagator| {
            propagator.extract(&Headers(request.headers()))
        });
        // Fails only where no telemetry is installed, and then there is no trace to join.
        let _ = span.set_parent(parent);
        let ambient = Ambient {
            deadline,
            request_id: Some(id),
        };
        let asking = asking.unwrap_or(Cow::Borrowed("client"));
        Call::new(path, name, service, asking, ambient, span, self.metrics.clone())
    }

    async fn answer(self, call: &mut Call, mut request: WireRequest, identified: Known) -> WireResponse {
        match self.auth.decide(&call.path, identified) {
            Ok(Some(Identified { caller, expires })) => {
                request.extensions_mut().insert(Credential::new(caller, expires));
            }
            Ok(None) => {}
            Err(refused) => return status(&refused, &call.domain()).into_http(),
        }
        let deadline = call.ambient.deadline;
        let path = call.path.clone();
        let audit = call.audit.as_mut();
        let routed = async {
            if let Some(audit) = audit
                && !audit.has_place(&path).await
            {
                return Err(EdgeError::NotRecorded);
            }
            match self.routes.oneshot(request).await {
                Ok(response) => Ok(response),
                Err(never) => match never {},
            }
        };
        let guarded = AssertUnwindSafe(routed).catch_unwind();
        let outcome = match deadline {
            Some(deadline) => tokio::time::timeout_at(deadline, guarded).await,
            None => Ok(guarded.await),
        };
        let error = match outcome {
            Ok(Ok(Ok(response))) => return response,
            Ok(Ok(Err(error))) => error,
            Ok(Err(panic)) => EdgeError::panicked(&*panic),
            Err(_) => EdgeError::DeadlineExceeded,
        };
        status(&error, &call.domain()).into_http()
    }
}

impl Service<WireRequest> for Edge {
    type Response = WireResponse;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<WireResponse, Infallible>> + Send>>;

    fn poll_ready(&mut self, _context: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: WireRequest) -> Self::Future {
        let edge = self.clone();
        Box::pin(async move { Ok(edge.handle(request).await) })
    }
}

/// A caller's own id is taken if it is harmless in a log.
fn given_id(headers: &HeaderMap) -> Option<String> {
    let text = headers.get(REQUEST_ID_HEADER)?.to_str().ok()?;
    let harmless = text
        .bytes()
        .all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.' | b'/'));
    (harmless && (1..=128).contains(&text.len())).then(|| text.to_owned())
}

/// Whether a call to `path` only shows something, as far as its stream goes.
fn only_shows(path: &str) -> bool {
    let watches = methods::find(path)
        .is_some_and(|method| method.server_streaming && method.idempotency == Idempotency::NoSideEffects);
    watches || policy::builtin(path).is_some()
}

struct Headers<'a>(&'a HeaderMap);

impl Extractor for Headers<'_> {
    fn get(&self, key: &str) -> Option<&str> {
        self.0.get(key).and_then(|value| value.to_str().ok())
    }

    fn keys(&self) -> Vec<&str> {
        self.0.keys().map(http::HeaderName::as_str).collect()
    }
}
