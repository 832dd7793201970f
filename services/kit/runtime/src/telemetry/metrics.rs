//! Where counts go: to the OTLP endpoint by a timer, to whoever asks over HTTP, to both or nowhere.

use opentelemetry_otlp::WithExportConfig as _;
use opentelemetry_sdk::metrics::{PeriodicReader, SdkMeterProvider};

use super::Options;
use super::prometheus::Page;
use crate::boot::StartError;

/// `None` when nobody is to have the metrics: instruments then do nothing.
pub(super) fn provider(options: &Options) -> Result<Option<(SdkMeterProvider, Option<Page>)>, StartError> {
    let config = &options.config;
    if config.otlp_endpoint.is_none() && config.prometheus_listen.is_none() {
        return Ok(None);
    }
    let mut builder = SdkMeterProvider::builder().with_resource(options.resource());
    if let Some(endpoint) = &config.otlp_endpoint {
        let exporter = opentelemetry_otlp::MetricExporter::builder()
            .with_tonic()
            .with_endpoint(endpoint.clone())
            .build()
            .map_err(|error| StartError::new("set up the metrics exporter", error))?;
        let reader = PeriodicReader::builder(exporter).with_interval(options.interval());
        builder = builder.with_reader(reader.build());
    }
    let page = config
        .prometheus_listen
        .as_ref()
        .map(|listen| Page::new(listen.clone()));
    if let Some(page) = &page {
        builder = builder.with_reader(page.reader());
    }
    Ok(Some((builder.build(), page)))
}
