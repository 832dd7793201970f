//! The fetcher that reaches the internet, with every check of `H-8`.

use std::collections::BTreeSet;
use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use bytes::BytesMut;
use futures::StreamExt as _;
use http::StatusCode;
use http::header::{ACCEPT, AUTHORIZATION, CONTENT_LENGTH, CONTENT_TYPE, ETAG, IF_NONE_MATCH, LOCATION};
use serde::{Deserialize, Serialize};
use steward_base::Clock;
use url::{Host, Url};

use crate::address::is_public;
use crate::rate::Rates;
use crate::{Answer, Fetch, FetchError, Request, retry_after};

/// Longest wait that a host may ask for.
const LONGEST_PATIENCE: Duration = Duration::from_hours(1);
/// Wait when a host is overloaded and does not say for how long.
const PATIENCE: Duration = Duration::from_secs(30);

/// What the guard permits.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Settings {
    /// Origins (`http://host:port`) that may be asked although they are not https or not public: a mirror of one's own.
    pub permitted_origins: BTreeSet<String>,
    /// Most bytes of one answer.
    pub max_bytes: u64,
    /// Longest time for one question with all its redirects, in seconds.
    pub timeout_seconds: u64,
    /// Most redirects that are followed.
    pub max_redirects: usize,
    /// Requests to one host in a minute.
    pub requests_per_minute: u32,
    /// Requests to one host at once.
    pub burst: u32,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            permitted_origins: BTreeSet::new(),
            max_bytes: 32 << 20,
            timeout_seconds: 30,
            max_redirects: 5,
            requests_per_minute: 120,
            burst: 40,
        }
    }
}

/// A credential and the one host that may see it.
#[derive(Clone)]
pub struct Token {
    /// The host, in lower case, without a port.
    pub host: String,
    /// The value of `Authorization`.
    pub authorization: String,
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Token")
            .field("host", &self.host)
            .finish_non_exhaustive()
    }
}

/// Turns names into addresses.
#[async_trait::async_trait]
pub trait Resolve: fmt::Debug + Send + Sync {
    /// All addresses of a host; empty if it has none.
    async fn resolve(&self, host: &str) -> Vec<IpAddr>;
}

/// The machine's own resolver.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemResolver;

#[async_trait::async_trait]
impl Resolve for SystemResolver {
    async fn resolve(&self, host: &str) -> Vec<IpAddr> {
        match tokio::net::lookup_host((host, 0)).await {
            Ok(found) => found.map(|address| address.ip()).collect(),
            Err(_) => Vec::new(),
        }
    }
}

/// Lets a connection go to checked addresses only: what is resolved here is what is connected to.
#[derive(Debug, Clone)]
struct Pinned {
    resolver: Arc<dyn Resolve>,
    /// Hosts of permitted origins, whose addresses are not checked.
    permitted: Arc<BTreeSet<String>>,
}

impl Pinned {
    async fn addresses(&self, host: &str) -> Result<Vec<IpAddr>, FetchError> {
        let found = self.resolver.resolve(host).await;
        if found.is_empty() {
            return Err(FetchError::Unresolved { host: host.to_owned() });
        }
        // One private address among public ones is a trap and no fallback.
        if !self.permitted.contains(host) && !found.iter().copied().all(is_public) {
            return Err(FetchError::Private { host: host.to_owned() });
        }
        Ok(found)
    }
}

impl reqwest::dns::Resolve for Pinned {
    fn resolve(&self, name: reqwest::dns::Name) -> reqwest::dns::Resolving {
        let pinned = self.clone();
        Box::pin(async move {
            let found = pinned.addresses(name.as_str()).await?;
            let found: reqwest::dns::Addrs = Box::new(found.into_iter().map(|ip| SocketAddr::new(ip, 0)));
            Ok(found)
        })
    }
}

/// The guarded fetcher.
#[derive(Debug)]
pub struct Guarded {
    client: reqwest::Client,
    pinned: Pinned,
    settings: Settings,
    tokens: Vec<Token>,
    rates: Rates,
}

