//! The port to where a team's secrets are kept. A store keeps values encrypted and gives them back only by name.

use async_trait::async_trait;
use steward_base::names::TeamId;

use crate::error::StoreFault;
use crate::secrets::{SecretInfo, SecretValue};

/// Where secrets are kept. Implementations pass [`super::contract::secrets::check`].
#[async_trait]
pub trait SecretStore: Send + Sync {
    /// Keeps a value under its name, in the place of the one before.
    async fn put_secret(&self, team: &TeamId, info: SecretInfo, value: SecretValue) -> Result<(), StoreFault>;

    /// What there is, by name, without values.
    async fn secrets(&self, team: &TeamId) -> Result<Vec<SecretInfo>, StoreFault>;

    /// One value; none if there is none. One that cannot be opened is [`StoreFault::Damaged`].
    async fn secret(&self, team: &TeamId, name: &str) -> Result<Option<SecretValue>, StoreFault>;

    /// Deletes a value; whether there was one.
    async fn delete_secret(&self, team: &TeamId, name: &str) -> Result<bool, StoreFault>;
}
