//! Who calls, and whether they may (`A-1`, `A-2`).
//!
//! Credentials are Ed25519-signed tokens. Only the orchestrator signs ([`TokenSigner`]); every server verifies offline
//! with the public keys ([`TokenVerifier`]), knows what was revoked ([`Revocations`]), and permits what the contract's
//! [`policy`] permits, nothing else. Whatever a caller claims outside of its token is ignored.

pub mod claims;
mod error;
pub mod keys;
pub mod policy;
pub mod revocation;
mod revocation_rpc;
mod verify;

pub use claims::{Claims, TokenKind};
pub use error::AccessError;
pub use keys::{KeyError, PublicKeys, TokenSigner};
pub use revocation::{Revocation, Revocations, Revoked};
pub use revocation_rpc::{RevocationRpc, revocation_from_pb, revocation_to_pb};
pub use verify::TokenVerifier;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use steward_base::{Caller, Clock};

/// Everything a server needs to decide on a call. All services of one process share one.
#[derive(Debug)]
pub struct Auth {
    verifier: TokenVerifier,
    revocations: Arc<Revocations>,
}

impl Auth {
    /// With the signer's public keys; what is revoked is kept in `revocations`.
    pub fn new(keys: PublicKeys, revocations: Revocations, clock: Arc<dyn Clock>) -> Self {
        Self {
            verifier: TokenVerifier::new(keys, clock),
            revocations: Arc::new(revocations),
        }
    }

    /// As [`Auth::new`], with the keys below `keys` (a PEM file or a folder of them) and the revocations in `folder`.
    pub fn open(keys: &Path, folder: &Path, clock: Arc<dyn Clock>) -> Result<Self, KeyError> {
        let path: PathBuf = folder.join("revocations.json");
        let revocations =
            Revocations::open(path.clone(), Arc::clone(&clock)).map_err(|source| KeyError::Read { path, source })?;
        Ok(Self::new(PublicKeys::load(keys)?, revocations, clock))
    }

    /// What is revoked, to look at or to replace.
    pub fn revocations(&self) -> &Arc<Revocations> {
        &self.revocations
    }

    /// The caller behind the bearer token, verified and not revoked.
    pub fn caller(&self, token: &str) -> Result<Arc<Caller>, AccessError> {
        let caller = self.verifier.verify(token)?;
        if self.revocations.covers(&caller) {
            return Err(AccessError::CredentialInvalid { problem: "revoked" });
        }
        Ok(caller)
    }

    /// Decides on a call to `path` with the value of the `authorization` header. A public method needs none; a good
    /// credential is passed on there, too.
    pub fn admit(&self, path: &str, authorization: Option<&[u8]>) -> Result<Option<Arc<Caller>>, AccessError> {
        let policy = policy::find(path);
        let caller = authorization.map(|value| self.caller(bearer(value)?)).transpose();
        if policy.is_some_and(|policy| policy.public) {
            return Ok(caller.unwrap_or_default());
        }
        let caller = caller?.ok_or(AccessError::CredentialMissing)?;
        let denied = || AccessError::MethodDenied {
            method: path.to_owned(),
        };
        let policy = policy.ok_or_else(denied)?;
        if policy.permits(&caller) {
            Ok(Some(caller))
        } else {
            Err(denied())
        }
    }
}

fn bearer(value: &[u8]) -> Result<&str, AccessError> {
    let malformed = AccessError::CredentialInvalid {
        problem: "not a bearer token",
    };
    let Ok(text) = std::str::from_utf8(value) else {
        return Err(malformed);
    };
    match text.split_once(' ') {
        Some((scheme, token)) if scheme.eq_ignore_ascii_case("bearer") => Ok(token.trim()),
        _ => Err(malformed),
    }
}
