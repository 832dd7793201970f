//! What a team publishes: rows with the archive in them, so that what is served is what was packed.

use sqlx::Row;
use sqlx::sqlite::SqliteConnection;
use steward_base::hash::sha256_hex;
use steward_skill_hub::publish::Publication;

use super::{Happened, HubFailure, write};

pub(super) async fn publish(
    connection: &mut SqliteConnection,
    publication: Publication,
    archive: Vec<u8>,
    happened: Happened,
) -> Result<(), HubFailure> {
    sqlx::query(
        "INSERT INTO hub_publications (team, name, archive, content) VALUES (?, ?, ?, ?) \
         ON CONFLICT (team, name) DO UPDATE SET archive = excluded.archive, content = excluded.content",
    )
    .bind(&happened.team)
    .bind(&publication.name)
    .bind(archive)
    .bind(serde_json::to_string(&publication)?)
    .execute(&mut *connection)
    .await?;
    write::append(connection, happened).await
}

pub(super) async fn unpublish(
    connection: &mut SqliteConnection,
    name: String,
    happened: Happened,
) -> Result<bool, HubFailure> {
    let ended = sqlx::query("DELETE FROM hub_publications WHERE team = ? AND name = ?")
        .bind(&happened.team)
        .bind(name)
        .execute(&mut *connection)
        .await?;
    if ended.rows_affected() == 0 {
        return Ok(false);
    }
    write::append(connection, happened).await?;
    Ok(true)
}

pub(super) async fn all(connection: &mut SqliteConnection, team: &str) -> Result<Vec<Publication>, HubFailure> {
    let found: Vec<String> = sqlx::query_scalar("SELECT content FROM hub_publications WHERE team = ? ORDER BY name")
        .bind(team)
        .fetch_all(connection)
        .await?;
    let found = found.iter().map(|content| serde_json::from_str(content));
    Ok(found.collect::<Result<_, _>>()?)
}

/// The archive, held against its digest.
pub(super) async fn archive(
    connection: &mut SqliteConnection,
    team: &str,
    name: &str,
    digest: &str,
) -> Result<Option<Vec<u8>>, HubFailure> {
    let found = sqlx::query("SELECT archive, content FROM hub_publications WHERE team = ? AND name = ?")
        .bind(team)
        .bind(name)
        .fetch_optional(connection)
        .await?;
    let Some(row) = found else { return Ok(None) };
    let publication: Publication = serde_json::from_str(&row.try_get::<String, _>("content")?)?;
    if publication.archive != digest {
        return Ok(None);
    }
    let archive: Vec<u8> = row.try_get("archive")?;
    if sha256_hex(&archive) == digest {
        Ok(Some(archive))
    } else {
        Err(HubFailure::Failed(format!("the archive of {name} is damaged")))
    }
}
