//! Bundles. Their content is JSON; what is searched by has columns of its own.

use async_trait::async_trait;
use sqlx::sqlite::SqliteConnection;
use steward_base::names::{TeamId, UserId};
use steward_skill_core::bundle::{Bundle, BundleKey};
use steward_skill_core::error::StoreFault;
use steward_skill_core::store::{BundleStore, CommitError};
use steward_store::StoreError;

use super::write::Failure;
use super::{SqliteSkillStore, fault, rows};

pub(super) fn encoded<T: serde::Serialize>(what: &'static str, value: &T) -> Result<String, StoreFault> {
    serde_json::to_string(value).map_err(|error| StoreFault::Internal {
        operation: what,
        source: Box::new(error),
    })
}

pub(super) fn decoded<T: serde::de::DeserializeOwned>(what: &str, content: &str) -> Result<T, StoreFault> {
    serde_json::from_str(content).map_err(|error| StoreFault::Damaged {
        what: format!("{what}: {error}"),
    })
}

pub(super) fn owner(user: Option<&UserId>) -> String {
    user.map_or_else(String::new, |user| user.as_str().to_owned())
}

async fn save(connection: &mut SqliteConnection, bundle: &Bundle, content: &str) -> Result<(), Failure> {
    let (key, version) = (&bundle.key, rows::signed(bundle.version));
    let changed = sqlx::query(
        "INSERT INTO bundles (team, owner, slug, version, content) VALUES (?1, ?2, ?3, ?4, ?5) \
         ON CONFLICT (team, owner, slug) DO UPDATE SET version = ?4, content = ?5 WHERE version = ?4 - 1",
    )
    .bind(key.team.as_str())
    .bind(owner(key.owner.as_ref()))
    .bind(key.slug.as_str())
    .bind(version)
    .bind(content)
    .execute(connection)
    .await?;
    // A first version never meets one, and a later one never comes first.
    if changed.rows_affected() == 1 {
        Ok(())
    } else {
        Err(CommitError::VersionMismatch.into())
    }
}

#[async_trait]
impl BundleStore for SqliteSkillStore {
    async fn bundle(&self, key: &BundleKey) -> Result<Option<Bundle>, StoreFault> {
        let internal = |error| fault("find a bundle", error);
        let mut reader = self.sqlite.read().await.map_err(internal)?;
        let found: Option<String> =
            sqlx::query_scalar("SELECT content FROM bundles WHERE team = ? AND owner = ? AND slug = ?")
                .bind(key.team.as_str())
                .bind(owner(key.owner.as_ref()))
                .bind(key.slug.as_str())
                .fetch_optional(&mut *reader)
                .await
                .map_err(|error| internal(error.into()))?;
        found.map(|content| decoded("a bundle", &content)).transpose()
    }

    async fn bundles(&self, team: &TeamId, user: Option<&UserId>) -> Result<Vec<Bundle>, StoreFault> {
        let internal = |error| fault("list bundles", error);
        let mut reader = self.sqlite.read().await.map_err(internal)?;
        let found: Vec<String> =
            sqlx::query_scalar("SELECT content FROM bundles WHERE team = ? AND owner = ? ORDER BY slug")
                .bind(team.as_str())
                .bind(owner(user))
                .fetch_all(&mut *reader)
                .await
                .map_err(|error| internal(error.into()))?;
        found.iter().map(|content| decoded("a bundle", content)).collect()
    }

    async fn save_bundle(&self, bundle: Bundle) -> Result<(), CommitError> {
        let content = encoded("encode a bundle", &bundle)?;
        let is_first = bundle.version == 1;
        let written = self
            .sqlite
            .write(move |connection| {
                Box::pin(async move {
                    if !is_first {
                        expect_present(connection, &bundle.key).await?;
                    }
                    save(connection, &bundle, &content).await
                })
            })
            .await;
        written.map_err(Failure::into_commit_error)
    }

    async fn delete_bundle(&self, key: &BundleKey) -> Result<bool, StoreFault> {
        let key = key.clone();
        let written: Result<bool, StoreError> = self
            .sqlite
            .write(move |connection| {
                Box::pin(async move {
                    let deleted = sqlx::query("DELETE FROM bundles WHERE team = ? AND owner = ? AND slug = ?")
                        .bind(key.team.as_str())
                        .bind(owner(key.owner.as_ref()))
                        .bind(key.slug.as_str())
                        .execute(connection)
                        .await?;
                    Ok(deleted.rows_affected() > 0)
                })
            })
            .await;
        written.map_err(|error| fault("delete a bundle", error))
    }
}

async fn expect_present(connection: &mut SqliteConnection, key: &BundleKey) -> Result<(), Failure> {
    let found: Option<i64> =
        sqlx::query_scalar("SELECT version FROM bundles WHERE team = ? AND owner = ? AND slug = ?")
            .bind(key.team.as_str())
            .bind(owner(key.owner.as_ref()))
            .bind(key.slug.as_str())
            .fetch_optional(connection)
            .await?;
    found.map(drop).ok_or_else(|| CommitError::VersionMismatch.into())
}
