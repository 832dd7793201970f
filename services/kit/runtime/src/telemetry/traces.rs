//! Which spans there are for the tracer, and which of them leave the process.

use opentelemetry::trace::{Link, SpanKind, TraceId};
use opentelemetry::{Context, KeyValue};
use opentelemetry_otlp::WithExportConfig as _;
use opentelemetry_sdk::trace::{Sampler, SamplingDecision, SamplingResult, SdkTracerProvider, ShouldSample};
use tracing::{Level, Metadata};

use super::Options;
use crate::boot::StartError;
use crate::tasks::TASK_SPAN;

/// What belongs into traces, whatever is logged: our own spans, and warnings and errors within them. Spans of libraries
/// say how they work, not what happens, and we do not know what they would say.
pub(super) fn belongs(metadata: &Metadata<'_>) -> bool {
    let most = if metadata.is_span() { Level::INFO } else { Level::WARN };
    metadata.target().starts_with("steward") && *metadata.level() <= most
}

pub(super) fn provider(options: &Options) -> Result<SdkTracerProvider, StartError> {
    let builder = SdkTracerProvider::builder().with_resource(options.resource());
    let Some(endpoint) = &options.config.otlp_endpoint else {
        // Ids without recording: cheap, and a request can still be followed through the logs.
        return Ok(builder.with_sampler(Sampler::AlwaysOff).build());
    };
    let exporter = opentelemetry_otlp::SpanExporter::builder()
        .with_tonic()
        .with_endpoint(endpoint.clone())
        .build()
        .map_err(|error| StartError::new("set up the trace exporter", error))?;
    let sampler = sampler(options.config.sample_ratio);
    Ok(builder.with_sampler(sampler).with_batch_exporter(exporter).build())
}

/// A trace is exported whole or not at all: what began it decides.
fn sampler(ratio: f64) -> Sampler {
    Sampler::ParentBased(Box::new(Roots {
        share: Sampler::TraceIdRatioBased(ratio),
    }))
}

/// Decides on traces that begin here. What a service does by itself all day, and questions after its health, would bury
/// the rest; a review, though done by such a task, belongs to the trace of its turn.
#[derive(Debug, Clone)]
struct Roots {
    share: Sampler,
}

impl ShouldSample for Roots {
    fn should_sample(
        &self,
        parent: Option<&Context>,
        trace: TraceId,
        name: &str,
        kind: &SpanKind,
        attributes: &[KeyValue],
        links: &[Link],
    ) -> SamplingResult {
        let mut result = self.share.should_sample(parent, trace, name, kind, attributes, links);
        if name == TASK_SPAN || name.starts_with("grpc.health.") {
            result.decision = SamplingDecision::Drop;
        }
        result
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use opentelemetry::trace::{Span as _, TraceContextExt as _, Tracer as _, TracerProvider as _};

    #[test]
    fn what_begins_a_trace_decides_for_all_of_it() {
        let provider = SdkTracerProvider::builder().with_sampler(sampler(1.0)).build();
        let tracer = provider.tracer("test");
        let recorded = |name: &'static str, around: &Context| tracer.start_with_context(name, around).is_recording();
        let alone = Context::new();
        assert!(recorded("steward.agent.v1.AgentService/RunTurn", &alone));
        assert!(!recorded(TASK_SPAN, &alone));
        assert!(!recorded("grpc.health.v1.Health/Check", &alone));

        let in_a_call = Context::new().with_span(tracer.start_with_context("call", &alone));
        assert!(recorded(TASK_SPAN, &in_a_call), "a task of a call is part of it");
        let in_a_loop = Context::new().with_span(tracer.start_with_context(TASK_SPAN, &alone));
        assert!(!recorded(
            "steward.recall.v1.SessionStoreService/ListDueReviews",
            &in_a_loop
        ));
    }

    #[test]
    fn without_a_share_nothing_is_exported() {
        let provider = SdkTracerProvider::builder().with_sampler(sampler(0.0)).build();
        assert!(
            !provider
                .tracer("test")
                .start_with_context("call", &Context::new())
                .is_recording()
        );
    }
}
