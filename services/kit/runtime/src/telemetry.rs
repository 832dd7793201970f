//! Logs, traces and metrics of a process. Installed by mains through [`crate::run`], never by libraries or tests of
//! libraries.
//!
//! Logs go to stderr: readable on a terminal, JSON elsewhere; the filter is `STEWARD_LOG`. Trace ids are made and
//! passed on in any case, so that a log line or an error can be followed across services; spans and metrics leave the
//! process only when an OTLP endpoint is set. Metrics can also be read over HTTP, in Prometheus' text form.
//!
//! Nothing that people or models say, no memory, no token and no key belongs into any of the three. Whoever adds a
//! field or a label takes an id, a count, a duration or a word from a closed list.

mod metrics;
pub(crate) mod prometheus;
mod traces;

use std::io::IsTerminal as _;
use std::net::SocketAddr;
use std::time::Duration;

use opentelemetry::trace::TracerProvider as _;
use opentelemetry::{KeyValue, global};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::metrics::SdkMeterProvider;
use opentelemetry_sdk::propagation::TraceContextPropagator;
use opentelemetry_sdk::trace::SdkTracerProvider;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tracing_subscriber::filter::filter_fn;
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::util::SubscriberInitExt as _;
use tracing_subscriber::{EnvFilter, Layer};

use self::prometheus::Page;
use crate::boot::StartError;
use crate::config::{self, Problem};
use crate::tasks::Tasks;

/// What is logged unless `STEWARD_LOG` or the configuration say otherwise.
pub const DEFAULT_FILTER: &str = "info,h2=warn,hyper=warn,tower=warn,sqlx=warn";

/// The `telemetry` section of the configuration.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// Log filter in the syntax of `tracing_subscriber::EnvFilter`; `STEWARD_LOG` overrides it. Traces do not depend on it.
    pub filter: String,
    /// Shape of the log lines.
    pub format: Format,
    /// OTLP/gRPC endpoint for traces and metrics, for example `http://127.0.0.1:4317`. Absent: no export.
    pub otlp_endpoint: Option<String>,
    /// Share of traces that are exported, 0 to 1.
    pub sample_ratio: f64,
    /// Seconds between two exports of the metrics to the OTLP endpoint.
    pub metrics_seconds: u32,
    /// Address on which metrics can be read in Prometheus' text form, at `/metrics`: `127.0.0.1:9464`. Absent: nowhere.
    /// Anyone who reaches it may read.
    pub prometheus_listen: Option<String>,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            filter: DEFAULT_FILTER.to_owned(),
            format: Format::Auto,
            otlp_endpoint: None,
            sample_ratio: 1.0,
            metrics_seconds: 60,
            prometheus_listen: None,
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
        let has_scheme = |endpoint: &String| endpoint.starts_with("http://") || endpoint.starts_with("https://");
        if !self.otlp_endpoint.as_ref().is_none_or(has_scheme) {
            problems.push(Problem::new("otlp_endpoint", "must begin with http:// or https://"));
        }
        if self.metrics_seconds == 0 {
            problems.push(Problem::new("metrics_seconds", "must be at least 1"));
        }
        let wrong = |listen: &String| listen.parse::<SocketAddr>().is_err();
        if self.prometheus_listen.as_ref().is_some_and(wrong) {
            problems.push(Problem::new("prometheus_listen", "must be an IP address and a port"));
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
    /// `service.name` of the process in traces and metrics: `steward`, `memory-service`, …
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

    fn resource(&self) -> Resource {
        Resource::builder()
            .with_service_name(self.service.clone())
            .with_attribute(KeyValue::new("service.version", env!("CARGO_PKG_VERSION")))
            .build()
    }

    fn interval(&self) -> Duration {
        Duration::from_secs(self.config.metrics_seconds.max(1).into())
    }
}

/// Flushes what was not exported yet when it is dropped. Dropping may block for some seconds.
#[derive(Debug)]
#[must_use = "traces and metrics are flushed when the guard is dropped"]
pub struct Guard {
    traces: SdkTracerProvider,
    metrics: Option<SdkMeterProvider>,
    page: Option<Page>,
}

impl Guard {
    /// Makes the metrics readable over HTTP if the configuration says so; the address is logged. The task ends with the
    /// first soft stop.
    pub async fn serve(&self, tasks: &Tasks) -> Result<(), StartError> {
        match &self.page {
            Some(page) => page.serve(tasks).await,
            None => Ok(()),
        }
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        // Nobody is left to tell when the last spans and counts cannot be delivered.
        let _ = self.traces.shutdown();
        if let Some(metrics) = &self.metrics {
            let _ = metrics.shutdown();
        }
    }
}

/// Installs logs, traces and metrics for the whole process. Needs a tokio runtime; fails when called twice.
pub fn install(options: &Options) -> Result<Guard, StartError> {
    let wanted = config::environment_value("STEWARD_LOG").unwrap_or_else(|| options.config.filter.clone());
    let filter = EnvFilter::try_new(&wanted).map_err(|error| StartError::Config {
        problems: vec![Problem::new("STEWARD_LOG", format!("is not a log filter: {error}"))],
    })?;
    let traces = traces::provider(options)?;
    let (metrics, page) = metrics::provider(options)?.unzip();
    global::set_text_map_propagator(TraceContextPropagator::new());
    global::set_tracer_provider(traces.clone());
    if let Some(metrics) = &metrics {
        global::set_meter_provider(metrics.clone());
    }
    // Where in the source and on which thread is for debuggers; the log has it. How long a span was idle nobody asks, and
    // who needs a context takes it from the span: both would cost something at every poll of every future.
    let spans = tracing_opentelemetry::layer()
        .with_location(false)
        .with_threads(false)
        .with_tracked_inactivity(false)
        .with_context_activation(false)
        .with_tracer(traces.tracer("steward"))
        .with_filter(filter_fn(traces::belongs));
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
        .with(spans)
        .with(lines.with_filter(filter))
        .try_init()
        .map_err(|error| StartError::new("install telemetry", error))?;
    Ok(Guard {
        traces,
        metrics,
        page: page.flatten(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everything_that_is_wrong_is_reported() {
        let config = Config {
            filter: "steward=loud=no".to_owned(),
            sample_ratio: 2.0,
            otlp_endpoint: Some("collector:4317".to_owned()),
            metrics_seconds: 0,
            prometheus_listen: Some("9464".to_owned()),
            ..Config::default()
        };
        let paths: Vec<_> = config.validate().into_iter().map(|problem| problem.path).collect();
        assert_eq!(
            paths,
            [
                "filter",
                "sample_ratio",
                "otlp_endpoint",
                "metrics_seconds",
                "prometheus_listen"
            ]
        );
        assert!(Config::default().validate().is_empty());
    }
}
