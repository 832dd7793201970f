//! Files and reports between the wire and the core.

use steward_base::FieldViolations;
use steward_proto::skill::v1 as pb;
use steward_proto::skill::v1::conformance_finding::Severity as PbSeverity;
use steward_skill_core::conformance::{Report, Severity};
use steward_skill_core::import_skill::Conflict;
use steward_skill_core::path::SkillPath;
use steward_skill_core::record::Files;

/// Most files of a request, whatever the settings allow; more are not worth looking at.
const MOST_FILES: usize = 2_000;

pub(super) fn files_from_pb(violations: &mut FieldViolations, sent: Vec<pb::SkillContent>) -> Files {
    let mut files = Files::new();
    if sent.len() > MOST_FILES {
        violations.add("files", format!("must be at most {MOST_FILES}"));
        return files;
    }
    for (index, file) in sent.into_iter().enumerate() {
        let field = format!("files[{index}].path");
        let Some(path) = violations.take(&field, SkillPath::parse(&file.path)) else {
            continue;
        };
        if files.insert(path, file.content.to_vec()).is_some() {
            violations.add(&field, "stands twice");
        }
    }
    files
}

pub(super) fn files_to_pb(files: Files) -> Vec<pb::SkillContent> {
    let content = |(path, content): (SkillPath, Vec<u8>)| pb::SkillContent {
        path: path.to_string(),
        content: content.into(),
    };
    files.into_iter().map(content).collect()
}

pub(super) fn conflict_to_pb(conflict: Conflict) -> pb::MergeConflict {
    pb::MergeConflict {
        path: conflict.path.to_string(),
        diff: conflict.diff,
    }
}

pub(super) fn report_to_pb(report: Report) -> pb::ConformanceReport {
    let conforms = report.conforms();
    let findings = report.findings.into_iter().map(|finding| pb::ConformanceFinding {
        rule: finding.rule.to_owned(),
        severity: match finding.severity {
            Severity::Error => PbSeverity::Error,
            Severity::Warning => PbSeverity::Warning,
        }
        .into(),
        path: finding.path,
        line: finding.line,
        message: finding.message,
    });
    pb::ConformanceReport {
        conforms,
        findings: findings.collect(),
        dialects: report.dialects,
    }
}
