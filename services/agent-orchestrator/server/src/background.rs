//! What the service does by itself. Turns are not begun here: each is begun by a request. One that waits for a client that
//! does not come back is closed.

mod credentials;
mod debts;
mod expired_turns;
mod revocations;

pub(crate) use credentials::CredentialFiles;
pub(crate) use debts::Debts;
pub(crate) use expired_turns::ExpiredTurns;
pub(crate) use revocations::RevocationPush;
