//! Secrets: sealed before they reach the database, opened after they leave it.

use async_trait::async_trait;
use sqlx::Row as _;
use sqlx::sqlite::SqliteRow;
use steward_base::Timestamp;
use steward_base::names::{TeamId, UserId};
use steward_skill_core::error::StoreFault;
use steward_skill_core::secrets::{SecretInfo, SecretValue};
use steward_skill_core::store::SecretStore;
use steward_store::StoreError;

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

fn damaged(error: &sqlx::Error) -> StoreFault {
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
        let internal = |error| fault("find secrets of older keys", error);
        let old: Vec<Old> = {
            let mut reader = self.sqlite.read().await.map_err(internal)?;
            let rows = sqlx::query("SELECT team, name, key, sealed FROM secrets WHERE key <> ?")
                .bind(&newest)
                .fetch_all(&mut *reader)
                .await
                .map_err(|error| internal(error.into()))?;
            rows.iter()
                .map(old)
                .collect::<Result<_, _>>()
                .map_err(|error| damaged(&error))?
        };
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
        let written: Result<(), StoreError> = self
            .sqlite
            .write(move |connection| {
                Box::pin(async move {
                    for (team, name, before, sealed) in renewed {
                        // A value that was set meanwhile stays.
                        sqlx::query("UPDATE secrets SET key = ?, sealed = ? WHERE team = ? AND name = ? AND key = ?")
                            .bind(sealed.key)
                            .bind(sealed.bytes)
                            .bind(team)
                            .bind(name)
                            .bind(before)
                            .execute(&mut *connection)
                            .await?;
                    }
                    Ok(())
                })
            })
            .await;
        written.map_err(|error| fault("seal secrets anew", error))?;
        tracing::info!(secrets = count, "sealed with the newest key");
        Ok(count)
    }
}

fn old(row: &SqliteRow) -> Result<Old, sqlx::Error> {
    Ok(Old {
        team: row.try_get("team")?,
        name: row.try_get("name")?,
        sealed: sealed(row)?,
    })
}

fn sealed(row: &SqliteRow) -> Result<Sealed, sqlx::Error> {
    Ok(Sealed {
        key: row.try_get("key")?,
        bytes: row.try_get("sealed")?,
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
        let written: Result<(), StoreError> = self
            .sqlite
            .write(move |connection| {
                Box::pin(async move {
                    sqlx::query(
                        "INSERT INTO secrets (team, name, key, sealed, author, set_at) VALUES (?1, ?2, ?3, ?4, ?5, ?6) \
                         ON CONFLICT (team, name) DO UPDATE SET key = ?3, sealed = ?4, author = ?5, set_at = ?6",
                    )
                    .bind(team.as_str())
                    .bind(&info.name)
                    .bind(&sealed.key)
                    .bind(&sealed.bytes)
                    .bind(info.author.as_ref().map_or("", |author| author.as_str()))
                    .bind(info.set.as_micros())
                    .execute(connection)
                    .await?;
                    Ok(())
                })
            })
            .await;
        written.map_err(|error| fault("keep a secret", error))
    }

    async fn secrets(&self, team: &TeamId) -> Result<Vec<SecretInfo>, StoreFault> {
        let internal = |error| fault("list secrets", error);
        let mut reader = self.sqlite.read().await.map_err(internal)?;
        let rows = sqlx::query("SELECT name, key, author, set_at FROM secrets WHERE team = ? ORDER BY name")
            .bind(team.as_str())
            .fetch_all(&mut *reader)
            .await
            .map_err(|error| internal(error.into()))?;
        let told = rows.iter().map(|row| {
            let (key, author): (&str, &str) = (row.try_get("key")?, row.try_get("author")?);
            Ok(SecretInfo {
                name: row.try_get("name")?,
                author: UserId::parse(author).ok(),
                set: Timestamp::from_micros(row.try_get("set_at")?),
                readable: self.keys.knows(key),
            })
        });
        told.collect::<Result<_, sqlx::Error>>()
            .map_err(|error| damaged(&error))
    }

    async fn secret(&self, team: &TeamId, name: &str) -> Result<Option<SecretValue>, StoreFault> {
        let internal = |error| fault("read a secret", error);
        let mut reader = self.sqlite.read().await.map_err(internal)?;
        let row = sqlx::query("SELECT key, sealed FROM secrets WHERE team = ? AND name = ?")
            .bind(team.as_str())
            .bind(name)
            .fetch_optional(&mut *reader)
            .await
            .map_err(|error| internal(error.into()))?;
        let Some(row) = row else { return Ok(None) };
        let sealed = sealed(&row).map_err(|error| damaged(&error))?;
        let opened = self.keys.open_sealed(team.as_str(), name, &sealed).map_err(sealing)?;
        Ok(Some(SecretValue::new(opened)))
    }

    async fn delete_secret(&self, team: &TeamId, name: &str) -> Result<bool, StoreFault> {
        let (team, name) = (team.clone(), name.to_owned());
        let written: Result<bool, StoreError> = self
            .sqlite
            .write(move |connection| {
                Box::pin(async move {
                    let deleted = sqlx::query("DELETE FROM secrets WHERE team = ? AND name = ?")
                        .bind(team.as_str())
                        .bind(name)
                        .execute(connection)
                        .await?;
                    Ok(deleted.rows_affected() > 0)
                })
            })
            .await;
        written.map_err(|error| fault("delete a secret", error))
    }
}
