//! Who signed what comes in (`H-5`), by what the operator laid down. The rules are `steward-skill-provenance`'s.

use steward_skill_provenance::{Provenance, SigningPolicy};
use steward_skill_scanner::Tree;

use super::Hub;
use crate::error::{Error, StoreError};
use crate::source::Resolved;

impl Hub {
    /// The same hub, which verifies signatures by this policy and asks for those that it requires.
    #[must_use]
    pub fn with_signing(mut self, signing: SigningPolicy) -> Self {
        self.signing = signing;
        self
    }

    /// What the signatures of a tree come to, for where it came from.
    pub(super) async fn provenance(&self, resolved: &Resolved, tree: &Tree) -> Result<Provenance, Error> {
        let (signing, tree) = (self.signing.clone(), tree.clone());
        let (source, reference) = (resolved.source.clone(), resolved.reference.clone());
        let now = self.parts.clock.now();
        // Digests of all files and some signatures are work, and the runtime's threads are for waiting.
        let judged = tokio::task::spawn_blocking(move || signing.judge(&source, &reference, &tree, now)).await;
        judged.map_err(|error| StoreError::failed(format!("the verification broke off: {error}")).into())
    }
}
