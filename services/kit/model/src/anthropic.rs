//! The Anthropic messages protocol, spoken by Anthropic and by servers that imitate it.
//!
//! Reasoning is kept as opaque blocks and goes back as it came to whoever wrote it ([`crate::NativeBlocks`]). Cache markers
//! stand at four places and never move bytes of the prefix (`P-5`, [`render()`]).

mod assemble;
mod blocks;
pub(crate) mod render;
mod wire;

use std::fmt;
use std::time::Duration;

use async_trait::async_trait;
use reqwest::header::HeaderName;
use serde::{Deserialize, Serialize};
use url::Url;

use crate::error::ModelError;
use crate::http::{KeyHeader, Limits, Server, answer, endpoint};
use crate::message::ModelRequest;
use crate::native::Continuation;
use crate::provider::{DeltaStream, Prepared, Provider};
use crate::render::Rendered;
use crate::secret::Secret;

use assemble::Assembler;

pub use render::render;

/// How long the provider keeps what a marker makes it cache. Longer costs more to write.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub enum CacheTtl {
    /// Five minutes, renewed by each use.
    #[default]
    #[serde(rename = "5m")]
    FiveMinutes,
    /// One hour, renewed by each use.
    #[serde(rename = "1h")]
    OneHour,
}

/// Whether the model is asked to reason before it answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Thinking {
    /// Nothing is said about it; the model does what it does by default.
    #[default]
    Unset,
    /// No reasoning.
    Off,
    /// The model decides how much.
    Adaptive,
    /// At most this many tokens (at least 1,024), for older models.
    Budget(u32),
}

/// What can be chosen about the protocol. None of it may change within a session without breaking its prefix.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AnthropicOptions {
    /// Who reads and signs reasoning at the other end. Blocks go back only to the vendor that they came from (`D-76`).
    pub vendor: String,
    /// The `anthropic-version` header.
    pub version: String,
    /// Values of the `anthropic-beta` header; none by default.
    pub betas: Vec<String>,
    /// Lifetime of cached prefixes; `None` sends no markers.
    pub cache: Option<CacheTtl>,
    /// Reasoning.
    pub thinking: Thinking,
    /// Limit of an answer in tokens where the request sets none: this protocol wants one always.
    pub max_tokens: u32,
}

impl Default for AnthropicOptions {
    fn default() -> Self {
        Self {
            vendor: "anthropic".to_owned(),
            version: "2023-06-01".to_owned(),
            betas: Vec::new(),
            cache: Some(CacheTtl::FiveMinutes),
            thinking: Thinking::Unset,
            max_tokens: 16_384,
        }
    }
}

/// How to reach a server.
#[derive(Debug, Clone)]
pub struct AnthropicConfig {
    /// Base URL, for example `https://api.anthropic.com`; `/v1/messages` is appended as far as it is missing.
    pub base_url: String,
    /// Key for the `x-api-key` header.
    pub api_key: Option<Secret>,
    /// Longest time to open a connection.
    pub connect_timeout: Duration,
    /// Longest silence between two reads, the wait for the first byte included.
    pub read_timeout: Duration,
    /// Choices within the protocol.
    pub options: AnthropicOptions,
}

impl AnthropicConfig {
    /// A server at `base_url` with default limits: 10 s to connect, 120 s of silence.
    pub fn new(base_url: impl Into<String>, api_key: Option<Secret>) -> Self {
        Self {
            base_url: base_url.into(),
            api_key,
            connect_timeout: Duration::from_secs(10),
            read_timeout: Duration::from_mins(2),
            options: AnthropicOptions::default(),
        }
    }
}

/// A provider over HTTP.
#[derive(Clone)]
pub struct AnthropicProvider {
    server: Server,
    options: AnthropicOptions,
}

impl fmt::Debug for AnthropicProvider {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AnthropicProvider")
            .field("host", &self.server.host())
            .field("options", &self.options)
            .finish_non_exhaustive()
    }
}

impl AnthropicProvider {
    /// Checks the address and builds the client; nothing is sent.
    ///
    /// # Errors
    /// [`ModelError::InvalidRequest`] when the base URL is not an http or https address or a header cannot be sent.
    pub fn new(config: AnthropicConfig) -> Result<Self, ModelError> {
        let limits = Limits {
            connect: config.connect_timeout,
            read: config.read_timeout,
        };
        let mut server = Server::new(
            messages_endpoint(&config.base_url)?,
            config.api_key,
            KeyHeader::XApiKey,
            limits,
        )?;
        let options = config.options;
        server.set(HeaderName::from_static("anthropic-version"), &options.version)?;
        if !options.betas.is_empty() {
            server.set(HeaderName::from_static("anthropic-beta"), &options.betas.join(","))?;
        }
        Ok(Self { server, options })
    }
}

#[async_trait]
impl Provider for AnthropicProvider {
    fn rendered(&self, request: &ModelRequest, continuation: &Continuation) -> Result<Rendered, ModelError> {
        render(request, continuation, &self.options)
    }

    async fn send(&self, prepared: Prepared) -> Result<DeltaStream, ModelError> {
        let Prepared {
            request, continuation, ..
        } = prepared;
        let response = match self.server.post(prepared.rendered.body).await {
            // Signatures are bound to what came before them: a planned break, or a key of another account, ends their
            // worth. The conversation is worth more than its reasoning.
            Err(error) if !continuation.natives.is_empty() && refuses_reasoning(&error) => {
                tracing::warn!(
                    kept = continuation.natives.len(),
                    "the provider refuses earlier reasoning; it is left out"
                );
                let bare = Continuation {
                    stable_len: continuation.stable_len,
                    ..Continuation::default()
                };
                self.server.post(self.rendered(&request, &bare)?.body).await?
            }
            other => other?,
        };
        answer(
            response,
            Assembler::new(&request, &self.options, self.server.key().cloned()),
        )
        .await
    }
}

fn refuses_reasoning(error: &ModelError) -> bool {
    let ModelError::Rejected { status: 400, message } = error else {
        return false;
    };
    let message = message.to_lowercase();
    message.contains("thinking")
        && ["signature", "different conversation", "cannot be modified"]
            .iter()
            .any(|sign| message.contains(sign))
}

fn messages_endpoint(base_url: &str) -> Result<Url, ModelError> {
    let base = endpoint(base_url, "")?;
    let path = base.path().trim_end_matches('/');
    if path.ends_with("/v1") || path.ends_with("/messages") {
        endpoint(base_url, "/messages")
    } else {
        endpoint(base_url, "/v1/messages")
    }
}

#[cfg(test)]
mod tests;
