//! Metrics for whoever comes and asks: a reader that collects on demand, and a page that shows what it collected.
//!
//! The page is for a scraper inside the same trusted network. It knows no credential, and there is nothing on it that
//! needs one: numbers, and labels from closed lists.

mod text;

use std::sync::{Arc, Weak};
use std::time::Duration;

use axum::Router;
use axum::extract::State;
use axum::http::StatusCode;
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use opentelemetry_sdk::error::OTelSdkResult;
use opentelemetry_sdk::metrics::data::ResourceMetrics;
use opentelemetry_sdk::metrics::reader::MetricReader;
use opentelemetry_sdk::metrics::{InstrumentKind, ManualReader, Pipeline, Temporality};
use tokio::net::TcpListener;

use crate::boot::StartError;
use crate::tasks::{Policy, Tasks};

/// A reader in two hands: the SDK fills it, the page empties it.
#[derive(Debug, Clone, Default)]
pub(crate) struct Reader(Arc<ManualReader>);

impl MetricReader for Reader {
    fn register_pipeline(&self, pipeline: Weak<Pipeline>) {
        self.0.register_pipeline(pipeline);
    }

    fn collect(&self, into: &mut ResourceMetrics) -> OTelSdkResult {
        self.0.collect(into)
    }

    fn force_flush(&self) -> OTelSdkResult {
        self.0.force_flush()
    }

    fn shutdown_with_timeout(&self, timeout: Duration) -> OTelSdkResult {
        self.0.shutdown_with_timeout(timeout)
    }

    fn temporality(&self, kind: InstrumentKind) -> Temporality {
        self.0.temporality(kind)
    }
}

/// The page, and where it is to be found.
#[derive(Debug)]
pub(super) struct Page {
    listen: String,
    reader: Reader,
}

impl Page {
    pub(super) fn new(listen: String) -> Self {
        Self {
            listen,
            reader: Reader::default(),
        }
    }

    pub(super) fn reader(&self) -> Reader {
        self.reader.clone()
    }

    pub(super) async fn serve(&self, tasks: &Tasks) -> Result<(), StartError> {
        let failed = |error| StartError::new(format!("listen on {} for metrics", self.listen), error);
        let listener = TcpListener::bind(&self.listen).await.map_err(failed)?;
        let address = listener.local_addr().map_err(failed)?;
        tracing::info!(%address, "metrics can be read over HTTP at /metrics");
        let router = Router::new()
            .route("/metrics", get(show))
            .with_state(self.reader.clone());
        tasks.spawn("telemetry/metrics", Policy::DISPOSABLE, async move {
            axum::serve(listener, router).await?;
            Ok(())
        });
        Ok(())
    }
}

async fn show(State(reader): State<Reader>) -> Response {
    let mut metrics = ResourceMetrics::default();
    match reader.collect(&mut metrics) {
        Ok(()) => ([(CONTENT_TYPE, text::CONTENT_TYPE)], text::render(&metrics)).into_response(),
        Err(error) => {
            tracing::warn!(
                error = steward_base::error_chain(&error),
                "metrics could not be collected"
            );
            StatusCode::SERVICE_UNAVAILABLE.into_response()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use opentelemetry::KeyValue;
    use opentelemetry::metrics::MeterProvider as _;
    use opentelemetry_sdk::Resource;
    use opentelemetry_sdk::metrics::SdkMeterProvider;

    fn page() -> (SdkMeterProvider, Reader) {
        let page = Page::new("127.0.0.1:0".to_owned());
        let provider = SdkMeterProvider::builder()
            .with_resource(Resource::builder_empty().with_service_name("steward").build())
            .with_reader(page.reader())
            .build();
        (provider, page.reader())
    }

    fn shown(reader: &Reader) -> String {
        let mut metrics = ResourceMetrics::default();
        reader.collect(&mut metrics).unwrap();
        text::render(&metrics)
    }

    #[test]
    fn every_kind_of_instrument_has_its_form() {
        let (provider, reader) = page();
        let meter = provider.meter("test");
        let reviews = meter
            .u64_counter("steward.reviews")
            .with_description("Reviews.")
            .build();
        reviews.add(2, &[KeyValue::new("end", "succeeded")]);
        reviews.add(1, &[KeyValue::new("end", "odd \"word\"\\\n")]);
        let age = meter.f64_gauge("steward.queue.age").with_unit("s").build();
        age.record(1.5, &[]);
        let duration = meter
            .f64_histogram("steward.turn.duration")
            .with_unit("s")
            .with_boundaries(vec![0.1, 1.0])
            .build();
        for seconds in [0.05, 0.5, 0.5, 7.0] {
            duration.record(seconds, &[KeyValue::new("outcome", "completed")]);
        }
        assert_eq!(
            shown(&reader),
            r#"# TYPE steward_queue_age_seconds gauge
steward_queue_age_seconds 1.5
# HELP steward_reviews_total Reviews.
# TYPE steward_reviews_total counter
steward_reviews_total{end="odd \"word\"\\\n"} 1
steward_reviews_total{end="succeeded"} 2
# TYPE steward_turn_duration_seconds histogram
steward_turn_duration_seconds_bucket{outcome="completed",le="0.1"} 1
steward_turn_duration_seconds_bucket{outcome="completed",le="1"} 3
steward_turn_duration_seconds_bucket{outcome="completed",le="+Inf"} 4
steward_turn_duration_seconds_sum{outcome="completed"} 8.05
steward_turn_duration_seconds_count{outcome="completed"} 4
# TYPE target_info gauge
target_info{service_name="steward"} 1
"#
        );
    }

    #[test]
    fn two_meters_share_a_family() {
        let (provider, reader) = page();
        for scope in ["one", "two"] {
            let calls = provider.meter(scope).u64_counter("calls").build();
            calls.add(1, &[KeyValue::new("from", scope)]);
        }
        let text = shown(&reader);
        assert_eq!(text.matches("# TYPE calls_total").count(), 1);
        assert_eq!(text.matches("\ncalls_total{").count(), 2);
    }

    #[tokio::test]
    async fn an_address_that_is_taken_stops_the_start() {
        let taken = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = taken.local_addr().unwrap().to_string();
        let error = Page::new(address.clone()).serve(&Tasks::new()).await.unwrap_err();
        assert!(error.to_string().contains(&address), "{error}");
    }

    #[tokio::test]
    async fn after_the_end_there_is_nothing_to_show() {
        let (provider, reader) = page();
        assert_eq!(show(State(reader.clone())).await.status(), StatusCode::OK);
        provider.shutdown().unwrap();
        assert_eq!(show(State(reader)).await.status(), StatusCode::SERVICE_UNAVAILABLE);
    }
}
