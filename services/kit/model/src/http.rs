//! The HTTP side of every provider: one POST, answered by a stream of events or by one JSON document.
//!
//! Limits stand on everything that comes in. The time limit is between bytes, not over the whole answer, since a long
//! answer is not a dead one. Redirects are not followed: a key goes to the configured host or nowhere.

use std::time::Duration;

use bytes::Bytes;
use futures::StreamExt;
use reqwest::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use steward_base::{Clock as _, SystemClock};
use steward_fetch::retry_after;
use url::{Host, Url};

use crate::assemble::Assemble;
use crate::error::ModelError;
use crate::provider::DeltaStream;
use crate::secret::Secret;
use crate::sse::SseDecoder;

/// Most bytes of one event.
const EVENT_LIMIT: usize = 4 << 20;
/// Most bytes of an error body that are looked at.
const ERROR_BODY_LIMIT: usize = 64 << 10;
/// Most bytes of an answer that comes as one document.
const DOCUMENT_LIMIT: usize = 16 << 20;

/// How long a server may take.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Limits {
    /// To open a connection.
    pub(crate) connect: Duration,
    /// Between two reads, the wait for the first byte included.
    pub(crate) read: Duration,
}

/// Where the key goes.
#[derive(Debug, Clone, Copy)]
pub(crate) enum KeyHeader {
    /// `Authorization: Bearer`.
    Bearer,
    /// `x-api-key`.
    XApiKey,
}

/// One endpoint of one server.
#[derive(Clone)]
pub(crate) struct Server {
    http: reqwest::Client,
    endpoint: Url,
    headers: HeaderMap,
    key: Option<Secret>,
}

impl Server {
    /// Builds the client; nothing is sent.
    pub(crate) fn new(
        endpoint: Url,
        key: Option<Secret>,
        key_header: KeyHeader,
        limits: Limits,
    ) -> Result<Self, ModelError> {
        ensure_tls_provider();
        let mut builder = reqwest::Client::builder()
            .connect_timeout(limits.connect)
            .read_timeout(limits.read)
            .redirect(reqwest::redirect::Policy::none())
            .user_agent(concat!("steward/", env!("CARGO_PKG_VERSION")));
        if is_loopback(&endpoint) {
            // A model on this machine is never behind the machine's proxy.
            builder = builder.no_proxy();
        }
        let http = builder.build().map_err(|error| ModelError::NotAvailable {
            what: steward_base::error_chain(&error),
        })?;
        let mut server = Self {
            http,
            endpoint,
            headers: HeaderMap::new(),
            key: None,
        };
        server.set(CONTENT_TYPE, "application/json")?;
        server.set(ACCEPT, "text/event-stream, application/json")?;
        if let Some(key) = &key {
            match key_header {
                KeyHeader::Bearer => server.set(AUTHORIZATION, &format!("Bearer {}", key.expose()))?,
                KeyHeader::XApiKey => server.set(HeaderName::from_static("x-api-key"), key.expose())?,
            }
        }
        server.key = key;
        Ok(server)
    }

    /// Sends this header with every request. Its value is treated as a secret.
    pub(crate) fn set(&mut self, name: HeaderName, value: &str) -> Result<(), ModelError> {
        let mut value = HeaderValue::from_str(value).map_err(|_| ModelError::InvalidRequest {
            what: format!("the header {name} has characters that no header can carry"),
        })?;
        value.set_sensitive(true);
        self.headers.insert(name, value);
        Ok(())
    }

    pub(crate) fn host(&self) -> Option<&str> {
        self.endpoint.host_str()
    }

    pub(crate) fn key(&self) -> Option<&Secret> {
        self.key.as_ref()
    }

    /// Sends a body. An error status is an error of its class.
    pub(crate) async fn post(&self, body: Bytes) -> Result<reqwest::Response, ModelError> {
        let post = self.http.post(self.endpoint.clone()).headers(self.headers.clone());
        let response = post.body(body).send().await.map_err(transport)?;
        let status = response.status();
        if status.is_success() {
            return Ok(response);
        }
        let retry_after = retry_after::read(response.headers(), SystemClock.now());
        // A body that breaks off still has a status that says enough.
        let body = read_capped(response, ERROR_BODY_LIMIT).await.unwrap_or_default();
        let body = String::from_utf8_lossy(&body);
        Err(ModelError::from_http(status.as_u16(), retry_after, &body, self.key()))
    }
}

