//! What people decide on top of a report: what changed since the last approved revision, and which single finding they
//! accept.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use crate::report::{Capabilities, Finding, Report, Verdict};

/// What a new revision brings that the approved one did not have.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Change {
    /// The verdict over new findings and the new coverage alone.
    pub verdict: Verdict,
    /// Whether the whole verdict is worse than before: such a change needs approval (`H-6`).
    pub lowered: bool,
    /// Findings that were not there.
    pub new_findings: Vec<Finding>,
    /// Fingerprints of findings that are gone.
    pub gone_findings: Vec<String>,
    /// What it newly reaches for.
    pub new_capabilities: Capabilities,
    /// What it no longer reaches for.
    pub gone_capabilities: Capabilities,
}

impl Change {
    /// Whether nothing that matters to an approval differs.
    pub fn is_quiet(&self) -> bool {
        !self.lowered && self.new_findings.is_empty() && self.new_capabilities == Capabilities::default()
    }
}

/// Judges `after` against the approved `before`.
pub fn change(before: &Report, after: &Report) -> Change {
    let known: BTreeSet<&str> = before
        .findings
        .iter()
        .chain(&before.suppressed)
        .map(|finding| finding.fingerprint.as_str())
        .collect();
    let still: BTreeSet<&str> = after
        .findings
        .iter()
        .map(|finding| finding.fingerprint.as_str())
        .collect();
    let new_findings: Vec<Finding> = after
        .findings
        .iter()
        .filter(|finding| !known.contains(finding.fingerprint.as_str()))
        .cloned()
        .collect();
    Change {
        verdict: Verdict::of(&new_findings, &after.coverage),
        lowered: after.verdict > before.verdict,
        gone_findings: known
            .iter()
            .filter(|known| !still.contains(**known))
            .map(|known| (*known).to_owned())
            .collect(),
        new_findings,
        new_capabilities: without(&after.capabilities, &before.capabilities),
        gone_capabilities: without(&before.capabilities, &after.capabilities),
    }
}

fn without(has: &Capabilities, had: &Capabilities) -> Capabilities {
    let minus = |a: &BTreeSet<String>, b: &BTreeSet<String>| a.difference(b).cloned().collect();
    Capabilities {
        hosts: minus(&has.hosts, &had.hosts),
        env: minus(&has.env, &had.env),
        bins: minus(&has.bins, &had.bins),
        paths: minus(&has.paths, &had.paths),
        tools: minus(&has.tools, &had.tools),
        installs: minus(&has.installs, &had.installs),
        documents: minus(&has.documents, &had.documents),
    }
}

/// A person's word that one finding is no harm. It holds for this rule, this file and this evidence, and for nothing
/// else: when the evidence changes, the finding is back.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Suppression {
    /// The finding's fingerprint.
    pub fingerprint: String,
    /// Why it is no harm.
    pub reason: String,
    /// Who said so.
    pub by: String,
}

/// The report with accepted findings set aside and the verdict drawn anew.
#[must_use]
pub fn suppress(mut report: Report, suppressions: &[Suppression]) -> Report {
    let accepted: BTreeSet<&str> = suppressions
        .iter()
        .filter(|suppression| !suppression.reason.trim().is_empty())
        .map(|suppression| suppression.fingerprint.as_str())
        .collect();
    let (aside, stay) = report
        .findings
        .into_iter()
        .partition(|finding| accepted.contains(finding.fingerprint.as_str()));
    report.findings = stay;
    report.suppressed.extend::<Vec<Finding>>(aside);
    report.verdict = Verdict::of(&report.findings, &report.coverage);
    report
}
