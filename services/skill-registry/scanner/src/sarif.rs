//! A report as SARIF 2.1.0, the format that code hosts and editors show.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::report::{Finding, Report, Severity};

/// The report as a SARIF log with one run.
pub fn export(report: &Report) -> Value {
    let mut rules: BTreeMap<&str, &Finding> = BTreeMap::new();
    for finding in report.findings.iter().chain(&report.suppressed) {
        rules.entry(&finding.rule).or_insert(finding);
    }
    let results: Vec<Value> = report
        .findings
        .iter()
        .map(|finding| result(finding, false))
        .chain(report.suppressed.iter().map(|finding| result(finding, true)))
        .collect();
    json!({
        "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
        "version": "2.1.0",
        "runs": [{
            "tool": {"driver": {
                "name": "steward-skill-scanner",
                "version": report.scanner,
                "informationUri": "https://steward.dev",
                "rules": rules.values().map(|finding| rule(finding)).collect::<Vec<_>>(),
            }},
            "properties": {
                "verdict": report.verdict.as_str(),
                "ruleSet": report.rule_set,
                "treeSha256": report.digest,
                "complete": report.coverage.is_complete(),
            },
            "results": results,
        }],
    })
}

fn rule(finding: &Finding) -> Value {
    let tags: Vec<&String> = finding.ast.iter().chain(&finding.ave).collect();
    json!({
        "id": finding.rule,
        "shortDescription": {"text": finding.title},
        "help": {"text": finding.fix},
        "properties": {"tags": tags, "category": finding.category, "security-severity": score(finding.severity)},
    })
}

fn result(finding: &Finding, suppressed: bool) -> Value {
    let mut result = json!({
        "ruleId": finding.rule,
        "level": level(finding.severity),
        "message": {"text": match &finding.revealed {
            Some(revealed) => format!("{}: {} (comes to: {revealed})", finding.title, finding.excerpt),
            None => format!("{}: {}", finding.title, finding.excerpt),
        }},
        "partialFingerprints": {"steward/v1": finding.fingerprint},
        "locations": [{"physicalLocation": {
            "artifactLocation": {"uri": uri(&finding.path)},
            "region": {
                "startLine": finding.line.max(1),
                "byteOffset": finding.start,
                "byteLength": finding.end.saturating_sub(finding.start),
            },
        }}],
    });
    if suppressed {
        result["suppressions"] = json!([{"kind": "external", "status": "accepted"}]);
    }
    result
}

/// A path as a relative URI.
fn uri(path: &str) -> String {
    let mut out = String::with_capacity(path.len());
    for &byte in path.as_bytes() {
        if byte.is_ascii_alphanumeric() || matches!(byte, b'/' | b'.' | b'-' | b'_' | b'~') {
            out.push(char::from(byte));
        } else {
            out.push('%');
            out.push_str(&hex::encode_upper([byte]));
        }
    }
    out
}

fn level(severity: Severity) -> &'static str {
    match severity {
        Severity::Info => "note",
        Severity::Low | Severity::Medium => "warning",
        Severity::High | Severity::Critical => "error",
    }
}

fn score(severity: Severity) -> &'static str {
    match severity {
        Severity::Info => "0.0",
        Severity::Low => "3.0",
        Severity::Medium => "5.5",
        Severity::High => "8.0",
        Severity::Critical => "9.5",
    }
}
