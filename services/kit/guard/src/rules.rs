//! The threat rules, as data. A rule is a pattern over the levelled [`View`](crate::view::View): lower case, single
//! spaces, no invisible characters.
//!
//! How to write one:
//! * Judge intent. A path, a tool or a topic that is merely named must pass; ask for the order, the target, the disguise.
//! * Bound every gap (`.{0,40}`, in bytes: three for a Chinese character): that keeps scanning linear.
//! * Any match must contain one of the `anchors`. They are searched first; a rule without a hit there costs nothing.
//! * In [`Shape::Prose`] a space matches a line end too and `.` matches everything; in [`Shape::Command`] a match stays
//!   on one line.
//! * Add lines that must and must not match to `scan/tests.rs`.

mod commands;
mod exfiltration;
mod injection;
mod memory;

use crate::{Category, Scope, Severity};

/// Whether a match may run over line ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Shape {
    Prose,
    Command,
}

/// Whether "never", "do not" and the like just before a match take its sting.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Negation {
    /// The text warns of what it describes: no finding.
    Excuses,
    /// Negation is part of the attack, or plays no part.
    Ignored,
}

/// One threat rule.
#[derive(Debug)]
pub(crate) struct Rule {
    pub(crate) id: &'static str,
    pub(crate) category: Category,
    pub(crate) severity: Severity,
    pub(crate) scope: Scope,
    pub(crate) shape: Shape,
    pub(crate) negation: Negation,
    pub(crate) anchors: &'static [&'static str],
    pub(crate) pattern: &'static str,
}

/// All rules, in no particular order.
pub(crate) fn all() -> impl Iterator<Item = &'static Rule> {
    [injection::RULES, exfiltration::RULES, commands::RULES, memory::RULES]
        .into_iter()
        .flatten()
}

/// Files that hold private keys or credentials and nothing else.
macro_rules! secret_file {
    () => {
        r#"(?:id_(?:rsa|dsa|ecdsa|ed25519)(?:[^.\w]|\.[^p\w]|$)|\.aws/credentials|\.netrc\b|\.pgpass\b|\.git-credentials|/etc/shadow|\.gnupg\b|\.docker/config\.json|\.kube/config|/proc/(?:self|[0-9]{1,7})/environ|\bkey\.pem|\.env(?:[^.\w]|$)|\.ssh/[a-z0-9_-]{1,40}(?:[^.\w-]|$))"#
    };
}
pub(crate) use secret_file;
