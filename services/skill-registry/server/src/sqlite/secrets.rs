//! Secrets: sealed before they reach the database, opened after they leave it.

use async_trait::async_trait;
use steward_base::Timestamp;
use steward_base::names::{TeamId, UserId};
use steward_skill_core::error::StoreFault;
use steward_skill_core::secrets::{SecretInfo, SecretValue};
use steward_skill_core::store::SecretStore;
use steward_store::{Row, SqlError, StoreError, params};

use super::write::Failure;
use super::{SqliteSkillStore, fault};
use crate::keyring::{KeyError, Sealed};

fn sealing(error: KeyError) -> StoreFault {
    match error {
        KeyError::Damaged | KeyError::Unknown { .. } => StoreFault::Damaged {
            what: format!("a secret: {error}"),
        },
        KeyError::File { .. }
        | KeyError::Line { .. }
        | KeyError::Open { .. }
        | KeyError::Empty { .. }
        | KeyError::Cipher => StoreFault::Internal {
            operation: "use the secrets' keys",
            source: Box::new(error),
        },
    }
}

fn damaged(error: &SqlError) -> StoreFault {
    StoreFault::Damaged {
        what: format!("a secret: {error}"),
    }
}

/// A row under which a value is sealed by an older key.
struct Old {
    team: String,
    name: String,
    sealed: Sealed,
}

impl SqliteSkillStore {
    /// Seals with the newest key what an older one sealed; returns how many. What cannot be opened stays as it is.
    pub(crate) async fn renew_secrets(&self) -> Result<usize, StoreFault> {
        let Some(newest) = self.keys.newest() else { return Ok(0) };
        let key = newest.clone();
        let old = self.sqlite.view_beside(move |db| {
            db.all(
                "SELECT team, name, key, sealed FROM secrets WHERE key <> ?",
                [key],
                |row| Ok::<_, Failure>(old(row).map_err(|error| damaged(&error))?),
            )
        });
        let old = old
            .await
            .map_err(|failure| failure.into_fault("find secrets of older keys"))?;
        let mut renewed = Vec::new();
        for Old { team, name, sealed } in old {
            match self.keys.open_sealed(&team, &name, &sealed) {
                Ok(value) => {
                    let again = self.keys.seal(&team, &name, &value).map_err(sealing)?;
                    renewed.push((team, name, sealed.key, again));
                }
                Err(error) => tracing::warn!(%team, %error, "a secret cannot be opened and has to be set anew"),
            }
        }
        let count = renewed.len();
        if count == 0 {
            return Ok(0);
        }
        let written = self.sqlite.update(move |db| {
            for (team, name, before, sealed) in renewed {
                // A value that was set meanwhile stays.
                db.execute(
                    "UPDATE secrets SET key = ?, sealed = ? WHERE team = ? AND name = ? AND key = ?",
                    params![sealed.key, sealed.bytes, team, name, before],
                )?;
            }
            Ok(())
        });
        written
            .await
            .map_err(|error: StoreError| fault("seal secrets anew", error))?;
        tracing::info!(secrets = count, "sealed with the newest key");
        Ok(count)
    }

    fn told(&self, row: &Row<'_>) -> Result<SecretInfo, SqlError> {
        let (key, author): (String, String) = (row.get("key")?, row.get("author")?);
        Ok(SecretInfo {
            name: row.get("name")?,
            author: UserId::parse(author).ok(),
            set: Timestamp::from_micros(row.get("set_at")?),
            readable: self.keys.knows(&key),
        })
    }
}

fn old(row: &Row<'_>) -> Result<Old, SqlError> {
    Ok(Old {
        team: row.get("team")?,
        name: row.get("name")?,
        sealed: sealed(row)?,
    })
}

fn sealed(row: &Row<'_>) -> Result<Sealed, SqlError> {
    Ok(Sealed {
        key: row.get("key")?,
        bytes: row.get("sealed")?,
    })
}

#[async_trait]
impl SecretStore for SqliteSkillStore {
    async fn put_secret(&self, team: &TeamId, info: SecretInfo, value: SecretValue) -> Result<(), StoreFault> {
        let sealed = self
            .keys
            .seal(team.as_str(), &info.name, value.expose())
            .map_err(sealing)?;
        let team = team.clone();
        let written = self.sqlite.update(move |db| {
            db.execute(
                "INSERT INTO secrets (team, name, key, sealed, author, set_at) VALUES (?1, ?2, ?3, ?4, ?5, ?6) \
                 ON CONFLICT (team, name) DO UPDATE SET key = ?3, sealed = ?4, author = ?5, set_at = ?6",
                params![
                    team.as_str(),
                    info.name,
                    sealed.key,
                    sealed.bytes,
                    info.author.as_ref().map_or("", |author| author.as_str()),
                    info.set.as_micros()
                ],
            )
        });
        let written: Result<usize, StoreError> = written.await;
        written.map(drop).map_err(|error| fault("keep a secret", error))
    }

    async fn secrets(&self, team: &TeamId) -> Result<Vec<SecretInfo>, StoreFault> {
        let told = self.sqlite.view(|db| {
            db.all(
                "SELECT name, key, author, set_at FROM secrets WHERE team = ? ORDER BY name",
                [team.as_str()],
                |row| {
                    let told = self.told(row).map_err(|error| damaged(&error));
                    Ok::<_, Failure>(told?)
                },
            )
        });
        told.await.map_err(|failure| failure.into_fault("list secrets"))
    }

    async fn secret(&self, team: &TeamId, name: &str) -> Result<Option<SecretValue>, StoreFault> {
        let found = self.sqlite.view(|db| {
            db.first(
                "SELECT key, sealed FROM secrets WHERE team = ? AND name = ?",
                [team.as_str(), name],
                |row| Ok::<_, Failure>(sealed(row).map_err(|error| damaged(&error))?),
            )
        });
        let found = found.await.map_err(|failure| failure.into_fault("read a secret"))?;
        let opened = found.map(|sealed| self.keys.open_sealed(team.as_str(), name, &sealed));
        Ok(opened.transpose().map_err(sealing)?.map(SecretValue::new))
    }

    async fn delete_secret(&self, team: &TeamId, name: &str) -> Result<bool, StoreFault> {
        let (team, name) = (team.clone(), name.to_owned());
        let deleted = self.sqlite.update(move |db| {
            db.execute(
                "DELETE FROM secrets WHERE team = ? AND name = ?",
                [team.as_str(), &name],
            )
        });
        let deleted: Result<usize, StoreError> = deleted.await;
        Ok(deleted.map_err(|error| fault("delete a secret", error))? > 0)
    }
}
