//! What the service does by itself. Turns are not here: each is begun by a request.

mod credentials;
mod revocations;

pub(crate) use credentials::CredentialFiles;
pub(crate) use revocations::RevocationPush;
