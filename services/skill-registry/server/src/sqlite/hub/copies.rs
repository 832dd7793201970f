//! Where a tree stands in a team's library, whose ever the skills are (`H-2`): by the digests that [`super::revoked`] knows it
//! by. Records that cannot be read are left out; nobody can open them either.

use steward_skill_core::name::Scope;
use steward_skill_core::record::{FileEntry, Found, SkillRecord, State};
use steward_skill_core::store::CommitError;
use steward_store::{Db, params};

use super::super::rows;
use super::super::write::{Failure, check_place};
use super::revoked::digests;

/// The skills in use that have the tree.
pub(super) fn in_use(db: Db<'_>, team: &str, digest: &str) -> Result<Vec<SkillRecord>, Failure> {
    with_tree(db, team, digest, false)
}

/// The skills that went out of sight because the tree was revoked and can come back: the newest of each name, where that is
/// free; of the hub's only what is still installed.
pub(super) fn hidden(db: Db<'_>, team: &str, digest: &str) -> Result<Vec<SkillRecord>, Failure> {
    let mut found = with_tree(db, team, digest, true)?;
    found.retain(|record| matches!(&record.state, State::Archived(archival) if archival.is_revocation()));
    found.sort_by_key(|record| std::cmp::Reverse(record.updated));
    let mut back: Vec<SkillRecord> = Vec::new();
    for record in found {
        if !back.iter().any(|other| have_one_place(other, &record)) && is_free(db, team, &record)? {
            back.push(record);
        }
    }
    Ok(back)
}

fn have_one_place(one: &SkillRecord, other: &SkillRecord) -> bool {
    let is_apart = one.scope == Scope::External && one.category != other.category;
    one.scope == other.scope && one.name == other.name && !is_apart
}

fn is_free(db: Db<'_>, team: &str, record: &SkillRecord) -> Result<bool, Failure> {
    let is_gone = record.scope == Scope::Hub
        && !db.exists(
            "SELECT 1 FROM hub_locks WHERE team = ? AND name = ?",
            [team, record.name.as_str()],
        )?;
    match check_place(db, record) {
        Ok(()) => Ok(!is_gone),
        Err(Failure::Refused(CommitError::InTheWay(_))) => Ok(false),
        Err(failure) => Err(failure),
    }
}

fn with_tree(db: Db<'_>, team: &str, digest: &str, archived: bool) -> Result<Vec<SkillRecord>, Failure> {
    // One skill stands for all that have its tree.
    let trees = db.all(
        "SELECT tree, max(uid), number FROM skills WHERE team = ? AND archived = ? GROUP BY tree",
        params![team, archived],
        |row| Ok::<(String, String, i64), Failure>((row.get(0)?, row.get(1)?, row.get(2)?)),
    )?;
    let mut found: Vec<Found> = Vec::new();
    for (tree, uid, number) in trees {
        let files = db.all(
            "SELECT path, sha256, size FROM revision_files WHERE team = ? AND skill = ? AND number = ? ORDER BY path",
            params![team, uid, number],
            |row| Ok::<_, Failure>(rows::file(row).ok()),
        )?;
        let Some(files) = files.into_iter().collect::<Option<Vec<FileEntry>>>() else {
            continue;
        };
        if digests(db, team, &files)?.contains(digest) {
            found.extend(db.all(
                concat!(
                    "SELECT ",
                    rows::skill_columns!(),
                    " FROM skills WHERE team = ? AND archived = ? AND tree = ? ORDER BY uid"
                ),
                params![team, archived, tree],
                |row| Ok::<_, Failure>(rows::skill(row)),
            )?);
        }
    }
    Ok(found.into_iter().flatten().collect())
}
