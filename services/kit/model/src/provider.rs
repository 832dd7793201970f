//! What a provider does: it takes a request and yields deltas until a finish or an error.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use futures::StreamExt;
use futures::stream::BoxStream;
use serde::{Deserialize, Serialize};

use crate::error::ModelError;
use crate::message::{ModelRequest, ToolCall};
use crate::native::{Continuation, NativeBlocks};
use crate::render::Rendered;
use crate::usage::Usage;

/// A running answer. Dropping it closes the connection.
pub type DeltaStream = BoxStream<'static, Result<Delta, ModelError>>;

/// A request that is ready to be sent, as often as need be: it was rendered once, and clones share everything.
#[derive(Debug, Clone)]
pub struct Prepared {
    /// What is asked.
    pub request: Arc<ModelRequest>,
    /// What the session keeps for its provider.
    pub continuation: Arc<Continuation>,
    /// Both in the provider's form.
    pub rendered: Rendered,
}

/// A model behind some protocol.
#[async_trait]
pub trait Provider: Send + Sync {
    /// The request as it is to be sent, for the judgement on its prefix as well (`P-4`).
    ///
    /// # Errors
    /// [`ModelError::InvalidRequest`] when the request cannot be put into the provider's form.
    fn rendered(&self, request: &ModelRequest, continuation: &Continuation) -> Result<Rendered, ModelError>;

    /// Asks the model. A complete answer ends with [`Delta::Finish`]; an error is the stream's last item.
    ///
    /// # Errors
    /// Whatever went wrong before an answer began.
    async fn send(&self, prepared: Prepared) -> Result<DeltaStream, ModelError>;

    /// Makes a request ready for [`Provider::send`].
    ///
    /// # Errors
    /// As [`Provider::rendered`].
    fn prepare(&self, request: ModelRequest, continuation: Continuation) -> Result<Prepared, ModelError> {
        Ok(Prepared {
            rendered: self.rendered(&request, &continuation)?,
            request: Arc::new(request),
            continuation: Arc::new(continuation),
        })
    }

    /// Asks the model for a session that keeps nothing for its provider.
    ///
    /// # Errors
    /// As [`Provider::rendered`] and [`Provider::send`].
    async fn stream(&self, request: ModelRequest) -> Result<DeltaStream, ModelError> {
        self.stream_with(request, Continuation::default()).await
    }

    /// Asks the model.
    ///
    /// # Errors
    /// As [`Provider::rendered`] and [`Provider::send`].
    async fn stream_with(&self, request: ModelRequest, continuation: Continuation) -> Result<DeltaStream, ModelError> {
        self.send(self.prepare(request, continuation)?).await
    }
}

#[async_trait]
impl<P: Provider + ?Sized> Provider for Arc<P> {
    fn rendered(&self, request: &ModelRequest, continuation: &Continuation) -> Result<Rendered, ModelError> {
        (**self).rendered(request, continuation)
    }

    async fn send(&self, prepared: Prepared) -> Result<DeltaStream, ModelError> {
        (**self).send(prepared).await
    }
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
        /// The answer in the provider's own form, where that says more than text and calls. To be kept with the message
        /// and given back in [`Continuation::natives`].
        native: Option<NativeBlocks>,
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

/// A whole answer with what its provider wants back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answer {
    /// What was said and called.
    pub reply: Reply,
    /// The provider's own form of it, if it has to be kept.
    pub native: Option<NativeBlocks>,
}

/// Reads a stream to its end and shows each delta to `watch` on the way.
///
/// # Errors
/// The stream's error, or [`ModelError::BrokenOff`] when it ends without a finish.
pub async fn collect(stream: DeltaStream, watch: impl FnMut(&Delta) + Send) -> Result<Reply, ModelError> {
    Ok(collect_answer(stream, watch).await?.reply)
}

/// As [`collect`], and keeps the native form.
///
/// # Errors
/// As [`collect`].
pub async fn collect_answer(
    mut stream: DeltaStream,
    mut watch: impl FnMut(&Delta) + Send,
) -> Result<Answer, ModelError> {
    let (mut content, mut tool_calls) = (String::new(), Vec::new());
    while let Some(delta) = stream.next().await {
        let delta = delta?;
        watch(&delta);
        match delta {
            Delta::Text(text) => content.push_str(&text),
            Delta::ToolCall(call) => tool_calls.push(call),
            Delta::Finish { reason, usage, native } => {
                let reply = Reply {
                    content,
                    tool_calls,
                    finish: reason,
                    usage,
                };
                return Ok(Answer { reply, native });
            }
            Delta::Retrying { .. } | Delta::ToolCallStarted { .. } => {}
        }
    }
    Err(ModelError::BrokenOff)
}
