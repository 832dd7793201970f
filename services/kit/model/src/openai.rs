//! Any server that speaks OpenAI chat completions: one POST, answered by a stream of events (or, by servers that do not
//! stream, by one JSON document).
//!
//! Limits stand on everything that comes in. The time limit is between bytes, not over the whole answer, since a long
//! answer is not a dead one. Redirects are not followed: a key goes to the configured host or nowhere.

mod assemble;

use std::collections::HashSet;
use std::fmt;
use std::time::Duration;

use async_trait::async_trait;
use futures::StreamExt;
use futures::stream::BoxStream;
use reqwest::header::{ACCEPT, CONTENT_TYPE, HeaderMap, RETRY_AFTER};
use url::{Host, Url};

use crate::error::ModelError;
use crate::message::{Message, ModelRequest};
use crate::provider::{Delta, DeltaStream, Provider};
use crate::render::{WireOptions, render_with};
use crate::secret::Secret;
use crate::sse::SseDecoder;

use assemble::Assembler;

/// Most bytes of one event.
const EVENT_LIMIT: usize = 4 << 20;
/// Most bytes of an error body that are looked at.
const ERROR_BODY_LIMIT: usize = 64 << 10;
/// Most bytes of an answer that comes as one document.
const DOCUMENT_LIMIT: usize = 16 << 20;

/// How to reach a server.
#[derive(Debug, Clone)]
pub struct OpenAiConfig {
    /// Base URL, for example `https://api.example.com/v1`; `/chat/completions` is appended.
    pub base_url: String,
    /// Key for the `Authorization` header; local servers often need none.
    pub api_key: Option<Secret>,
    /// Longest time to open a connection.
    pub connect_timeout: Duration,
    /// Longest silence between two reads, the wait for the first byte included.
    pub read_timeout: Duration,
    /// Dialect of the server.
    pub wire: WireOptions,
}

impl OpenAiConfig {
    /// A server at `base_url` with default limits: 10 s to connect, 120 s of silence.
    pub fn new(base_url: impl Into<String>, api_key: Option<Secret>) -> Self {
        Self {
            base_url: base_url.into(),
            api_key,
            connect_timeout: Duration::from_secs(10),
            read_timeout: Duration::from_mins(2),
            wire: WireOptions::default(),
        }
    }
}

/// A provider over HTTP.
#[derive(Clone)]
pub struct OpenAiProvider {
    http: reqwest::Client,
    endpoint: Url,
    api_key: Option<Secret>,
    wire: WireOptions,
}

impl fmt::Debug for OpenAiProvider {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OpenAiProvider")
            .field("host", &self.endpoint.host_str())
            .finish_non_exhaustive()
    }
}

impl OpenAiProvider {
    /// Checks the address and builds the client; nothing is sent.
    ///
    /// # Errors
    /// [`ModelError::InvalidRequest`] when the base URL is not an http or https address.
    pub fn new(config: OpenAiConfig) -> Result<Self, ModelError> {
        let endpoint = endpoint(&config.base_url)?;
        ensure_tls_provider();
        let mut builder = reqwest::Client::builder()
            .connect_timeout(config.connect_timeout)
            .read_timeout(config.read_timeout)
            .redirect(reqwest::redirect::Policy::none())
            .user_agent(concat!("steward/", env!("CARGO_PKG_VERSION")));
        if is_loopback(&endpoint) {
            // A model on this machine is never behind the machine's proxy.
            builder = builder.no_proxy();
        }
        let http = builder
            .build()
            .map_err(|error| ModelError::NotAvailable { what: chain(&error) })?;
        Ok(Self {
            http,
            endpoint,
            api_key: config.api_key,
            wire: config.wire,
        })
    }

