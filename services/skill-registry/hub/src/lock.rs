//! What is installed, from where, and by whose word (`H-6`).

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use steward_base::Timestamp;
use steward_skill_provenance::Provenance;
use steward_skill_scanner::{Tree, Verdict};

use crate::policy::Trust;
use crate::source::Pins;

/// One installed skill, pinned.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Lock {
    /// The quarantine item that was installed, which still has its bytes.
    pub item: String,
    /// The skill's name.
    pub name: String,
    /// The source it came from, for example `github`.
    pub source: String,
    /// What it is called there, in full, the host included.
    pub reference: String,
    /// The immutable revision that was taken.
    pub revision: String,
    /// Who owned it there.
    pub pins: Pins,
    /// How far its origin was trusted.
    pub trust: Trust,
    /// Digest of the tree.
    pub digest: String,
    /// SHA-256 of each file.
    pub files: BTreeMap<String, String>,
    /// Version of the scanner.
    pub scanner: String,
    /// Digest of its rules.
    pub rule_set: String,
    /// The scan.
    pub scan: String,
    /// Its verdict.
    pub verdict: Verdict,
    /// Digest of what the skill reaches for.
    pub capabilities: String,
    /// Who signed it, as it was when it was installed.
    #[serde(default)]
    pub provenance: Provenance,
    /// Who installed it.
    pub installed_by: String,
    /// When.
    pub installed_at: Timestamp,
    /// Why a block was lifted, if one was.
    pub forced: Option<String>,
}

/// How an installed skill differs from its lock.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Drift {
    /// Files that are gone.
    pub missing: Vec<String>,
    /// Files that were not there.
    pub extra: Vec<String>,
    /// Files with other content.
    pub changed: Vec<String>,
}

impl Drift {
    /// Whether nothing differs.
    pub fn is_none(&self) -> bool {
        self.missing.is_empty() && self.extra.is_empty() && self.changed.is_empty()
    }
}

impl Lock {
    /// Compares what is there with what was installed.
    pub fn verify(&self, tree: &Tree) -> Drift {
        let there = tree.digests();
        let mut drift = Drift::default();
        for (path, digest) in &self.files {
            match there.get(path) {
                None => drift.missing.push(path.clone()),
                Some(found) if found != digest => drift.changed.push(path.clone()),
                Some(_) => {}
            }
        }
        drift.extra = there
            .keys()
            .filter(|path| !self.files.contains_key(*path))
            .cloned()
            .collect();
        drift
    }
}
