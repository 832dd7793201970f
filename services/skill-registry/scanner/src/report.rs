//! What a scan says: findings with evidence, what the skill can do, how much of it was read, and one verdict.

use std::collections::BTreeSet;
use std::fmt;

use serde::{Deserialize, Serialize};
use steward_base::hash::sha256_parts;

/// How bad it would be if a finding is what it looks like.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Severity {
    /// Worth knowing; changes no verdict.
    Info,
    /// A weakness; changes no verdict.
    Low,
    /// Suspicious: caution.
    Medium,
    /// Harmful: dangerous.
    High,
    /// Harmful beyond repair: dangerous.
    Critical,
}

impl Severity {
    /// The stable name, in snake case.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Info => "info",
            Self::Low => "low",
            Self::Medium => "medium",
            Self::High => "high",
            Self::Critical => "critical",
        }
    }
}

/// The one answer that the policy looks at (`H-4`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// Nothing suspicious, and everything was read.
    Safe,
    /// Something suspicious, or something could not be read.
    Caution,
    /// Something harmful.
    Dangerous,
}

impl Verdict {
    /// The stable name, in snake case.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Safe => "safe",
            Self::Caution => "caution",
            Self::Dangerous => "dangerous",
        }
    }

    /// The verdict that findings and coverage come to.
    pub fn of<'f>(findings: impl IntoIterator<Item = &'f Finding>, coverage: &Coverage) -> Self {
        let worst = findings.into_iter().map(|finding| finding.severity).max();
        match worst {
            Some(Severity::High | Severity::Critical) => Self::Dangerous,
            Some(Severity::Info | Severity::Low) | None if coverage.is_complete() => Self::Safe,
            Some(Severity::Info | Severity::Low | Severity::Medium) | None => Self::Caution,
        }
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// One place that a rule speaks of, with everything that a person needs to judge it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Finding {
    /// The rule, for example `download-into-shell`.
    pub rule: String,
    /// What it is, in a sentence without a full stop.
    pub title: String,
    /// How bad it would be.
    pub severity: Severity,
    /// The kind of harm, for example `exfiltration`.
    pub category: String,
    /// Entries of the OWASP Agentic Skills Top 10, for example `AST01`.
    pub ast: Vec<String>,
    /// Records of the Agentic Vulnerability Enumeration, for example `AVE-2026-00004`.
    pub ave: Vec<String>,
    /// The file, relative to the skill's folder.
    pub path: String,
    /// First byte in the file.
    pub start: usize,
    /// One past the last byte in the file.
    pub end: usize,
    /// The line in the file, from one; zero for a file without lines.
    pub line: usize,
    /// The evidence as it stands in the file, cut to a readable length, with invisible characters written out.
    pub excerpt: String,
    /// What the evidence comes to once it is decoded or joined, if that differs.
    pub revealed: Option<String>,
    /// What to do about it.
    pub fix: String,
    /// Names rule, file and evidence, whatever the line: a suppression is bound to it.
    pub fingerprint: String,
}

impl Finding {
    pub(crate) fn fingerprint_of(rule: &str, path: &str, evidence: &str) -> String {
        let evidence: Vec<&str> = evidence.split_whitespace().collect();
        sha256_parts([rule.as_bytes(), path.as_bytes(), evidence.join(" ").as_bytes()])
    }
}

/// A part of the skill that was not judged, and why.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Gap {
    /// The file.
    pub path: String,
    /// What was not done.
    pub reason: String,
}

/// How much was read. Apart from the verdict, since "nothing found" and "not looked at" differ.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Coverage {
    /// Files in the skill.
    pub files: usize,
    /// Bytes in the skill.
    pub bytes: u64,
    /// Files whose text was read to the end.
    pub read_files: usize,
    /// Bytes of those files.
    pub read_bytes: u64,
    /// Scripts and blocks whose structure was parsed.
    pub parsed: usize,
    /// Files of a known format that holds no instructions: images, fonts, documents. Not a gap.
    pub opaque: Vec<Gap>,
    /// What should have been judged and was not.
    pub gaps: Vec<Gap>,
}

impl Coverage {
    /// Whether everything that can carry instructions was judged.
    pub fn is_complete(&self) -> bool {
        self.gaps.is_empty()
    }
}

/// What a skill reaches for, as facts without judgement.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Capabilities {
    /// Hosts that it names in addresses.
    pub hosts: BTreeSet<String>,
    /// Environment variables that it declares or reads.
    pub env: BTreeSet<String>,
    /// Programs that its shell code starts or that it declares.
    pub bins: BTreeSet<String>,
    /// Paths outside its own folder.
    pub paths: BTreeSet<String>,
    /// Tools that it asks for without a question.
    pub tools: BTreeSet<String>,
    /// Packages that it installs, as `manager:name`.
    pub installs: BTreeSet<String>,
    /// Pages elsewhere that its prose points to.
    pub documents: BTreeSet<String>,
}

impl Capabilities {
    /// Each set with its name, in a fixed order.
    pub fn sets(&self) -> [(&'static str, &BTreeSet<String>); 7] {
        [
            ("hosts", &self.hosts),
            ("env", &self.env),
            ("bins", &self.bins),
            ("paths", &self.paths),
            ("tools", &self.tools),
            ("installs", &self.installs),
            ("documents", &self.documents),
        ]
    }

    /// A digest of all sets, to which an approval is bound.
    pub fn digest(&self) -> String {
        let sets = self.sets();
        let parts = sets
            .iter()
            .flat_map(|(name, set)| std::iter::once(name.as_bytes()).chain(set.iter().map(String::as_bytes)));
        sha256_parts(parts)
    }
}

/// What one scan says of one tree.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Report {
    /// Version of the scanner.
    pub scanner: String,
    /// Digest of the rules that it applied.
    pub rule_set: String,
    /// Digest of the tree that it read.
    pub digest: String,
    /// The answer.
    pub verdict: Verdict,
    /// What speaks against it, worst first.
    pub findings: Vec<Finding>,
    /// Findings that a person accepted, kept for the record.
    pub suppressed: Vec<Finding>,
    /// How much was read.
    pub coverage: Coverage,
    /// What it reaches for.
    pub capabilities: Capabilities,
}

impl Report {
    /// Names this scan: tree, scanner and rules. The same input gives the same id.
    pub fn id(&self) -> String {
        sha256_parts([
            self.digest.as_bytes(),
            self.scanner.as_bytes(),
            self.rule_set.as_bytes(),
        ])
    }
}
