//! Which protocol a configured server speaks, and the provider for it.

use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::anthropic::{AnthropicConfig, AnthropicOptions, AnthropicProvider};
use crate::error::ModelError;
use crate::openai::{OpenAiConfig, OpenAiProvider};
use crate::provider::Provider;
use crate::render::WireOptions;
use crate::secret::Secret;

/// A protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub enum ProviderKind {
    /// OpenAI chat completions, the one that most servers speak.
    #[default]
    #[serde(rename = "openai")]
    OpenAi,
    /// Anthropic messages.
    #[serde(rename = "anthropic")]
    Anthropic,
}

/// How to reach a server of either protocol.
#[derive(Debug, Clone)]
pub struct ProviderConfig {
    /// Its protocol.
    pub kind: ProviderKind,
    /// Base URL; each protocol appends its path.
    pub base_url: String,
    /// The key, sent in the header that the protocol has for it.
    pub api_key: Option<Secret>,
    /// Longest time to open a connection.
    pub connect_timeout: Duration,
    /// Longest silence between two reads, the wait for the first byte included.
    pub read_timeout: Duration,
    /// Dialect of a server of chat completions; of no meaning for the other protocol.
    pub openai: WireOptions,
    /// Choices within the messages protocol; of no meaning for the other one.
    pub anthropic: AnthropicOptions,
}

impl ProviderConfig {
    /// A server at `base_url` with default limits: 10 s to connect, 120 s of silence.
    pub fn new(kind: ProviderKind, base_url: impl Into<String>, api_key: Option<Secret>) -> Self {
        Self {
            kind,
            base_url: base_url.into(),
            api_key,
            connect_timeout: Duration::from_secs(10),
            read_timeout: Duration::from_mins(2),
            openai: WireOptions::default(),
            anthropic: AnthropicOptions::default(),
        }
    }

    /// Whose models and prices these are, for [`crate::PriceBook::row`].
    pub fn vendor(&self) -> &str {
        match self.kind {
            ProviderKind::OpenAi => "openai",
            ProviderKind::Anthropic => &self.anthropic.vendor,
        }
    }

    /// Checks the settings and builds the provider; nothing is sent.
    ///
    /// # Errors
    /// [`ModelError::InvalidRequest`] when the base URL is not an http or https address or a header cannot be sent.
    pub fn build(self) -> Result<Arc<dyn Provider>, ModelError> {
        Ok(match self.kind {
            ProviderKind::OpenAi => Arc::new(OpenAiProvider::new(OpenAiConfig {
                base_url: self.base_url,
                api_key: self.api_key,
                connect_timeout: self.connect_timeout,
                read_timeout: self.read_timeout,
                wire: self.openai,
            })?),
            ProviderKind::Anthropic => Arc::new(AnthropicProvider::new(AnthropicConfig {
                base_url: self.base_url,
                api_key: self.api_key,
                connect_timeout: self.connect_timeout,
                read_timeout: self.read_timeout,
                options: self.anthropic,
            })?),
        })
    }
}
