//! Any server that speaks OpenAI chat completions, streamed or (by servers that do not stream) as one JSON document.

mod assemble;

use std::fmt;
use std::time::Duration;

use async_trait::async_trait;

use crate::assemble::CallIds;
use crate::error::ModelError;
use crate::http::{KeyHeader, Limits, Server, answer, endpoint};
use crate::message::ModelRequest;
use crate::native::Continuation;
use crate::provider::{DeltaStream, Prepared, Provider};
use crate::render::{Rendered, WireOptions, render_with};
use crate::secret::Secret;

use assemble::Assembler;

const PATH: &str = "/chat/completions";

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
    server: Server,
    wire: WireOptions,
}

impl fmt::Debug for OpenAiProvider {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OpenAiProvider")
            .field("host", &self.server.host())
            .finish_non_exhaustive()
    }
}

impl OpenAiProvider {
    /// Checks the address and builds the client; nothing is sent.
    ///
    /// # Errors
    /// [`ModelError::InvalidRequest`] when the base URL is not an http or https address or the key cannot be sent.
    pub fn new(config: OpenAiConfig) -> Result<Self, ModelError> {
        let limits = Limits {
            connect: config.connect_timeout,
            read: config.read_timeout,
        };
        let endpoint = endpoint(&config.base_url, PATH)?;
        Ok(Self {
            server: Server::new(endpoint, config.api_key, KeyHeader::Bearer, limits)?,
            wire: config.wire,
        })
    }
}

#[async_trait]
impl Provider for OpenAiProvider {
    fn rendered(&self, request: &ModelRequest, _continuation: &Continuation) -> Result<Rendered, ModelError> {
        render_with(request, &self.wire)
    }

    async fn send(&self, prepared: Prepared) -> Result<DeltaStream, ModelError> {
        let response = self.server.post(prepared.rendered.body).await?;
        let assembler = Assembler::new(CallIds::of(&prepared.request), self.server.key().cloned());
        answer(response, assembler).await
    }
}

#[cfg(test)]
mod tests;
