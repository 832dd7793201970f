//! The erasure of a person: one transaction, and the log written back behind it.

use async_trait::async_trait;
use steward_skill_core::error::StoreFault;
use steward_skill_core::store::{EraseStore, Erased, Erasure};
use steward_store::{Db, Sql, StoreError, params};

use super::rows::unsigned;
use super::write::drop_orphans;
use super::{SqliteSkillStore, fault};

/// The person's own skills, by `?1` team and `?2` user.
const OWN: &str = "SELECT uid FROM skills WHERE team = ?1 AND scope = 'user' AND owner = ?2";

#[async_trait]
impl EraseStore for SqliteSkillStore {
    async fn erase_person(&self, erasure: Erasure) -> Result<Erased, StoreFault> {
        let erased = self.sqlite.update(move |db| erase(db, &erasure)).await;
        let erased = erased.map_err(|error| fault("erase a person", error))?;
        // What was removed still stands in the log until that is written back.
        if let Err(error) = self.sqlite.checkpoint().await {
            tracing::warn!(%error, "the log could not be written back after an erasure");
        }
        Ok(erased)
    }
}

fn erase(db: Db<'_>, erasure: &Erasure) -> Result<Erased, StoreError> {
    let whose = [erasure.team.as_str(), erasure.user.as_str()];
    // The audit keeps that there was a skill, and not what it was called.
    db.execute(
        "INSERT OR IGNORE INTO purges (team, uid, skill, revisions, actor, at) \
         SELECT team, uid, 'users/' || owner, \
                (SELECT count(*) FROM revisions r WHERE r.team = s.team AND r.skill = s.uid), ?3, ?4 \
         FROM skills s WHERE team = ?1 AND scope = 'user' AND owner = ?2",
        params![whose[0], whose[1], erasure.by, erasure.at.as_micros()],
    )?;
    let revisions: i64 = db.value(
        Sql::built(format!(
            "SELECT count(*) FROM revisions WHERE team = ?1 AND skill IN ({OWN})"
        )),
        whose,
    )?;
    let mut others = 0;
    for sql in [
        Sql::built(format!(
            "DELETE FROM proposals WHERE team = ?1 AND (author = ?2 OR skill IN ({OWN}))"
        )),
        Sql::built(format!(
            "DELETE FROM hidden_skills WHERE team = ?1 AND (owner = ?2 OR skill IN ({OWN}))"
        )),
        "DELETE FROM bundles WHERE team = ?1 AND owner = ?2".into(),
    ] {
        others += db.execute(sql, whose)?;
    }
    db.execute(
        Sql::built(format!(
            "DELETE FROM library_changes WHERE team = ?1 AND skill IN ({OWN})"
        )),
        whose,
    )?;
    // Revisions, their files, readings and answers go with the rows.
    let skills = db.execute(
        "DELETE FROM skills WHERE team = ?1 AND scope = 'user' AND owner = ?2",
        whose,
    )?;
    drop_orphans(db, whose[0])?;
    let found_after: i64 = db.value(
        "SELECT (SELECT count(*) FROM skills WHERE team = ?1 AND scope = 'user' AND owner = ?2) \
         + (SELECT count(*) FROM bundles WHERE team = ?1 AND owner = ?2) \
         + (SELECT count(*) FROM hidden_skills WHERE team = ?1 AND owner = ?2) \
         + (SELECT count(*) FROM proposals WHERE team = ?1 AND author = ?2)",
        whose,
    )?;
    Ok(Erased {
        skills: counted(skills),
        revisions: unsigned(revisions),
        others: counted(others),
        found_after: unsigned(found_after),
    })
}

fn counted(rows: usize) -> u64 {
    u64::try_from(rows).unwrap_or(u64::MAX)
}
