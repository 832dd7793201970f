//! Model providers: neutral requests in, deltas out, and one adapter for every server that speaks the OpenAI chat
//! completions protocol.
//!
//! Three things are decided here and nowhere else. The bytes of a request are a pure function of the request
//! ([`render()`]), so that the provider's prefix cache can be hit and a break can be measured (`P-4`, [`prefix`]).
//! Whatever a server sends is bounded and never trusted to be well-formed ([`sse`], [`openai`]). An error keeps its class
//! and never contains a credential ([`ModelError`]). Conversations, budgets and tools are none of this crate's business.
#![warn(missing_docs)]

pub mod error;
pub mod message;
pub mod openai;
pub mod prefix;
pub mod provider;
mod redact;
pub mod render;
pub mod retry;
pub mod secret;
pub mod sse;
pub mod tools;
pub mod usage;

pub use error::ModelError;
pub use message::{Message, ModelRequest, ToolCall, ToolChoice};
pub use openai::{OpenAiConfig, OpenAiProvider};
pub use prefix::{PrefixSegment, PrefixState, PrefixVerdict};
pub use provider::{Delta, DeltaStream, FinishReason, Provider, Reply, collect};
pub use render::{Rendered, Segments, WireOptions, render, render_with};
pub use retry::{RetryPolicy, Retrying, Sleeper, TokioSleeper};
pub use secret::Secret;
pub use tools::{ToolSpec, canonical_tools, parse_tools};
pub use usage::Usage;
