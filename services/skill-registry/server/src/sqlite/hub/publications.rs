//! What a team publishes: rows with the archive in them, so that what is served is what was packed.

use steward_base::hash::sha256_hex;
use steward_skill_hub::publish::Publication;
use steward_store::{Db, params};

use super::{Happened, HubFailure, read, write};

pub(super) fn publish(
    db: Db<'_>,
    publication: &Publication,
    archive: &[u8],
    happened: Happened,
) -> Result<(), HubFailure> {
    db.execute(
        "INSERT INTO hub_publications (team, name, archive, content) VALUES (?, ?, ?, ?) \
         ON CONFLICT (team, name) DO UPDATE SET archive = excluded.archive, content = excluded.content",
        params![
            &happened.team,
            &publication.name,
            archive,
            serde_json::to_string(publication)?
        ],
    )?;
    write::append(db, happened)
}

pub(super) fn unpublish(db: Db<'_>, name: &str, happened: Happened) -> Result<bool, HubFailure> {
    let ended = db.execute(
        "DELETE FROM hub_publications WHERE team = ? AND name = ?",
        params![&happened.team, name],
    )?;
    if ended == 0 {
        return Ok(false);
    }
    write::append(db, happened)?;
    Ok(true)
}

pub(super) fn all(db: Db<'_>, team: &str) -> Result<Vec<Publication>, HubFailure> {
    db.all(
        "SELECT content FROM hub_publications WHERE team = ? ORDER BY name",
        [team],
        read::content,
    )
}

/// The archive, held against its digest.
pub(super) fn archive(db: Db<'_>, team: &str, name: &str, digest: &str) -> Result<Option<Vec<u8>>, HubFailure> {
    let found = db.first(
        "SELECT archive, content FROM hub_publications WHERE team = ? AND name = ?",
        [team, name],
        |row| Ok::<(Vec<u8>, Publication), HubFailure>((row.get(0)?, read::json(row, 1)?)),
    )?;
    let Some((archive, publication)) = found else {
        return Ok(None);
    };
    if publication.archive != digest {
        return Ok(None);
    }
    if sha256_hex(&archive) == digest {
        Ok(Some(archive))
    } else {
        Err(HubFailure::Failed(format!("the archive of {name} is damaged")))
    }
}
