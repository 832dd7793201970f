//! A provider whose calls are seen: a span, how long it took, what it consumed and what that cost.

use std::sync::Arc;

use async_trait::async_trait;
use futures::StreamExt as _;
use steward_base::{Clock, Fault as _};
use steward_model::{
    CacheTtl, Continuation, Cost, Delta, DeltaStream, FinishReason, ModelError, ModelRequest, Prepared, PriceBook,
    Provider, Rendered, Usage, cost,
};
use steward_runtime::genai::{Operation, Tokens};
use tracing::Instrument as _;

use crate::metrics::{Labels, ModelMetrics};

/// What all measured providers share.
#[derive(Clone)]
pub(super) struct Meter {
    pub(super) vendor: String,
    /// What a write to the provider's cache is priced by.
    pub(super) cache: CacheTtl,
    pub(super) prices: Arc<PriceBook>,
    pub(super) clock: Arc<dyn Clock>,
    pub(super) metrics: ModelMetrics,
}

impl Meter {
    /// What a call cost by today's prices.
    pub(super) fn cost(&self, model: &str, usage: &Usage) -> Cost {
        let prompt = usage.input.unwrap_or(0);
        let row = self.prices.row(&self.vendor, model, self.clock.now(), prompt);
        cost(usage, row, self.cache)
    }
}

/// The provider, for one purpose.
pub(super) struct Measured {
    pub(super) inner: Arc<dyn Provider>,
    pub(super) meter: Meter,
    pub(super) purpose: &'static str,
}

#[async_trait]
impl Provider for Measured {
    async fn send(&self, prepared: Prepared) -> Result<DeltaStream, ModelError> {
        let model = &prepared.request.model;
        let mut call = Call {
            operation: self.meter.metrics.calls.begin(&self.meter.vendor, model),
            labels: Labels::new(&self.meter.vendor, model, self.purpose),
            meter: self.meter.clone(),
            model: model.clone(),
        };
        let span = call.operation.span().clone();
        match self.inner.send(prepared).instrument(span).await {
            // Dropping the stream drops the call with it, which is then counted as given up.
            Ok(stream) => Ok(stream.inspect(move |delta| call.see(delta)).boxed()),
            Err(error) => {
                call.operation.failed(error.reason());
                Err(error)
            }
        }
    }

    fn rendered(&self, request: &ModelRequest, continuation: &Continuation) -> Result<Rendered, ModelError> {
        self.inner.rendered(request, continuation)
    }
}

struct Call {
    operation: Operation,
    labels: Labels,
    meter: Meter,
    model: String,
}

impl Call {
    fn see(&mut self, delta: &Result<Delta, ModelError>) {
        match delta {
            Ok(Delta::Retrying { error, .. }) => self.meter.metrics.retried(&self.labels, error.reason()),
            Ok(Delta::Finish { reason, usage, .. }) => self.answered(*reason, usage),
            Ok(Delta::Text(_) | Delta::ToolCallStarted { .. } | Delta::ToolCall(_)) => {}
            Err(error) => self.operation.failed(error.reason()),
        }
    }

    fn answered(&mut self, reason: FinishReason, usage: &Usage) {
        let cost = self.meter.cost(&self.model, usage);
        self.meter.metrics.consumed(&self.labels, usage, cost);
        let tokens = Tokens {
            input: usage.input,
            cache_read: usage.cached_input,
            cache_write: usage.cache_write,
            output: usage.output,
        };
        self.operation.answered(finish_word(reason), tokens);
    }
}

const fn finish_word(reason: FinishReason) -> &'static str {
    match reason {
        FinishReason::Stop => "stop",
        FinishReason::ToolCalls => "tool_calls",
        FinishReason::Length => "length",
        FinishReason::Filtered => "content_filter",
        FinishReason::Other => "other",
    }
}