impl Guarded {
    /// A fetcher with these settings; the process must have a TLS provider. Fails if the settings are no origins or the
    /// client cannot be built.
    pub fn new(
        settings: Settings,
        tokens: Vec<Token>,
        clock: Arc<dyn Clock>,
        resolver: Arc<dyn Resolve>,
    ) -> Result<Self, FetchError> {
        let mut permitted = BTreeSet::new();
        for origin in &settings.permitted_origins {
            let url = Url::parse(origin).ok().filter(|url| url.host().is_some());
            let Some(url) = url else {
                return Err(FetchError::Address {
                    url: origin.clone(),
                    reason: "a permitted origin must be http(s)://host:port",
                });
            };
            permitted.insert(url.host_str().unwrap_or_default().to_owned());
        }
        let pinned = Pinned {
            resolver,
            permitted: Arc::new(permitted),
        };
        let client = reqwest::Client::builder()
            .redirect(reqwest::redirect::Policy::none())
            .no_proxy()
            .referer(false)
            .dns_resolver(Arc::new(pinned.clone()))
            .connect_timeout(Duration::from_secs(10))
            .pool_idle_timeout(Duration::from_secs(30))
            .user_agent(concat!("steward/", env!("CARGO_PKG_VERSION")))
            .build()
            .map_err(|error| FetchError::Connection {
                host: String::new(),
                problem: error.to_string(),
            })?;
        Ok(Self {
            client,
            pinned,
            rates: Rates::new(clock, settings.requests_per_minute, settings.burst),
            settings,
            tokens,
        })
    }

    fn is_permitted(&self, url: &Url) -> bool {
        let origin = url.origin().ascii_serialization();
        self.settings.permitted_origins.iter().any(|permitted| {
            Url::parse(permitted).is_ok_and(|permitted| permitted.origin().ascii_serialization() == origin)
        })
    }

    /// Checks an address before anything is sent; returns its host.
    fn check(&self, url: &Url) -> Result<String, FetchError> {
        let refused = |reason| {
            Err(FetchError::Address {
                url: shown(url),
                reason,
            })
        };
        let Some(host) = url.host_str().map(str::to_ascii_lowercase) else {
            return refused("it names no host");
        };
        if !url.username().is_empty() || url.password().is_some() {
            return refused("it holds credentials");
        }
        if self.is_permitted(url) {
            return Ok(host);
        }
        if url.scheme() != "https" {
            return refused("only https is permitted");
        }
        // A literal address never reaches the resolver.
        let literal = match url.host() {
            Some(Host::Ipv4(address)) => Some(IpAddr::V4(address)),
            Some(Host::Ipv6(address)) => Some(IpAddr::V6(address)),
            Some(Host::Domain(_)) | None => None,
        };
        if literal.is_some_and(|address| !is_public(address)) || self.pinned.permitted.contains(&host) {
            return Err(FetchError::Private { host });
        }
        Ok(host)
    }

    async fn follow(&self, request: &Request) -> Result<Answer, FetchError> {
        let mut url = request.url.clone();
        for _ in 0..=self.settings.max_redirects {
            let host = self.check(&url)?;
            let response = self.ask(request, &url, &host).await?;
            let status = response.status();
            let target = response.headers().get(LOCATION).and_then(|target| target.to_str().ok());
            if status.is_redirection() && status != StatusCode::NOT_MODIFIED {
                let next = target.and_then(|target| url.join(target).ok());
                let Some(next) = next else {
                    return Err(FetchError::Address {
                        url: shown(&url),
                        reason: "it redirects to nowhere",
                    });
                };
                if request.json.is_some() {
                    return Err(FetchError::Address {
                        url: shown(&url),
                        reason: "a request with a body is not redirected",
                    });
                }
                url = next;
                continue;
            }
            if matches!(status, StatusCode::TOO_MANY_REQUESTS | StatusCode::SERVICE_UNAVAILABLE) {
                return Err(self.be_patient(&host, &response));
            }
            return self.read(request, url, &host, response).await;
        }
        Err(FetchError::Redirects {
            url: shown(&request.url),
            limit: self.settings.max_redirects,
        })
    }

