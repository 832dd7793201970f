//! Secrets in memory.

use async_trait::async_trait;
use steward_base::names::TeamId;

use super::InMemorySkillStore;
use crate::error::StoreFault;
use crate::secrets::{SecretInfo, SecretValue};
use crate::store::SecretStore;

#[async_trait]
impl SecretStore for InMemorySkillStore {
    async fn put_secret(&self, team: &TeamId, info: SecretInfo, value: SecretValue) -> Result<(), StoreFault> {
        let key = (team.clone(), info.name.clone());
        self.lock().secrets.insert(key, (info, value));
        Ok(())
    }

    async fn secrets(&self, team: &TeamId) -> Result<Vec<SecretInfo>, StoreFault> {
        let inner = self.lock();
        let own = inner.secrets.iter().filter(|((owner, _), _)| owner == team);
        Ok(own.map(|(_, (info, _))| info.clone()).collect())
    }

    async fn secret(&self, team: &TeamId, name: &str) -> Result<Option<SecretValue>, StoreFault> {
        let inner = self.lock();
        let found = inner.secrets.get(&(team.clone(), name.to_owned()));
        Ok(found.map(|(_, value)| value.clone()))
    }

    async fn delete_secret(&self, team: &TeamId, name: &str) -> Result<bool, StoreFault> {
        Ok(self.lock().secrets.remove(&(team.clone(), name.to_owned())).is_some())
    }
}
