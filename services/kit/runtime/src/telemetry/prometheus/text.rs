//! Prometheus' text exposition format, version 0.0.4.
//!
//! Names follow OpenTelemetry's rules for it: dots become underscores, the unit is appended, counters end in `_total`.
//! Written here since the format is small and its library form would bring a second registry of all metrics.

use std::collections::BTreeMap;
use std::fmt::{Display, Write as _};

use opentelemetry::KeyValue;
use opentelemetry_sdk::metrics::data::{
    AggregatedMetrics, Histogram, Metric, MetricData, ResourceMetrics, ScopeMetrics,
};

/// The format's media type.
pub(super) const CONTENT_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

/// All lines of one name.
#[derive(Default)]
struct Family {
    help: String,
    kind: &'static str,
    lines: Vec<String>,
}

/// Everything that was collected, families and lines in order.
pub(super) fn render(metrics: &ResourceMetrics) -> String {
    let mut families = BTreeMap::new();
    for metric in metrics.scope_metrics().flat_map(ScopeMetrics::metrics) {
        match metric.data() {
            AggregatedMetrics::F64(data) => add(&mut families, metric, data),
            AggregatedMetrics::U64(data) => add(&mut families, metric, data),
            AggregatedMetrics::I64(data) => add(&mut families, metric, data),
        }
    }
    let resource: Vec<KeyValue> = metrics
        .resource()
        .iter()
        .map(|(key, value)| KeyValue::new(key.clone(), value.clone()))
        .collect();
    let target = Family {
        kind: "gauge",
        lines: vec![line("target_info", &labels(resource.iter()), 1)],
        ..Family::default()
    };
    families.insert("target_info".to_owned(), target);
    let mut text = String::new();
    for (name, mut family) in families {
        if !family.help.is_empty() {
            let _ = writeln!(text, "# HELP {name} {}", escaped(&family.help, false));
        }
        let _ = writeln!(text, "# TYPE {name} {}", family.kind);
        // Buckets have to stay in their order.
        if family.kind != "histogram" {
            family.lines.sort();
        }
        text.extend(family.lines);
    }
    text
}

fn add<T: Copy + Display>(families: &mut BTreeMap<String, Family>, metric: &Metric, data: &MetricData<T>) {
    let (kind, suffix) = match data {
        MetricData::Sum(sum) if sum.is_monotonic() => ("counter", "_total"),
        MetricData::Sum(_) | MetricData::Gauge(_) => ("gauge", ""),
        MetricData::Histogram(_) => ("histogram", ""),
        // Nothing here asks for one, and the format has no place for it.
        MetricData::ExponentialHistogram(_) => return,
    };
    let name = name(metric, suffix);
    let family = families.entry(name.clone()).or_default();
    metric.description().clone_into(&mut family.help);
    family.kind = kind;
    match data {
        MetricData::Sum(sum) => {
            let points = sum.data_points();
            family
                .lines
                .extend(points.map(|point| line(&name, &labels(point.attributes()), point.value())));
        }
        MetricData::Gauge(gauge) => {
            let points = gauge.data_points();
            family
                .lines
                .extend(points.map(|point| line(&name, &labels(point.attributes()), point.value())));
        }
        MetricData::Histogram(histogram) => family.lines.extend(buckets(&name, histogram)),
        MetricData::ExponentialHistogram(_) => {}
    }
}

fn buckets<T: Copy + Display>(name: &str, histogram: &Histogram<T>) -> Vec<String> {
    let mut lines = Vec::new();
    for point in histogram.data_points() {
        let around = labels(point.attributes());
        let bounds = point.bounds().map(|bound| bound.to_string());
        let mut below = 0;
        for (count, bound) in point.bucket_counts().zip(bounds.chain(["+Inf".to_owned()])) {
            below += count;
            let mut all = around.clone();
            all.push(format!("le=\"{bound}\""));
            lines.push(line(&format!("{name}_bucket"), &all, below));
        }
        lines.push(line(&format!("{name}_sum"), &around, point.sum()));
        lines.push(line(&format!("{name}_count"), &around, point.count()));
    }
    lines
}

fn line(name: &str, labels: &[String], value: impl Display) -> String {
    if labels.is_empty() {
        format!("{name} {value}\n")
    } else {
        format!("{name}{{{}}} {value}\n", labels.join(","))
    }
}

fn labels<'a>(attributes: impl Iterator<Item = &'a KeyValue>) -> Vec<String> {
    let mut labels: Vec<String> = attributes
        .map(|attribute| {
            let value = escaped(&attribute.value.as_str(), true);
            format!("{}=\"{value}\"", sanitized(attribute.key.as_str()))
        })
        .collect();
    labels.sort();
    labels
}

fn name(metric: &Metric, suffix: &str) -> String {
    let unit = match metric.unit() {
        "s" => "_seconds",
        "ms" => "_milliseconds",
        "By" => "_bytes",
        "USD" => "_usd",
        // What is counted stands in braces, and in the name already.
        _ => "",
    };
    let name = sanitized(metric.name());
    let unit = if name.ends_with(unit) { "" } else { unit };
    format!("{name}{unit}{suffix}")
}

fn sanitized(name: &str) -> String {
    let permitted = |letter: char| letter.is_ascii_alphanumeric() || letter == '_';
    name.chars()
        .map(|letter| if permitted(letter) { letter } else { '_' })
        .collect()
}

fn escaped(text: &str, quoted: bool) -> String {
    let text = text.replace('\\', "\\\\").replace('\n', "\\n");
    if quoted { text.replace('"', "\\\"") } else { text }
}
