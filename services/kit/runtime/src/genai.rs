//! A call of a model in the words of OpenTelemetry's conventions for generative AI. They are still moving, so their names
//! stand here and nowhere else.
//!
//! The conventions also have places for prompts, answers and tool arguments. They are left out on purpose: what people
//! and models say does not belong into telemetry.

use std::time::Instant;

use opentelemetry::metrics::{Histogram, Meter};
use opentelemetry::{Array, KeyValue, StringValue, Value};
use tracing::Span;
use tracing_opentelemetry::OpenTelemetrySpanExt as _;

/// What was asked for; always [`CHAT`] here.
pub const OPERATION_NAME: &str = "gen_ai.operation.name";
/// The conversation operation.
pub const CHAT: &str = "chat";
/// Whose model it is.
pub const PROVIDER_NAME: &str = "gen_ai.provider.name";
/// The model that was asked.
pub const REQUEST_MODEL: &str = "gen_ai.request.model";
/// Why the model stopped.
pub const FINISH_REASONS: &str = "gen_ai.response.finish_reasons";
/// Tokens of the prompt, those of a cache included.
pub const INPUT_TOKENS: &str = "gen_ai.usage.input_tokens";
/// Tokens of the answer.
pub const OUTPUT_TOKENS: &str = "gen_ai.usage.output_tokens";
/// Tokens of the prompt that were read from the provider's cache.
pub const CACHE_READ_TOKENS: &str = "gen_ai.usage.cache_read.input_tokens";
/// Tokens of the prompt that were written to the provider's cache.
pub const CACHE_WRITE_TOKENS: &str = "gen_ai.usage.cache_creation.input_tokens";
/// Which tokens a number counts: `input` or `output`.
pub const TOKEN_TYPE: &str = "gen_ai.token.type";
/// The class of an error.
pub const ERROR_TYPE: &str = "error.type";
/// Histogram of how long calls take, in seconds.
pub const OPERATION_DURATION: &str = "gen_ai.client.operation.duration";
/// Histogram of the tokens of a call.
pub const TOKEN_USAGE: &str = "gen_ai.client.token.usage";

/// What a call consumed, as far as the provider said.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Tokens {
    /// All tokens of the prompt.
    pub input: Option<u64>,
    /// The part of them that was read from a cache.
    pub cache_read: Option<u64>,
    /// The part of them that was written to a cache.
    pub cache_write: Option<u64>,
    /// All tokens of the answer.
    pub output: Option<u64>,
}

/// The instruments for calls of models.
#[derive(Debug, Clone)]
pub struct Operations {
    duration: Histogram<f64>,
    tokens: Histogram<u64>,
}

impl Operations {
    /// On `meter`.
    pub fn new(meter: &Meter) -> Self {
        // The boundaries that the conventions advise: powers of two in hundredths of a second, powers of four in tokens.
        let seconds = (0..14).map(|power| 0.01 * f64::from(1_u32 << power)).collect();
        let tokens = (0..14).map(|power| f64::from(1_u32 << (2 * power))).collect();
        Self {
            duration: meter
                .f64_histogram(OPERATION_DURATION)
                .with_description("Time from a model call to the end of its answer, attempts that failed included.")
                .with_unit("s")
                .with_boundaries(seconds)
                .build(),
            tokens: meter
                .u64_histogram(TOKEN_USAGE)
                .with_description("Tokens of a model call.")
                .with_unit("{token}")
                .with_boundaries(tokens)
                .build(),
        }
    }

    /// A call begins. It ends with [`Operation::answered`] or [`Operation::failed`]; dropped before, it was given up.
    pub fn begin(&self, provider: &str, model: &str) -> Operation {
        let attributes = vec![
            KeyValue::new(OPERATION_NAME, CHAT),
            KeyValue::new(PROVIDER_NAME, provider.to_owned()),
            KeyValue::new(REQUEST_MODEL, model.to_owned()),
        ];
        let span = tracing::info_span!(
            "model call",
            otel.name = format!("{CHAT} {model}"),
            otel.kind = "client"
        );
        for KeyValue { key, value, .. } in attributes.clone() {
            span.set_attribute(key, value);
        }
        Operation {
            instruments: self.clone(),
            attributes,
            span,
            begun: Instant::now(),
            ended: false,
        }
    }
}