    async fn ask(&self, request: &Request, url: &Url, host: &str) -> Result<reqwest::Response, FetchError> {
        self.rates.admit(host).map_err(|retry_after| FetchError::Later {
            host: host.to_owned(),
            retry_after,
        })?;
        let mut builder = match &request.json {
            Some(json) => self
                .client
                .post(url.clone())
                .header(CONTENT_TYPE, "application/json")
                .body(json.clone()),
            None => self.client.get(url.clone()),
        };
        if let Some(accept) = request.accept {
            builder = builder.header(ACCEPT, accept);
        }
        if let Some(etag) = &request.etag {
            builder = builder.header(IF_NONE_MATCH, etag);
        }
        if let Some(token) = self.tokens.iter().find(|token| token.host == host) {
            builder = builder.header(AUTHORIZATION, &token.authorization);
        }
        builder.send().await.map_err(|error| refused_or_failed(host, &error))
    }

    fn be_patient(&self, host: &str, response: &reqwest::Response) -> FetchError {
        let asked = retry_after::read(response.headers(), self.rates.now());
        let retry_after = asked.unwrap_or(PATIENCE).min(LONGEST_PATIENCE);
        self.rates.wait(host, retry_after);
        FetchError::Later {
            host: host.to_owned(),
            retry_after,
        }
    }

    async fn read(
        &self,
        request: &Request,
        url: Url,
        host: &str,
        response: reqwest::Response,
    ) -> Result<Answer, FetchError> {
        let limit = request.limit.unwrap_or(u64::MAX).min(self.settings.max_bytes);
        let too_large = || FetchError::TooLarge {
            host: host.to_owned(),
            limit,
        };
        let header = |name| {
            response
                .headers()
                .get(name)
                .and_then(|value: &http::HeaderValue| value.to_str().ok())
                .map(str::to_owned)
        };
        let stated: Option<u64> = header(CONTENT_LENGTH).and_then(|length| length.parse().ok());
        if stated.is_some_and(|length| length > limit) {
            return Err(too_large());
        }
        let (etag, content_type, status) = (header(ETAG), header(CONTENT_TYPE), response.status().as_u16());
        let mut body = BytesMut::new();
        let mut stream = response.bytes_stream();
        while let Some(chunk) = stream.next().await {
            let chunk = chunk.map_err(|error| refused_or_failed(host, &error))?;
            if (body.len() + chunk.len()) as u64 > limit {
                return Err(too_large());
            }
            body.extend_from_slice(&chunk);
        }
        Ok(Answer {
            status,
            url,
            etag,
            content_type,
            body: body.freeze(),
        })
    }
}

#[async_trait::async_trait]
impl Fetch for Guarded {
    async fn fetch(&self, request: Request) -> Result<Answer, FetchError> {
        let host = request.url.host_str().unwrap_or_default().to_owned();
        let limit = Duration::from_secs(self.settings.timeout_seconds);
        match tokio::time::timeout(limit, self.follow(&request)).await {
            Ok(result) => result,
            Err(_) => Err(FetchError::Timeout { host }),
        }
    }
}

/// The guard's own refusal, if that is why the transport failed.
fn refused_or_failed(host: &str, error: &reqwest::Error) -> FetchError {
    let mut source: Option<&(dyn std::error::Error + 'static)> = Some(error);
    while let Some(cause) = source {
        if let Some(refused) = cause.downcast_ref::<FetchError>() {
            return refused.clone();
        }
        source = cause.source();
    }
    if error.is_timeout() {
        return FetchError::Timeout { host: host.to_owned() };
    }
    FetchError::Connection {
        host: host.to_owned(),
        problem: if error.is_connect() {
            "no connection"
        } else {
            "the answer broke off"
        }
        .to_owned(),
    }
}

/// An address that may be shown: without credentials, query and fragment.
fn shown(url: &Url) -> String {
    let mut url = url.clone();
    let _ = url.set_username("");
    let _ = url.set_password(None);
    url.set_query(None);
    url.set_fragment(None);
    url.to_string()
}

#[cfg(test)]
mod tests;
