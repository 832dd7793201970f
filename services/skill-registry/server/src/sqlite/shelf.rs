//! Bundles. Their content is JSON; what is searched by has columns of its own.

use async_trait::async_trait;
use steward_base::names::{TeamId, UserId};
use steward_skill_core::bundle::{Bundle, BundleKey};
use steward_skill_core::error::StoreFault;
use steward_skill_core::store::{BundleStore, CommitError};
use steward_store::{Db, StoreError, params};

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

fn save(db: Db<'_>, bundle: &Bundle, content: &str) -> Result<(), Failure> {
    let (key, version) = (&bundle.key, rows::signed(bundle.version));
    let owner = owner(key.owner.as_ref());
    let is_there = db.exists(
        "SELECT 1 FROM bundles WHERE team = ? AND owner = ? AND slug = ?",
        [key.team.as_str(), &owner, key.slug.as_str()],
    )?;
    // A first version never meets one, and a later one never comes first.
    if is_there == (bundle.version == 1) {
        return Err(CommitError::VersionMismatch.into());
    }
    let changed = db.execute(
        "INSERT INTO bundles (team, owner, slug, version, content) VALUES (?1, ?2, ?3, ?4, ?5) \
         ON CONFLICT (team, owner, slug) DO UPDATE SET version = ?4, content = ?5 WHERE version = ?4 - 1",
        params![key.team.as_str(), owner, key.slug.as_str(), version, content],
    )?;
    if changed == 1 {
        Ok(())
    } else {
        Err(CommitError::VersionMismatch.into())
    }
}

#[async_trait]
impl BundleStore for SqliteSkillStore {
    async fn bundle(&self, key: &BundleKey) -> Result<Option<Bundle>, StoreFault> {
        let owner = owner(key.owner.as_ref());
        let found = self.sqlite.view(|db| {
            db.first(
                "SELECT content FROM bundles WHERE team = ? AND owner = ? AND slug = ?",
                [key.team.as_str(), &owner, key.slug.as_str()],
                |row| Ok::<_, Failure>(decoded("a bundle", &row.get::<_, String>(0)?)?),
            )
        });
        found.await.map_err(|failure| failure.into_fault("find a bundle"))
    }

    async fn bundles(&self, team: &TeamId, user: Option<&UserId>) -> Result<Vec<Bundle>, StoreFault> {
        let (team, owner) = (team.clone(), owner(user));
        let found = self.sqlite.view_beside(move |db| {
            db.all(
                "SELECT content FROM bundles WHERE team = ? AND owner = ? ORDER BY slug",
                [team.as_str(), &owner],
                |row| Ok::<_, Failure>(decoded("a bundle", &row.get::<_, String>(0)?)?),
            )
        });
        found.await.map_err(|failure| failure.into_fault("list bundles"))
    }

    async fn save_bundle(&self, bundle: Bundle) -> Result<(), CommitError> {
        let content = encoded("encode a bundle", &bundle)?;
        let written = self.sqlite.update(move |db| save(db, &bundle, &content)).await;
        written.map_err(Failure::into_commit_error)
    }

    async fn delete_bundle(&self, key: &BundleKey) -> Result<bool, StoreFault> {
        let key = key.clone();
        let deleted = self.sqlite.update(move |db| {
            let owner = owner(key.owner.as_ref());
            db.execute(
                "DELETE FROM bundles WHERE team = ? AND owner = ? AND slug = ?",
                [key.team.as_str(), &owner, key.slug.as_str()],
            )
        });
        let deleted: Result<usize, StoreError> = deleted.await;
        Ok(deleted.map_err(|error| fault("delete a bundle", error))? > 0)
    }
}
