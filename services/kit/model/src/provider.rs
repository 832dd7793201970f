//! What a provider does: it takes a request and yields deltas until a finish or an error.

use std::time::Duration;

use async_trait::async_trait;
use futures::StreamExt;
use futures::stream::BoxStream;
use serde::{Deserialize, Serialize};

use crate::error::ModelError;
use crate::message::{ModelRequest, ToolCall};
use crate::usage::Usage;

/// A running answer. Dropping it closes the connection.
pub type DeltaStream = BoxStream<'static, Result<Delta, ModelError>>;

/// A model behind some protocol.
#[async_trait]
pub trait Provider: Send + Sync {
    /// Asks the model. A complete answer ends with [`Delta::Finish`]; an error is the stream's last item.
    ///
    /// # Errors
    /// Whatever went wrong before an answer began.
    async fn stream(&self, request: ModelRequest) -> Result<DeltaStream, ModelError>;
}

/// A piece of an answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Delta {
    /// The attempt failed before anything was passed on; another one follows after `wait`.
    Retrying {
        /// Number of the attempt that failed, from 1.
        attempt: u32,
        /// How long the next one is held back.
        wait: Duration,
        /// Why it failed.
        error: ModelError,
    },
    /// More text.
    Text(String),
    /// A call has begun; for display only, its arguments are not there yet.
    ToolCallStarted {
        /// Position among the calls of this answer, in order of appearance.
        position: usize,
        /// The tool's name.
        name: String,
    },
    /// A whole call. All calls come after the last text, in the model's order.
    ToolCall(ToolCall),
    /// The answer is complete.
    Finish {
        /// Why the model stopped.
        reason: FinishReason,
        /// What it consumed.
        usage: Usage,
    },
}

/// Why a model stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FinishReason {
    /// It was done.
    Stop,
    /// It wants its calls answered.
    ToolCalls,
    /// It ran into the limit of the answer; the last call may be cut.
    Length,
    /// The provider withheld the rest.
    Filtered,
    /// Something the protocol does not name.
    Other,
}

/// A whole answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reply {
    /// The text.
    pub content: String,
    /// The calls, in the model's order.
    pub tool_calls: Vec<ToolCall>,
    /// Why the model stopped.
    pub finish: FinishReason,
    /// What it consumed.
    pub usage: Usage,
}

impl Reply {
    /// Neither text nor a call.
    pub fn is_empty(&self) -> bool {
        self.content.trim().is_empty() && self.tool_calls.is_empty()
    }
}

/// Reads a stream to its end and shows each delta to `watch` on the way.
///
/// # Errors
/// The stream's error, or [`ModelError::BrokenOff`] when it ends without a finish.
pub async fn collect(mut stream: DeltaStream, mut watch: impl FnMut(&Delta) + Send) -> Result<Reply, ModelError> {
    let (mut content, mut tool_calls) = (String::new(), Vec::new());
    while let Some(delta) = stream.next().await {
        let delta = delta?;
        watch(&delta);
        match delta {
            Delta::Text(text) => content.push_str(&text),
            Delta::ToolCall(call) => tool_calls.push(call),
            Delta::Finish { reason, usage } => {
                return Ok(Reply {
                    content,
                    tool_calls,
                    finish: reason,
                    usage,
                });
            }
            Delta::Retrying { .. } | Delta::ToolCallStarted { .. } => {}
        }
    }
    Err(ModelError::BrokenOff)
}
