//! Logs and traces of a process. Installed by mains through [`crate::run`], never by libraries or tests of libraries.
//!
//! Logs go to stderr: readable on a terminal, JSON elsewhere; the filter is `STEWARD_LOG`. Trace ids are made and
//! passed on in any case, so that a log line or an error can be followed across services; spans are exported only
//! when an OTLP endpoint is set.

use std::io::IsTerminal as _;

use opentelemetry::trace::TracerProvider as _;
use opentelemetry::{KeyValue, global};
use opentelemetry_otlp::WithExportConfig as _;
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::propagation::TraceContextPropagator;
use opentelemetry_sdk::trace::{Sampler, SdkTracerProvider};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::util::SubscriberInitExt as _;
use tracing_subscriber::{EnvFilter, Layer};

use crate::boot::StartError;
use crate::config::{self, Problem};

/// What is logged unless `STEWARD_LOG` or the configuration say otherwise.
pub const DEFAULT_FILTER: &str = "info,h2=warn,hyper=warn,tower=warn,sqlx=warn";

/// The `telemetry` section of the configuration.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// Log filter in the syntax of `tracing_subscriber::EnvFilter`; `STEWARD_LOG` overrides it.
    pub filter: String,
    /// Shape of the log lines.
    pub format: Format,
    /// OTLP/gRPC endpoint for traces, for example `http://127.0.0.1:4317`. Absent: no export.
    pub otlp_endpoint: Option<String>,
    /// Share of traces that are exported, 0 to 1.
    pub sample_ratio: f64,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            filter: DEFAULT_FILTER.to_owned(),
            format: Format::Auto,
            otlp_endpoint: None,
            sample_ratio: 1.0,
        }
    }
}

impl Config {
    /// Everything that is wrong with it.
    pub fn validate(&self) -> Vec<Problem> {
        let mut problems = Vec::new();
        if let Err(error) = EnvFilter::try_new(&self.filter) {
            problems.push(Problem::new("filter", format!("is not a log filter: {error}")));
        }
        if !(0.0..=1.0).contains(&self.sample_ratio) {
            problems.push(Problem::new("sample_ratio", "must be between 0 and 1"));
        }
        problems
    }
}

/// Shape of the log lines.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Format {
    /// Readable when stderr is a terminal, JSON otherwise.
    #[default]
    Auto,
    /// For people.
    Pretty,
    /// One JSON object per line.
    Json,
}

/// What [`install`] needs.
#[derive(Debug, Clone)]
pub struct Options {
    /// `service.name` of the process in traces: `steward`, `memory-service`, …
    pub service: String,
    /// The configuration section.
    pub config: Config,
}

impl Options {
    /// The defaults for a process.
    pub fn new(service: impl Into<String>) -> Self {
        Self {
            service: service.into(),
            config: Config::default(),
        }
    }
}

/// Flushes what was not exported yet when it is dropped. Dropping may block for some seconds.
#[derive(Debug)]
#[must_use = "traces are flushed when the guard is dropped"]
pub struct Guard {
    provider: SdkTracerProvider,
}

impl Drop for Guard {
    fn drop(&mut self) {
        // Nobody is left to tell when the last spans cannot be delivered.
        let _ = self.provider.shutdown();
    }
}

/// Installs logs and traces for the whole process. Needs a tokio runtime; fails when called twice.
pub fn install(options: &Options) -> Result<Guard, StartError> {
    let wanted = config::environment_value("STEWARD_LOG").unwrap_or_else(|| options.config.filter.clone());
    let filter = EnvFilter::try_new(&wanted).map_err(|error| StartError::Config {
        problems: vec![Problem::new("STEWARD_LOG", format!("is not a log filter: {error}"))],
    })?;
    let provider = provider(options)?;
    global::set_text_map_propagator(TraceContextPropagator::new());
    global::set_tracer_provider(provider.clone());
    let traces = tracing_opentelemetry::layer().with_tracer(provider.tracer("steward"));
    let json = match options.config.format {
        Format::Auto => !std::io::stderr().is_terminal(),
        Format::Pretty => false,
        Format::Json => true,
    };
    let lines = if json {
        tracing_subscriber::fmt::layer()
            .json()
            .with_writer(std::io::stderr)
            .boxed()
    } else {
        tracing_subscriber::fmt::layer().with_writer(std::io::stderr).boxed()
    };
    tracing_subscriber::registry()
        .with(filter)
        .with(traces)
        .with(lines)
        .try_init()
        .map_err(|error| StartError::new("install telemetry", error))?;
    Ok(Guard { provider })
}

fn provider(options: &Options) -> Result<SdkTracerProvider, StartError> {
    let resource = Resource::builder()
        .with_service_name(options.service.clone())
        .with_attribute(KeyValue::new("service.version", env!("CARGO_PKG_VERSION")))
        .build();
    let builder = SdkTracerProvider::builder().with_resource(resource);
    let Some(endpoint) = &options.config.otlp_endpoint else {
        // Ids without recording: cheap, and a request can still be followed through the logs.
        return Ok(builder.with_sampler(Sampler::AlwaysOff).build());
    };
    let exporter = opentelemetry_otlp::SpanExporter::builder()
        .with_tonic()
        .with_endpoint(endpoint.clone())
        .build()
        .map_err(|error| StartError::new("set up the trace exporter", error))?;
    let sampler = Sampler::ParentBased(Box::new(Sampler::TraceIdRatioBased(options.config.sample_ratio)));
    Ok(builder.with_sampler(sampler).with_batch_exporter(exporter).build())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wrong_filter_and_ratio_are_both_reported() {
        let config = Config {
            filter: "steward=loud=no".to_owned(),
            sample_ratio: 2.0,
            ..Config::default()
        };
        let paths: Vec<_> = config.validate().into_iter().map(|problem| problem.path).collect();
        assert_eq!(paths, ["filter", "sample_ratio"]);
        assert!(Config::default().validate().is_empty());
    }
}
