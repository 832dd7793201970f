//! `ListRevocations`: everything that is revoked now. Also what is pushed to the servers that take pushes.

use super::{Access, Error, Revocation};

impl Access {
    /// All revocations in force; those of tokens that have ended are left out.
    pub async fn list_revocations(&self) -> Result<Vec<Revocation>, Error> {
        Ok(self.store.revocations(self.clock.now()).await?)
    }
}
