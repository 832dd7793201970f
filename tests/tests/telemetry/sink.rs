//! A collector that keeps what it is sent: OTLP over gRPC, on a port of its own.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use opentelemetry_proto::tonic::collector::metrics::v1 as metrics;
use opentelemetry_proto::tonic::collector::metrics::v1::metrics_service_server::{
    MetricsService, MetricsServiceServer,
};
use opentelemetry_proto::tonic::collector::trace::v1 as traces;
use opentelemetry_proto::tonic::collector::trace::v1::trace_service_server::{TraceService, TraceServiceServer};
use opentelemetry_proto::tonic::common::v1::any_value::Value;
use opentelemetry_proto::tonic::common::v1::{AnyValue, KeyValue};
use steward_runtime::{Policy, Tasks};
use tokio::net::TcpListener;
use tokio_stream::wrappers::TcpListenerStream;
use tonic::{Request, Response, Status};

/// An exported span, as far as the tests care.
#[derive(Debug, Clone)]
pub(crate) struct Exported {
    pub(crate) name: String,
    /// Trace id in hexadecimal.
    pub(crate) trace: String,
    /// Span id in hexadecimal.
    pub(crate) id: String,
    /// Parent's span id; empty at the root of a trace.
    pub(crate) parent: String,
    /// Text and number attributes, as text.
    pub(crate) attributes: BTreeMap<String, String>,
}

#[derive(Default)]
struct Seen {
    spans: Vec<Exported>,
    metrics: Vec<String>,
    /// Everything that arrived, readable.
    raw: Vec<String>,
}

/// The collector. Ends with the test.
#[derive(Clone)]
pub(crate) struct Sink {
    seen: Arc<Mutex<Seen>>,
    endpoint: String,
    tasks: Tasks,
}

impl Sink {
    pub(crate) async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let sink = Self {
            seen: Arc::default(),
            endpoint: format!("http://{}", listener.local_addr().unwrap()),
            tasks: Tasks::new(),
        };
        let serving = tonic::transport::Server::builder()
            .add_service(TraceServiceServer::new(sink.clone()))
            .add_service(MetricsServiceServer::new(sink.clone()))
            .serve_with_incoming(TcpListenerStream::new(listener));
        sink.tasks.spawn("sink", Policy::DISPOSABLE, async move {
            serving.await?;
            Ok(())
        });
        sink
    }

    pub(crate) fn endpoint(&self) -> &str {
        &self.endpoint
    }

    pub(crate) async fn stop(&self) {
        self.tasks.shutdown(Duration::from_secs(5)).await;
    }

    /// All spans so far.
    pub(crate) fn spans(&self) -> Vec<Exported> {
        self.seen().spans.clone()
    }

    /// Names of all metrics so far, sorted.
    pub(crate) fn metrics(&self) -> Vec<String> {
        let mut names = self.seen().metrics.clone();
        names.sort();
        names.dedup();
        names
    }

    /// Everything that arrived so far, readable.
    pub(crate) fn raw(&self) -> String {
        self.seen().raw.join("\n")
    }

    fn seen(&self) -> MutexGuard<'_, Seen> {
        self.seen.lock().unwrap()
    }
}

/// The spans above a span, nearest first, as far as they have arrived.
pub(crate) fn ancestors(spans: &[Exported], of: &Exported) -> Vec<Exported> {
    let mut above = Vec::new();
    let mut next = of.parent.clone();
    while let Some(found) = spans.iter().find(|span| span.trace == of.trace && span.id == next) {
        next.clone_from(&found.parent);
        above.push(found.clone());
    }
    above
}

fn text(value: Option<AnyValue>) -> Option<String> {
    match value?.value? {
        Value::StringValue(text) => Some(text),
        Value::IntValue(number) => Some(number.to_string()),
        Value::BoolValue(truth) => Some(truth.to_string()),
        other => Some(format!("{other:?}")),
    }
}

fn attributes(pairs: Vec<KeyValue>) -> BTreeMap<String, String> {
    let known = pairs.into_iter().filter_map(|pair| Some((pair.key, text(pair.value)?)));
    known.collect()
}

#[tonic::async_trait]
impl TraceService for Sink {
    async fn export(
        &self,
        request: Request<traces::ExportTraceServiceRequest>,
    ) -> Result<Response<traces::ExportTraceServiceResponse>, Status> {
        let request = request.into_inner();
        let mut seen = self.seen();
        seen.raw.push(format!("{request:?}"));
        let scopes = request
            .resource_spans
            .into_iter()
            .flat_map(|resource| resource.scope_spans);
        for span in scopes.flat_map(|scope| scope.spans) {
            seen.spans.push(Exported {
                name: span.name,
                trace: hex::encode(span.trace_id),
                id: hex::encode(span.span_id),
                parent: hex::encode(span.parent_span_id),
                attributes: attributes(span.attributes),
            });
        }
        Ok(Response::new(traces::ExportTraceServiceResponse::default()))
    }
}

#[tonic::async_trait]
impl MetricsService for Sink {
    async fn export(
        &self,
        request: Request<metrics::ExportMetricsServiceRequest>,
    ) -> Result<Response<metrics::ExportMetricsServiceResponse>, Status> {
        let request = request.into_inner();
        let mut seen = self.seen();
        seen.raw.push(format!("{request:?}"));
        let scopes = request
            .resource_metrics
            .into_iter()
            .flat_map(|resource| resource.scope_metrics);
        let names = scopes.flat_map(|scope| scope.metrics).map(|metric| metric.name);
        seen.metrics.extend(names);
        Ok(Response::new(metrics::ExportMetricsServiceResponse::default()))
    }
}
