//! Model providers: neutral requests in, deltas out, with one adapter for every server that speaks OpenAI chat completions
//! and one for the Anthropic messages protocol.
//!
//! Three things are decided here and nowhere else. The bytes of a request are a pure function of the request
//! ([`render()`]), so that the provider's prefix cache can be hit and a break can be measured (`P-4`, [`prefix`]).
//! Whatever a server sends is bounded and never trusted to be well-formed ([`sse`], [`openai`], [`anthropic`]). An error keeps its class
//! and never contains a credential ([`ModelError`]). Conversations, budgets and tools are none of this crate's business.
#![warn(missing_docs)]

pub mod anthropic;
mod assemble;
mod body;
pub mod config;
pub mod error;
mod http;
pub mod message;
pub mod native;
pub mod openai;
pub mod prefix;
pub mod prices;
pub mod provider;
mod redact;
pub mod render;
pub mod retry;
pub mod secret;
pub mod sse;
pub mod tools;
pub mod usage;

#[cfg(test)]
mod conformance;

pub use anthropic::{AnthropicConfig, AnthropicOptions, AnthropicProvider, CacheTtl, Thinking};
pub use config::{ProviderConfig, ProviderKind};
pub use error::ModelError;
pub use message::{Message, ModelRequest, ToolCall, ToolChoice};
pub use native::{Continuation, NativeBlocks};
pub use openai::{OpenAiConfig, OpenAiProvider};
pub use prefix::{PrefixJudge, PrefixSegment, PrefixState, PrefixVerdict};
pub use prices::{Cost, Money, PriceBook, PriceRow, Unpriced, cost};
pub use provider::{Answer, Delta, DeltaStream, FinishReason, Prepared, Provider, Reply, collect, collect_answer};
pub use render::{Rendered, Segments, WireOptions, render, render_with};
pub use retry::{RetryPolicy, Retrying, Sleeper, TokioSleeper};
pub use secret::Secret;
pub use tools::{ToolSpec, canonical_tools, parse_tools};
pub use usage::Usage;
