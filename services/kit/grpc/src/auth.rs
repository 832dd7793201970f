//! Who calls, and whether they may (`A-1`, `A-2`).
//!
//! Credentials are Ed25519-signed tokens. Only the orchestrator signs ([`TokenSigner`]); every server verifies offline
//! with the public keys ([`TokenVerifier`]), knows what was revoked ([`Revocations`]), and permits what the contract's
//! [`policy`] permits, nothing else. Whatever a caller claims outside of its token is ignored.

pub mod claims;
mod config;
mod error;
pub mod keys;
pub mod policy;
pub mod revocation;
mod revocation_rpc;
mod ring;
mod verify;

pub use claims::{Claims, TokenKind};
pub use config::AuthConfig;
pub use error::AccessError;
pub use keys::{KeyError, PublicKeys, TokenSigner};
pub use revocation::{Revocation, Revocations, Revoked};
pub use revocation_rpc::{RevocationRpc, revocation_from_pb, revocation_to_pb};
pub use verify::TokenVerifier;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use steward_base::{Caller, Clock, Timestamp};

use policy::{Builtin, Policy};

use crate::audit::AuditSink;

/// Everything a server needs to decide on a call. All services of one process share one.
#[derive(Debug)]
pub struct Auth {
    verifier: TokenVerifier,
    revocations: Arc<Revocations>,
    open_health: bool,
    open_reflection: bool,
    audit: Option<Arc<dyn AuditSink>>,
}

/// Whoever a good credential proves to call.
#[derive(Debug, Clone)]
pub(crate) struct Identified {
    pub(crate) caller: Arc<Caller>,
    /// When the credential ends.
    pub(crate) expires: Timestamp,
}

impl Auth {
    /// With the signer's public keys; what is revoked is kept in `revocations`.
    pub fn new(keys: PublicKeys, revocations: Revocations, clock: Arc<dyn Clock>) -> Self {
        Self {
            verifier: TokenVerifier::new(keys, clock),
            revocations: Arc::new(revocations),
            open_health: true,
            open_reflection: true,
            audit: None,
        }
    }

    /// As [`Auth::new`], with the keys below `keys` and the revocations in `folder`. `keys` is a PEM file or a folder of
    /// them, and may not be there yet: see [`PublicKeys::watch`].
    pub fn open(keys: &Path, folder: &Path, clock: Arc<dyn Clock>) -> Result<Self, KeyError> {
        let path: PathBuf = folder.join("revocations.json");
        let revocations =
            Revocations::open(path.clone(), Arc::clone(&clock)).map_err(|source| KeyError::Read { path, source })?;
        Ok(Self::new(PublicKeys::watch(keys)?, revocations, clock))
    }

    /// Whether health needs no credential; so it is unless set otherwise (`A-1`).
    #[must_use]
    pub fn with_open_health(mut self, open: bool) -> Self {
        self.open_health = open;
        self
    }

    /// Whether reflection needs no credential; so it is unless set otherwise (`A-1`).
    #[must_use]
    pub fn with_open_reflection(mut self, open: bool) -> Self {
        self.open_reflection = open;
        self
    }

    /// Where writes and denied calls are recorded (`A-5`). Without it they are not.
    #[must_use]
    pub fn with_audit(mut self, sink: Arc<dyn AuditSink>) -> Self {
        self.audit = Some(sink);
        self
    }

    pub(crate) fn audit(&self) -> Option<&Arc<dyn AuditSink>> {
        self.audit.as_ref()
    }

    /// What is revoked, to look at or to replace.
    pub fn revocations(&self) -> &Arc<Revocations> {
        &self.revocations
    }

    /// The caller behind the bearer token, verified and not revoked.
    pub fn caller(&self, token: &str) -> Result<Arc<Caller>, AccessError> {
        self.holder(token).map(|identified| identified.caller)
    }

    fn holder(&self, token: &str) -> Result<Identified, AccessError> {
        let (caller, expires) = self.verifier.verify_until(token)?;
        if self.revocations.covers(&caller) {
            return Err(AccessError::CredentialInvalid { problem: "revoked" });
        }
        Ok(Identified { caller, expires })
    }

    /// Who presents these values of the `authorization` header; `None` without any. More than one is refused: whoever
    /// stands in front of the server may have looked at the other one.
    pub(crate) fn identify<'a>(
        &self,
        authorization: impl IntoIterator<Item = &'a [u8]>,
    ) -> Result<Option<Identified>, AccessError> {
        let mut values = authorization.into_iter();
        match (values.next(), values.next()) {
            (None, _) => Ok(None),
            (Some(value), None) => self.holder(bearer(value)?).map(Some),
            (Some(_), Some(_)) => Err(AccessError::CredentialInvalid {
                problem: "given more than once",
            }),
        }
    }

    /// Decides on a call to `path` by whoever was identified. A public method needs nobody; a good credential is passed
    /// on there, too.
    pub(crate) fn decide(
        &self,
        path: &str,
        identified: Result<Option<Identified>, AccessError>,
    ) -> Result<Option<Identified>, AccessError> {
        let policy = self.policy(path);
        if policy.is_some_and(|policy| policy.public) {
            return Ok(identified.unwrap_or_default());
        }
        let identified = identified?.ok_or(AccessError::CredentialMissing)?;
        let denied = || AccessError::MethodDenied {
            method: path.to_owned(),
        };
        let policy = policy.ok_or_else(denied)?;
        if policy.permits(&identified.caller) {
            Ok(Some(identified))
        } else {
            Err(denied())
        }
    }

    /// Who calls `path` with this value of the `authorization` header, if they may: what the edge asks of every call.
    pub fn admit(&self, path: &str, authorization: Option<&[u8]>) -> Result<Option<Arc<Caller>>, AccessError> {
        let admitted = self.decide(path, self.identify(authorization))?;
        Ok(admitted.map(|identified| identified.caller))
    }

    fn policy(&self, path: &str) -> Option<Policy> {
        let closed = match policy::builtin(path) {
            Some(Builtin::Health) => !self.open_health,
            Some(Builtin::Reflection) => !self.open_reflection,
            None => false,
        };
        if closed {
            Some(Policy::KNOWN)
        } else {
            policy::find(path)
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