/// One call.
#[derive(Debug)]
pub struct Operation {
    instruments: Operations,
    attributes: Vec<KeyValue>,
    span: Span,
    begun: Instant,
    ended: bool,
}

impl Operation {
    /// The span around the call.
    pub const fn span(&self) -> &Span {
        &self.span
    }

    /// The answer is complete.
    pub fn answered(&mut self, finish: &'static str, tokens: Tokens) {
        let reasons = Array::String(vec![StringValue::from(finish)]);
        self.span.set_attribute(FINISH_REASONS, Value::Array(reasons));
        let counts = [
            (INPUT_TOKENS, tokens.input),
            (OUTPUT_TOKENS, tokens.output),
            (CACHE_READ_TOKENS, tokens.cache_read),
            (CACHE_WRITE_TOKENS, tokens.cache_write),
        ];
        for (name, count) in counts {
            if let Some(count) = count {
                self.span.set_attribute(name, i64::try_from(count).unwrap_or(i64::MAX));
            }
        }
        for (word, count) in [("input", tokens.input), ("output", tokens.output)] {
            if let Some(count) = count {
                let mut attributes = self.attributes.clone();
                attributes.push(KeyValue::new(TOKEN_TYPE, word));
                self.instruments.tokens.record(count, &attributes);
            }
        }
        self.end(None);
    }

    /// There is no answer, or only half of one; `class` is a word from a closed list.
    pub fn failed(&mut self, class: &'static str) {
        self.span.set_attribute(ERROR_TYPE, class);
        self.span.set_status(opentelemetry::trace::Status::error(class));
        self.end(Some(class));
    }

    fn end(&mut self, class: Option<&'static str>) {
        if std::mem::replace(&mut self.ended, true) {
            return;
        }
        let mut attributes = self.attributes.clone();
        attributes.extend(class.map(|class| KeyValue::new(ERROR_TYPE, class)));
        self.instruments
            .duration
            .record(self.begun.elapsed().as_secs_f64(), &attributes);
    }
}

impl Drop for Operation {
    fn drop(&mut self) {
        if !self.ended {
            self.failed("cancelled");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use opentelemetry::metrics::MeterProvider as _;
    use opentelemetry_sdk::metrics::SdkMeterProvider;
    use opentelemetry_sdk::metrics::data::{AggregatedMetrics, MetricData, ResourceMetrics, ScopeMetrics};
    use opentelemetry_sdk::metrics::reader::MetricReader as _;

    use crate::telemetry::prometheus::Reader;

    #[test]
    fn every_call_is_counted_once_by_how_it_ended() {
        let reader = Reader::default();
        let provider = SdkMeterProvider::builder().with_reader(reader.clone()).build();
        let operations = Operations::new(&provider.meter("test"));
        let mut answered = operations.begin("openai", "m");
        answered.answered(
            "stop",
            Tokens {
                input: Some(7),
                ..Tokens::default()
            },
        );
        drop(answered);
        operations.begin("openai", "m").failed("overloaded");
        drop(operations.begin("openai", "m"));

        let mut metrics = ResourceMetrics::default();
        reader.collect(&mut metrics).unwrap();
        let mut seen = Vec::new();
        for metric in metrics.scope_metrics().flat_map(ScopeMetrics::metrics) {
            match metric.data() {
                AggregatedMetrics::F64(MetricData::Histogram(histogram)) => {
                    for point in histogram.data_points() {
                        let class = point.attributes().find(|pair| pair.key.as_str() == ERROR_TYPE);
                        let class = class.map_or("none".into(), |pair| pair.value.as_str().into_owned());
                        seen.push((metric.name().to_owned(), class, point.count()));
                    }
                }
                AggregatedMetrics::U64(MetricData::Histogram(histogram)) => {
                    for point in histogram.data_points() {
                        seen.push((metric.name().to_owned(), String::new(), point.sum()));
                    }
                }
                _ => panic!("only histograms"),
            }
        }
        seen.sort();
        let row = |name: &str, class: &str, count| (name.to_owned(), class.to_owned(), count);
        assert_eq!(
            seen,
            [
                row(OPERATION_DURATION, "cancelled", 1),
                row(OPERATION_DURATION, "none", 1),
                row(OPERATION_DURATION, "overloaded", 1),
                row(TOKEN_USAGE, "", 7),
            ]
        );
    }
}
