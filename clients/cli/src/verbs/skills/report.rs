//! How a skill follows the Agent Skills specification, for people.

use steward_proto::skill::v1 as pb;
use steward_proto::skill::v1::conformance_finding::Severity;

use crate::output::{Cell, Output, Tone, counted};

/// One line on a report: nothing worth a line gives none.
pub(super) fn line(report: Option<&pb::ConformanceReport>) -> Option<String> {
    let report = report?;
    let count = |severity: Severity| {
        let found = report.findings.iter().filter(|finding| finding.severity() == severity);
        found.count()
    };
    let (errors, warnings) = (count(Severity::Error), count(Severity::Warning));
    match (errors, warnings) {
        (0, 0) => None,
        (0, warnings) => Some(counted(warnings, "warning")),
        (errors, 0) => Some(counted(errors, "departure")),
        (errors, warnings) => Some(format!(
            "{}, {}",
            counted(errors, "departure"),
            counted(warnings, "warning")
        )),
    }
}

/// The report whole.
pub(super) fn show(output: &mut Output, report: &pb::ConformanceReport) {
    let (word, tone) = if report.conforms {
        ("Follows the Agent Skills specification.", Tone::Good)
    } else {
        ("Departs from the Agent Skills specification.", Tone::Notice)
    };
    let style = tone.style();
    output.line(&format!("{style}{word}{style:#}"));
    if !report.dialects.is_empty() {
        output.aside(&format!("written for: {}", report.dialects.join(", ")));
    }
    let rows: Vec<_> = report.findings.iter().map(finding).collect();
    if !rows.is_empty() {
        output.table(&["", "place", "rule", "what"], rows, "");
    }
}

fn finding(finding: &pb::ConformanceFinding) -> Vec<Cell> {
    let severity = match finding.severity() {
        Severity::Error => Cell::toned("error", Tone::Bad),
        Severity::Warning => Cell::toned("warning", Tone::Notice),
        Severity::Unspecified => Cell::default(),
    };
    let place = if finding.line == 0 {
        finding.path.clone()
    } else {
        format!("{}:{}", finding.path, finding.line)
    };
    vec![
        severity,
        place.into(),
        Cell::side(finding.rule.as_str()),
        finding.message.as_str().into(),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report_is_one_line_when_there_is_something_to_say() {
        let finding = |severity: Severity| pb::ConformanceFinding {
            severity: severity.into(),
            ..pb::ConformanceFinding::default()
        };
        let mut report = pb::ConformanceReport::default();
        assert_eq!(line(Some(&report)), None);
        report.findings = vec![
            finding(Severity::Error),
            finding(Severity::Warning),
            finding(Severity::Warning),
        ];
        assert_eq!(line(Some(&report)).unwrap(), "1 departure, 2 warnings");
    }
}
