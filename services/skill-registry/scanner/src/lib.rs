//! Judges an unpacked skill before it is let in (`H-3`, `H-4`): its structure, what it says to a model, what it makes a
//! machine do, what it reaches for, and how much of it could be read.
//!
//! * [`structure::check`] says whether a folder is a skill at all.
//! * [`Scanner::scan`] reads every byte of it and gives a [`Report`]: findings with evidence, a capability set, coverage
//!   and one [`Verdict`]. The same tree gives the same report.
//! * [`change`] judges what a new revision brings on top of an approved one; [`suppress`] sets single findings aside.
//! * [`sarif::export`] tells a report to other tools.
//!
//! Pure: no files, no network, no clock, nothing is executed. It decides nothing about installing; that is the policy's.
#![warn(missing_docs)]

mod capability;
mod characters;
mod content;
mod decode;
pub mod header;
mod judge;
mod matching;
pub mod path;
mod report;
mod rules;
pub mod sarif;
mod scan;
mod split;
pub mod structure;
mod syntax;
mod tree;
mod view;

use std::sync::LazyLock;

pub use judge::{Change, Suppression, change, suppress};
pub use report::{Capabilities, Coverage, Finding, Gap, Report, Severity, Verdict};
pub use rules::RuleError;
pub use scan::Options;
pub use tree::{File, Tree};

/// Version of the scanner, which every report names.
pub const VERSION: &str = concat!("steward-scanner/", env!("CARGO_PKG_VERSION"), "-1");

/// The embedded rules, compiled when the first scan needs them: that takes longer, and keeps more memory, than the rest of a
/// service's start. That they compile is held by a test of this crate.
static RULES: LazyLock<Result<rules::RuleSet, RuleError>> = LazyLock::new(rules::RuleSet::load);

/// Scans with the embedded rules. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Scanner(());

impl Scanner {
    /// Compiles the embedded rules, once for the process.
    pub fn new() -> Result<Self, RuleError> {
        match &*RULES {
            Ok(_) => Ok(Self(())),
            Err(error) => Err(error.clone()),
        }
    }

    /// Compiles the embedded rules at the first scan. If they did not compile, every scan would find its skill dangerous.
    pub const fn deferred() -> Self {
        Self(())
    }

    /// Reads the whole tree. Linear in its size; never fails: what cannot be read is a gap in the coverage.
    pub fn scan(&self, tree: &Tree, options: &Options) -> Report {
        match &*RULES {
            Ok(rules) => scan::scan(rules, tree, options),
            Err(error) => scan::without_rules(tree, error),
        }
    }

    /// Digest of the rules; a report with another one is to be made anew.
    pub fn rule_set(&self) -> &'static str {
        rules::digest()
    }
}

#[cfg(test)]
mod tests;