/// Turns a response into deltas.
pub(crate) async fn answer<A: Assemble>(response: reqwest::Response, assembler: A) -> Result<DeltaStream, ModelError> {
    let content_type = response.headers().get(CONTENT_TYPE);
    let content_type = content_type.and_then(|value| value.to_str().ok());
    if content_type.is_some_and(|value| value.starts_with("application/json")) {
        let document = read_capped(response, DOCUMENT_LIMIT).await?;
        let deltas = assembler.whole(&document)?;
        return Ok(futures::stream::iter(deltas.into_iter().map(Ok)).boxed());
    }
    Ok(decode(response, assembler))
}

fn decode<A: Assemble>(response: reqwest::Response, mut assembler: A) -> DeltaStream {
    async_stream::try_stream! {
        let (mut decoder, mut events, mut deltas) = (SseDecoder::new(EVENT_LIMIT), Vec::new(), Vec::new());
        let mut bytes = response.bytes_stream();
        while !assembler.is_done() {
            let Some(chunk) = bytes.next().await else { break };
            let chunk = match chunk {
                Ok(chunk) => chunk,
                Err(error) if error.is_timeout() => Err(ModelError::TimedOut)?,
                // Some servers end a complete answer without ending the transfer.
                Err(_) if assembler.has_finish() => break,
                Err(_) => Err(ModelError::BrokenOff)?,
            };
            let pushed = decoder.push(&chunk, &mut events);
            for event in events.drain(..) {
                let taken = assembler.event(&event, &mut deltas);
                for delta in deltas.drain(..) {
                    yield delta;
                }
                taken?;
                if assembler.is_done() {
                    break;
                }
            }
            pushed.map_err(|error| ModelError::TooLarge { what: "one event", limit: error.limit })?;
        }
        for delta in assembler.finish()? {
            yield delta;
        }
    }
    .boxed()
}

async fn read_capped(response: reqwest::Response, limit: usize) -> Result<Vec<u8>, ModelError> {
    let (mut body, mut bytes) = (Vec::new(), response.bytes_stream());
    while let Some(chunk) = bytes.next().await {
        let chunk = chunk.map_err(transport)?;
        if body.len() + chunk.len() > limit {
            return Err(ModelError::TooLarge {
                what: "the answer",
                limit,
            });
        }
        body.extend_from_slice(&chunk);
    }
    Ok(body)
}

/// The address under `base_url` that ends in `tail`, for example `/chat/completions`. A base URL that already ends so is
/// taken as it is.
pub(crate) fn endpoint(base_url: &str, tail: &str) -> Result<Url, ModelError> {
    let invalid = |what: String| ModelError::InvalidRequest { what };
    let base = base_url.trim().trim_end_matches('/');
    let mut url =
        Url::parse(base).map_err(|error| invalid(format!("the base URL of the model is not one: {error}")))?;
    if !matches!(url.scheme(), "http" | "https") || url.host().is_none() {
        return Err(invalid(
            "the base URL of the model must begin with http:// or https://".to_owned(),
        ));
    }
    let path = url.path().trim_end_matches('/');
    let path = format!("{}{tail}", path.strip_suffix(tail).unwrap_or(path));
    url.set_path(&path);
    Ok(url)
}

fn is_loopback(url: &Url) -> bool {
    match url.host() {
        Some(Host::Domain(name)) => name == "localhost",
        Some(Host::Ipv4(address)) => address.is_loopback(),
        Some(Host::Ipv6(address)) => address.is_loopback(),
        None => false,
    }
}

fn transport(error: reqwest::Error) -> ModelError {
    if error.is_timeout() && !error.is_connect() {
        return ModelError::TimedOut;
    }
    ModelError::Unreachable {
        message: steward_base::error_chain(&error.without_url()),
    }
}

/// The HTTP client needs a process-wide TLS provider; ring is the one that this product is built with.
fn ensure_tls_provider() {
    if rustls::crypto::CryptoProvider::get_default().is_none() {
        // Another thread may have been faster; either way one is there afterwards.
        drop(rustls::crypto::ring::default_provider().install_default());
    }
}
