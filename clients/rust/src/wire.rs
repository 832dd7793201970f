//! A connection to a server, in another process or in this one, behind one type.
//!
//! Both kinds carry the same encoded messages through the same server layers, so that what works in one process works
//! over the network. A wire adds to each call: the bearer token, the trace context, the request id and the deadline of
//! the call it is made in, and it repeats what may be repeated.

mod retry;
mod timeout;

use std::convert::Infallible;
use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use http::header::AUTHORIZATION;
use http::{HeaderMap, HeaderName, HeaderValue};
use opentelemetry::propagation::Injector;
use tonic::body::Body;
use tonic::transport::{ClientTlsConfig, Endpoint};
use tonic::{Code, Status};
use tower::util::BoxCloneSyncService;
use tower::{Service, ServiceExt as _};
use tracing_opentelemetry::OpenTelemetrySpanExt as _;

use crate::ambient::{self, REQUEST_ID_HEADER};
use crate::credentials::Credentials;
use crate::error::{BoxError, ClientError, Unanswered, unanswered};

pub use retry::RetryPolicy;
pub use timeout::{parse as parse_timeout, render as render_timeout};

/// A call as it travels.
pub type WireRequest = http::Request<Body>;

/// An answer as it travels.
pub type WireResponse = http::Response<Body>;

type Boxed = BoxCloneSyncService<WireRequest, WireResponse, BoxError>;

/// How long connecting may take.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// A way to call a server. Cheap to clone; clones share the connection.
#[derive(Clone)]
pub struct Wire {
    service: Boxed,
    target: Arc<str>,
    credentials: Credentials,
    retry: RetryPolicy,
}

impl fmt::Debug for Wire {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Wire")
            .field("target", &self.target)
            .field("credentials", &self.credentials)
            .finish_non_exhaustive()
    }
}

/// Whether [`Wire::connect`] takes this address. Nobody is asked. Errors: `ENDPOINT_INVALID`.
pub fn check_endpoint(endpoint: &str) -> Result<(), ClientError> {
    address(endpoint).map(drop)
}

/// The transport takes any word for an address, and fails with the first call only.
fn address(endpoint: &str) -> Result<Endpoint, ClientError> {
    let address =
        Endpoint::from_shared(endpoint.to_owned()).map_err(|error| ClientError::bad_endpoint(endpoint, &error))?;
    let is_whole = match endpoint.split_once(':') {
        Some(("http" | "https", _)) => address.uri().host().is_some_and(|host| !host.is_empty()),
        Some(("unix", path)) => !path.trim_start_matches('/').is_empty(),
        _ => false,
    };
    if is_whole {
        Ok(address)
    } else {
        let problem = Unanswered("it has no http, https or unix address".to_owned());
        Err(ClientError::bad_endpoint(endpoint, &problem))
    }
}

impl Wire {
    /// To `http://host:port`, `https://host:port` or `unix:///path`. Connects at the first call and again whenever the
    /// connection is lost. Needs a tokio runtime. Errors: `ENDPOINT_INVALID` for what is no address.
    pub fn connect(endpoint: &str) -> Result<Self, ClientError> {
        let mut target = address(endpoint)?
            .connect_timeout(CONNECT_TIMEOUT)
            .tcp_nodelay(true)
            .http2_keep_alive_interval(Duration::from_secs(30))
            .keep_alive_timeout(Duration::from_secs(20))
            .keep_alive_while_idle(true);
        if endpoint.starts_with("https:") {
            target = target
                .tls_config(ClientTlsConfig::new().with_native_roots())
                .map_err(|error| ClientError::bad_endpoint(endpoint, &error))?;
        }
        let channel = target.connect_lazy().map_err(BoxError::from);
        Ok(Self::over(BoxCloneSyncService::new(channel), endpoint))
    }

    /// To a server in this process: the same boxed service that would be mounted on a port.
    pub fn local<S>(service: S) -> Self
    where
        S: Service<WireRequest, Response = WireResponse, Error = Infallible> + Clone + Send + Sync + 'static,
        S::Future: Send + 'static,
    {
        let service = service.map_err(|never: Infallible| -> BoxError { match never {} });
        Self::over(BoxCloneSyncService::new(service), "local")
    }

    fn over(service: Boxed, target: &str) -> Self {
        Self {
            service,
            target: Arc::from(target),
            credentials: Credentials::anonymous(),
            retry: RetryPolicy::default(),
        }
    }

    /// The same connection with other credentials.
    #[must_use]
    pub fn with_credentials(mut self, credentials: Credentials) -> Self {
        self.credentials = credentials;
        self
    }

    /// The same connection with another way of repeating calls.
    #[must_use]
    pub fn with_retry(mut self, retry: RetryPolicy) -> Self {
        self.retry = retry;
        self
    }

    /// The endpoint, or `local`.
    pub fn target(&self) -> &str {
        &self.target
    }

    async fn send(self, mut request: WireRequest) -> Result<WireResponse, Status> {
        let ambient = ambient::current();
        let headers = request.headers_mut();
        inject_trace(headers);
        if let Some(id) = ambient
            .request_id
            .as_deref()
            .and_then(|id| HeaderValue::try_from(id).ok())
        {
            headers.insert(HeaderName::from_static(REQUEST_ID_HEADER), id);
        }
        // What the call itself carries wins: some calls act on another credential than the wire's.
        if !headers.contains_key(AUTHORIZATION) {
            let header = self.credentials.header().await.map_err(|error| {
                unanswered(
                    Code::Unauthenticated,
                    "no credential could be obtained",
                    error.to_string(),
                )
            })?;
            if let Some(header) = header {
                headers.insert(AUTHORIZATION, header);
            }
        }
        let deadline = timeout::effective(request.headers(), &ambient);
        let service = self.service;
        retry::send(self.retry, deadline, request, move |request| {
            once(service.clone(), request)
        })
        .await
    }
}

async fn once(service: Boxed, request: WireRequest) -> Result<WireResponse, Status> {
    service.oneshot(request).await.map_err(|error| {
        // A status from below, such as a deadline, is kept; everything else means that nobody answered.
        let status = Status::from_error(error);
        match status.code() {
            Code::Cancelled | Code::DeadlineExceeded => {
                unanswered(Code::DeadlineExceeded, "the deadline passed", status.message())
            }
            _ => unanswered(Code::Unavailable, "the server does not answer", chain(&status)),
        }
    })
}

fn chain(status: &Status) -> String {
    std::error::Error::source(status).map_or_else(|| status.message().to_owned(), steward_base::error_chain)
}

impl Service<WireRequest> for Wire {
    type Response = WireResponse;
    type Error = Status;
    type Future = Pin<Box<dyn Future<Output = Result<WireResponse, Status>> + Send>>;

    /// Always ready: waiting for the connection is part of the call, under its deadline.
    fn poll_ready(&mut self, _context: &mut Context<'_>) -> Poll<Result<(), Status>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: WireRequest) -> Self::Future {
        Box::pin(self.clone().send(request))
    }
}

/// The W3C context of the current span, also for a server in the same process.
fn inject_trace(headers: &mut HeaderMap) {
    let context = tracing::Span::current().context();
    opentelemetry::global::get_text_map_propagator(|propagator| {
        propagator.inject_context(&context, &mut Headers(headers));
    });
}

struct Headers<'a>(&'a mut HeaderMap);

impl Injector for Headers<'_> {
    fn set(&mut self, key: &str, value: String) {
        if let (Ok(key), Ok(value)) = (HeaderName::try_from(key), HeaderValue::try_from(value)) {
            self.0.insert(key, value);
        }
    }
}
