//! Why a call is refused before it reaches its handler.

use steward_base::{ErrorKind, Fault};

/// The caller learns only the kind and the reason; the problem is for the log.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AccessError {
    /// The call carries no credential.
    #[error("no credential was given")]
    CredentialMissing,
    /// The credential is malformed, not ours, over, or revoked.
    #[error("the credential is not valid: {problem}")]
    CredentialInvalid {
        /// What is wrong with it, without any part of it.
        problem: &'static str,
    },
    /// The credential is good but not for this method.
    #[error("the credential does not permit {method}")]
    MethodDenied {
        /// Path of the method.
        method: String,
    },
}

impl Fault for AccessError {
    fn kind(&self) -> ErrorKind {
        match self {
            Self::CredentialMissing | Self::CredentialInvalid { .. } => ErrorKind::Unauthenticated,
            Self::MethodDenied { .. } => ErrorKind::Forbidden,
        }
    }

    fn reason(&self) -> &'static str {
        match self {
            Self::CredentialMissing => "CREDENTIAL_MISSING",
            Self::CredentialInvalid { .. } => "CREDENTIAL_INVALID",
            Self::MethodDenied { .. } => "METHOD_DENIED",
        }
    }

    fn metadata(&self) -> Vec<(&'static str, String)> {
        match self {
            Self::CredentialMissing | Self::CredentialInvalid { .. } => Vec::new(),
            Self::MethodDenied { method } => vec![("method", method.clone())],
        }
    }
}
