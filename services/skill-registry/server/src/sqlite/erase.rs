//! The erasure of a person: one transaction, and the log written back behind it.

use async_trait::async_trait;
use sqlx::sqlite::SqliteConnection;
use steward_skill_core::error::StoreFault;
use steward_skill_core::store::{EraseStore, Erased, Erasure};
use steward_store::StoreError;

use super::rows::unsigned;
use super::write::drop_orphans;
use super::{SqliteSkillStore, fault};

/// The person's own skills, by `?1` team and `?2` user.
const OWN: &str = "SELECT uid FROM skills WHERE team = ?1 AND scope = 'user' AND owner = ?2";

#[async_trait]
impl EraseStore for SqliteSkillStore {
    async fn erase_person(&self, erasure: Erasure) -> Result<Erased, StoreFault> {
        let erased = self
            .sqlite
            .write(move |connection| {
                Box::pin(async move { erase(connection, &erasure).await.map_err(StoreError::from) })
            })
            .await
            .map_err(|error| fault("erase a person", error))?;
        // What was removed still stands in the log until that is written back.
        if let Err(error) = self.sqlite.checkpoint().await {
            tracing::warn!(%error, "the log could not be written back after an erasure");
        }
        Ok(erased)
    }
}

async fn erase(connection: &mut SqliteConnection, erasure: &Erasure) -> Result<Erased, sqlx::Error> {
    let (team, user) = (erasure.team.as_str(), erasure.user.as_str());
    // The audit keeps that there was a skill, and not what it was called.
    let purged = sqlx::query(
        "INSERT OR IGNORE INTO purges (team, uid, skill, revisions, actor, at) \
         SELECT team, uid, 'users/' || owner, \
                (SELECT count(*) FROM revisions r WHERE r.team = s.team AND r.skill = s.uid), ?3, ?4 \
         FROM skills s WHERE team = ?1 AND scope = 'user' AND owner = ?2",
    )
    .bind(team)
    .bind(user)
    .bind(&erasure.by)
    .bind(erasure.at.as_micros());
    purged.execute(&mut *connection).await?;
    let revisions: i64 = counted(
        connection,
        &format!("SELECT count(*) FROM revisions WHERE team = ?1 AND skill IN ({OWN})"),
        erasure,
    )
    .await?;
    let mut others = 0;
    for sql in [
        format!("DELETE FROM proposals WHERE team = ?1 AND (author = ?2 OR skill IN ({OWN}))"),
        format!("DELETE FROM hidden_skills WHERE team = ?1 AND (owner = ?2 OR skill IN ({OWN}))"),
        "DELETE FROM bundles WHERE team = ?1 AND owner = ?2".to_owned(),
    ] {
        others += run(connection, sql, erasure).await?;
    }
    run(
        connection,
        format!("DELETE FROM library_changes WHERE team = ?1 AND skill IN ({OWN})"),
        erasure,
    )
    .await?;
    // Revisions, their files, readings and answers go with the rows.
    let skills = run(
        connection,
        "DELETE FROM skills WHERE team = ?1 AND scope = 'user' AND owner = ?2".to_owned(),
        erasure,
    )
    .await?;
    drop_orphans(connection, team).await?;
    let found = "SELECT (SELECT count(*) FROM skills WHERE team = ?1 AND scope = 'user' AND owner = ?2) \
                 + (SELECT count(*) FROM bundles WHERE team = ?1 AND owner = ?2) \
                 + (SELECT count(*) FROM hidden_skills WHERE team = ?1 AND owner = ?2) \
                 + (SELECT count(*) FROM proposals WHERE team = ?1 AND author = ?2)";
    let found_after = counted(connection, found, erasure).await?;
    Ok(Erased {
        skills,
        revisions: unsigned(revisions),
        others,
        found_after: unsigned(found_after),
    })
}

/// Put together from constants only; both values are bound.
async fn run(connection: &mut SqliteConnection, sql: String, erasure: &Erasure) -> Result<u64, sqlx::Error> {
    let done = sqlx::query(sqlx::AssertSqlSafe(sql))
        .bind(erasure.team.as_str())
        .bind(erasure.user.as_str())
        .execute(connection)
        .await?;
    Ok(done.rows_affected())
}

async fn counted(connection: &mut SqliteConnection, sql: &str, erasure: &Erasure) -> Result<i64, sqlx::Error> {
    sqlx::query_scalar(sqlx::AssertSqlSafe(sql))
        .bind(erasure.team.as_str())
        .bind(erasure.user.as_str())
        .fetch_one(connection)
        .await
}