    async fn send(&self, request: &ModelRequest) -> Result<reqwest::Response, ModelError> {
        let body = render_with(request, &self.wire)?.body;
        let mut post = self.http.post(self.endpoint.clone()).body(body);
        post = post
            .header(CONTENT_TYPE, "application/json")
            .header(ACCEPT, "text/event-stream, application/json");
        if let Some(key) = &self.api_key {
            post = post.bearer_auth(key.expose());
        }
        let response = post.send().await.map_err(transport)?;
        let status = response.status();
        if status.is_success() {
            return Ok(response);
        }
        let retry_after = retry_after(response.headers());
        // A body that breaks off still has a status that says enough.
        let body = read_capped(response, ERROR_BODY_LIMIT).await.unwrap_or_default();
        let body = String::from_utf8_lossy(&body);
        Err(ModelError::from_http(
            status.as_u16(),
            retry_after,
            &body,
            self.api_key.as_ref(),
        ))
    }
}

#[async_trait]
impl Provider for OpenAiProvider {
    async fn stream(&self, request: ModelRequest) -> Result<DeltaStream, ModelError> {
        let response = self.send(&request).await?;
        let assembler = Assembler::new(known_call_ids(&request), request.messages.len(), self.api_key.clone());
        let content_type = response
            .headers()
            .get(CONTENT_TYPE)
            .and_then(|value| value.to_str().ok());
        if content_type.is_some_and(|value| value.starts_with("application/json")) {
            let document = read_capped(response, DOCUMENT_LIMIT).await?;
            let deltas = assembler.whole(&document)?;
            return Ok(futures::stream::iter(deltas.into_iter().map(Ok)).boxed());
        }
        Ok(decode(response, assembler))
    }
}

fn decode(response: reqwest::Response, mut assembler: Assembler) -> BoxStream<'static, Result<Delta, ModelError>> {
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
                assembler.event(&event.data, &mut deltas)?;
                for delta in deltas.drain(..) {
                    yield delta;
                }
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

fn known_call_ids(request: &ModelRequest) -> HashSet<String> {
    let mut ids = HashSet::new();
    for message in &request.messages {
        if let Message::Assistant { tool_calls, .. } = message {
            ids.extend(tool_calls.iter().map(|call| call.id.clone()));
        }
    }
    ids
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

fn endpoint(base_url: &str) -> Result<Url, ModelError> {
    let invalid = |what: String| ModelError::InvalidRequest { what };
    let base = base_url.trim().trim_end_matches('/');
    let base = base.strip_suffix("/chat/completions").unwrap_or(base);
    let mut url =
        Url::parse(base).map_err(|error| invalid(format!("the base URL of the model is not one: {error}")))?;
    if !matches!(url.scheme(), "http" | "https") || url.host().is_none() {
        return Err(invalid(
            "the base URL of the model must begin with http:// or https://".to_owned(),
        ));
    }
    let path = format!("{}/chat/completions", url.path().trim_end_matches('/'));
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

/// Only whole seconds are understood; a date says nothing that the back-off would not do as well.
fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    let millis = headers
        .get("retry-after-ms")
        .and_then(|value| value.to_str().ok()?.trim().parse::<f64>().ok());
    let seconds = headers
        .get(RETRY_AFTER)
        .and_then(|value| value.to_str().ok()?.trim().parse::<f64>().ok());
    let wait = millis.map(|millis| millis / 1000.0).or(seconds)?;
    Duration::try_from_secs_f64(wait).ok()
}

fn transport(error: reqwest::Error) -> ModelError {
    if error.is_timeout() && !error.is_connect() {
        return ModelError::TimedOut;
    }
    ModelError::Unreachable {
        message: chain(&error.without_url()),
    }
}

fn chain(error: &reqwest::Error) -> String {
    steward_base::error_chain(error)
}

/// The HTTP client needs a process-wide TLS provider; ring is the one that this product is built with.
fn ensure_tls_provider() {
    if rustls::crypto::CryptoProvider::get_default().is_none() {
        // Another thread may have been faster; either way one is there afterwards.
        drop(rustls::crypto::ring::default_provider().install_default());
    }
}

#[cfg(test)]
mod tests;
