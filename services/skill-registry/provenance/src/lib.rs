//! Who signed a skill that carries its signature along (`H-2`, `H-5`): bundles of Sigstore and of OpenSSF Model Signing
//! (OMS), verified with nothing but what is here. Bytes in, a verdict out: no file is read and nobody is asked.
//!
//! [`verify`] finds the signatures at the top of a tree and says of each whether it holds. A signature holds for all files
//! of the tree or for none: one that leaves out a file, hidden or not, is invalid, since that file is what somebody added.
//! [`SigningPolicy`] is what the operator gave: the root by which signatures are verified, and the publishers by whom
//! skills of a source are to be signed. [`SigningPolicy::judge`] makes a [`Provenance`] of both, by which the hub decides.
//!
//! What this is not: a reason to skip the scanner. A signature says who, and never what.
#![warn(missing_docs)]

mod bundle;
mod outcome;
mod policy;
pub mod statement;
#[cfg(any(test, feature = "testing"))]
pub mod testing;

use steward_base::Timestamp;
use steward_skill_scanner::Tree;

pub use outcome::{Flaw, Outcome, Signature, Unknown};
pub use policy::{Barrier, Pattern, Provenance, Publisher, Root, RootError, Signed, SigningPolicy};

/// Whether a file of this name, at the top of a skill, is taken for a signature of the skill.
pub fn is_signature(path: &str) -> bool {
    let name = path.to_ascii_lowercase();
    let bundle = [".oms.sig", ".sigstore.json", ".sigstore"]
        .iter()
        .any(|ending| name.len() > ending.len() && name.ends_with(ending));
    !path.contains('/') && (bundle || name == "model.sig")
}

/// What each signature of the tree says, in the order of their names; nothing where it carries none. Without a root
/// nothing is verified and all are reported as not checked. `now` is what no signature may be younger than.
pub fn verify(tree: &Tree, root: Option<&Root>, now: Timestamp) -> Vec<Signature> {
    tree.iter()
        .filter(|(path, _)| is_signature(path))
        .map(|(path, file)| Signature {
            file: path.to_owned(),
            outcome: root.map_or(Outcome::NotChecked, |root| {
                bundle::judge(tree, path, &file.bytes, root, now)
            }),
        })
        .collect()
}

#[cfg(test)]
mod tests;
