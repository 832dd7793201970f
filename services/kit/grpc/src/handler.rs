//! What handlers ask of a request.

use std::sync::Arc;

use http::HeaderValue;
use prost::Message;
use steward_base::hash::sha256_parts;
use steward_base::names::TeamId;
use steward_base::{Caller, Timestamp};
use tonic::{Request, Status};

use crate::auth::AccessError;
use crate::status::status;

/// The verified caller as the edge hands it to handlers. Only this crate can make one.
#[derive(Debug, Clone)]
pub struct Credential {
    caller: Arc<Caller>,
    expires: Timestamp,
}

impl Credential {
    pub(crate) fn new(caller: Arc<Caller>, expires: Timestamp) -> Self {
        Self { caller, expires }
    }
}

/// Who calls. The error is UNAUTHENTICATED, for a public method that was called without a credential.
pub fn caller<T>(request: &Request<T>) -> Result<&Caller, Status> {
    credential(request).map(|credential| &*credential.caller)
}

/// When the credential of the caller ends. The same error.
pub fn expires<T>(request: &Request<T>) -> Result<Timestamp, Status> {
    credential(request).map(|credential| credential.expires)
}

fn credential<T>(request: &Request<T>) -> Result<&Credential, Status> {
    let credential = request.extensions().get::<Credential>();
    credential.ok_or_else(|| status(&AccessError::CredentialMissing, "access.steward.dev"))
}

/// The credential as the caller presented it: for a handler that asks other services in the caller's own name. It does not
/// leave the process but in such a call.
#[derive(Clone)]
pub struct Presented(pub(crate) HeaderValue);

impl Presented {
    /// What stands behind the scheme.
    fn token(&self) -> Option<&str> {
        let (_, token) = self.0.to_str().ok()?.split_once(' ')?;
        Some(token.trim())
    }
}

impl std::fmt::Debug for Presented {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Presented")
    }
}

/// The token with which the caller of a request came.
pub fn presented<T>(request: &Request<T>) -> Result<&str, Status> {
    let presented = request.extensions().get::<Presented>();
    let token = presented.and_then(Presented::token);
    token.ok_or_else(|| status(&AccessError::CredentialMissing, "access.steward.dev"))
}

/// The team of a resource name, if the caller may know of it. Another team's resource gives `missing()`, the very error
/// that a resource that does not exist gives, so that nobody can find out which it is.
///
/// A service that acts for nobody in particular may name any team.
pub fn team_of<E>(caller: &Caller, named: TeamId, missing: impl FnOnce() -> E) -> Result<TeamId, E> {
    match &caller.team {
        Some(own) if *own == named => Ok(named),
        None if caller.is_service() => Ok(named),
        _ => Err(missing()),
    }
}

/// Fingerprint of a request, to see whether a request id comes back with the same request. Messages with map fields have
/// no stable encoding and must not be hashed; the contract has none in requests with a request id.
pub fn request_hash<M: Message>(method: &str, request: &M) -> String {
    sha256_parts([method.as_bytes(), request.encode_to_vec().as_slice()])
}

#[cfg(test)]
mod tests {
    use super::*;
    use steward_base::{Identity, Origin, Role};

    fn someone(team: Option<&str>, identity: Identity) -> Caller {
        Caller {
            team: team.map(|team| TeamId::parse(team).unwrap()),
            user: None,
            role: Role::Admin,
            origin: Origin::Foreground,
            identity,
            token_id: "t".to_owned(),
        }
    }

    #[test]
    fn only_the_callers_own_team_exists() {
        let named = || TeamId::parse("red").unwrap();
        let service = || Identity::Service {
            name: "curator-worker".to_owned(),
        };
        assert!(team_of(&someone(Some("red"), Identity::User), named(), || ()).is_ok());
        assert!(team_of(&someone(Some("blue"), Identity::User), named(), || ()).is_err());
        assert!(team_of(&someone(None, Identity::User), named(), || ()).is_err());
        assert!(team_of(&someone(Some("blue"), service()), named(), || ()).is_err());
        assert!(team_of(&someone(None, service()), named(), || ()).is_ok());
    }
}
