//! From a token to a caller. Offline, bounded, with the clock that is given.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use jsonwebtoken::{Algorithm, Validation};
use steward_base::hash::sha256;
use steward_base::{Caller, Clock, Timestamp};

use super::claims::{Claims, ISSUER};
use super::error::AccessError;
use super::keys::PublicKeys;
use super::ring::KeyRing;

/// Longest token, in bytes. Ours have about 600.
const MAX_TOKEN_BYTES: usize = 4096;

/// How far the signer's clock may be from ours.
const LEEWAY: Duration = Duration::from_secs(5);

/// Verified tokens that are remembered, so that a signature is checked once and not at every call.
const REMEMBERED: usize = 1024;

/// Verifies tokens.
pub struct TokenVerifier {
    keys: KeyRing,
    clock: Arc<dyn Clock>,
    validation: Validation,
    verified: Mutex<HashMap<[u8; 32], Verified>>,
}

#[derive(Clone)]
struct Verified {
    key_id: Arc<str>,
    caller: Arc<Caller>,
    not_before: Timestamp,
    expires: Timestamp,
}

impl fmt::Debug for TokenVerifier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TokenVerifier")
            .field("keys", &self.keys)
            .finish_non_exhaustive()
    }
}

impl TokenVerifier {
    /// With the signer's public keys.
    pub fn new(keys: PublicKeys, clock: Arc<dyn Clock>) -> Self {
        let mut validation = Validation::new(Algorithm::EdDSA);
        validation.set_required_spec_claims(&["exp", "iss", "sub"]);
        validation.set_issuer(&[ISSUER]);
        // The library reads the machine's clock; ours is checked below.
        validation.validate_exp = false;
        validation.validate_aud = false;
        Self {
            keys: KeyRing::new(keys, Arc::clone(&clock)),
            clock,
            validation,
            verified: Mutex::default(),
        }
    }

    /// The caller, if the token was signed by one of the keys and its time has come and is not over.
    pub fn verify(&self, token: &str) -> Result<Arc<Caller>, AccessError> {
        self.verify_until(token).map(|(caller, _expires)| caller)
    }

    /// The same, and when the token ends.
    pub(crate) fn verify_until(&self, token: &str) -> Result<(Arc<Caller>, Timestamp), AccessError> {
        if token.len() > MAX_TOKEN_BYTES {
            return Err(invalid("too long"));
        }
        let hash = sha256(token.as_bytes());
        // A key may be withdrawn after a token of it was verified.
        let known = self.remembered().get(&hash).cloned();
        let known = known.filter(|verified| self.keys.knows(&verified.key_id));
        let remembered = known.is_some();
        let verified = match known {
            Some(verified) => verified,
            None => self.check_signature(token)?,
        };
        let now = self.clock.now();
        if now >= verified.expires.plus(LEEWAY) {
            self.remembered().remove(&hash);
            return Err(invalid("over"));
        }
        if now.plus(LEEWAY) < verified.not_before {
            return Err(invalid("issued in the future"));
        }
        let known = (Arc::clone(&verified.caller), verified.expires);
        if !remembered {
            self.remember(hash, verified, now);
        }
        Ok(known)
    }

    fn check_signature(&self, token: &str) -> Result<Verified, AccessError> {
        let header = jsonwebtoken::decode_header(token).map_err(|_| invalid("malformed"))?;
        // The algorithm is ours to choose, not the token's: "none" and symmetric ones end here.
        if header.alg != Algorithm::EdDSA {
            return Err(invalid("signed with another algorithm"));
        }
        let key_id = header.kid.ok_or(invalid("names no key"))?;
        let key = self.keys.find(&key_id).ok_or(invalid("signed with an unknown key"))?;
        let decoded = jsonwebtoken::decode::<Claims>(token, &key, &self.validation);
        let claims = decoded
            .map_err(|_| invalid("not signed by the key it names, or incomplete"))?
            .claims;
        let (not_before, expires) = (Timestamp::from_secs(claims.iat), Timestamp::from_secs(claims.exp));
        let caller = claims.into_caller().map_err(invalid)?;
        Ok(Verified {
            key_id: key_id.into(),
            caller: Arc::new(caller),
            not_before,
            expires,
        })
    }

    fn remember(&self, hash: [u8; 32], verified: Verified, now: Timestamp) {
        let mut remembered = self.remembered();
        if remembered.len() >= REMEMBERED && !remembered.contains_key(&hash) {
            remembered.retain(|_, verified| now < verified.expires);
            if remembered.len() >= REMEMBERED {
                remembered.clear();
            }
        }
        remembered.insert(hash, verified);
    }

    fn remembered(&self) -> MutexGuard<'_, HashMap<[u8; 32], Verified>> {
        self.verified.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

const fn invalid(problem: &'static str) -> AccessError {
    AccessError::CredentialInvalid { problem }
}

#[cfg(test)]
mod tests;
