//! What is asked of the store, within a transaction that the caller has begun.

use std::collections::BTreeSet;

use steward_base::names::{SkillId, TeamId, UserId};
use steward_skill_core::error::StoreFault;
use steward_skill_core::name::Scope;
use steward_skill_core::record::{self, FileEntry, Files, Found, Revision};
use steward_skill_core::store::{FirstAnswer, Reader};
use steward_store::{Db, Row, StoreError, params};

use super::rows::{self, Column};
use super::write::Failure;

pub(super) fn first_answer(
    db: Db<'_>,
    team: &TeamId,
    scope: &str,
    id: &str,
) -> Result<Option<FirstAnswer>, StoreError> {
    db.first(
        "SELECT hash, answer FROM answers WHERE team = ? AND scope = ? AND id = ?",
        params![team.as_str(), scope, id],
        |row| {
            Ok(FirstAnswer {
                hash: row.get(0)?,
                answer: row.get(1)?,
            })
        },
    )
}

fn nearest_first(scopes: &[Scope]) -> Vec<&Scope> {
    let mut scopes = scopes.iter().collect::<Vec<_>>();
    scopes.sort_by_key(|scope| scope.rank());
    scopes
}

pub(super) fn list(db: Db<'_>, team: &TeamId, scopes: &[Scope], archived: bool) -> Result<Vec<Found>, StoreError> {
    let mut listed = Vec::new();
    for scope in nearest_first(scopes) {
        let of_scope = db.all(
            concat!(
                "SELECT ",
                rows::skill_columns!(),
                " FROM skills WHERE team = ? AND scope = ? AND owner = ? AND archived = ? ORDER BY category, name, uid"
            ),
            params![team.as_str(), scope.label(), scope.owner(), archived],
            |row| Ok::<_, StoreError>(rows::skill(row)),
        )?;
        listed.extend(of_scope);
    }
    Ok(listed)
}

/// One statement over all scopes, since every view begins with it.
pub(super) fn named(db: Db<'_>, team: &TeamId, scopes: &[Scope], name: &SkillId) -> Result<Vec<Found>, StoreError> {
    let mut found = db.all(
        concat!(
            "SELECT ",
            rows::skill_columns!(),
            " FROM skills WHERE team = ? AND name = ? ORDER BY category, name, uid"
        ),
        params![team.as_str(), name.as_str()],
        |row| {
            let (label, owner): (String, String) = (row.get(Column::Scope.at())?, row.get(Column::Owner.at())?);
            let scope = scopes
                .iter()
                .find(|scope| scope.label() == label && scope.owner() == owner);
            Ok::<_, StoreError>(scope.map(|scope| (scope.rank(), rows::skill(row))))
        },
    )?;
    found.sort_by_key(|found| found.as_ref().map(|(rank, _)| *rank));
    Ok(found.into_iter().flatten().map(|(_, found)| found).collect())
}

pub(super) fn revisions(
    db: Db<'_>,
    team: &TeamId,
    uid: &str,
    before: Option<u64>,
    limit: u32,
) -> Result<Vec<Revision>, Failure> {
    db.all(
        concat!(
            "SELECT ",
            rows::revision_columns!(),
            " FROM revisions WHERE team = ? AND skill = ? AND number < ? ORDER BY number DESC LIMIT ?"
        ),
        params![team.as_str(), uid, before.map_or(i64::MAX, rows::signed), limit],
        |row| with_files(db, team, uid, row),
    )
}

pub(super) fn revision(db: Db<'_>, team: &TeamId, uid: &str, id: &str) -> Result<Option<Revision>, Failure> {
    db.first(
        concat!(
            "SELECT ",
            rows::revision_columns!(),
            " FROM revisions WHERE team = ? AND skill = ? AND id = ?"
        ),
        params![team.as_str(), uid, id],
        |row| with_files(db, team, uid, row),
    )
}

fn with_files(db: Db<'_>, team: &TeamId, uid: &str, row: &Row<'_>) -> Result<Revision, Failure> {
    let number: i64 = row.get("number")?;
    let files: Vec<FileEntry> = db.all(
        "SELECT path, sha256, size FROM revision_files WHERE team = ? AND skill = ? AND number = ? ORDER BY path",
        params![team.as_str(), uid, number],
        |row| Ok::<_, Failure>(rows::file(row)?),
    )?;
    Ok(rows::revision(row, files)?)
}

pub(super) fn files(db: Db<'_>, team: &TeamId, revision: &Revision) -> Result<Files, Failure> {
    let mut files = Files::new();
    for entry in &revision.files {
        let bytes: Option<Vec<u8>> = db.optional(
            "SELECT bytes FROM blobs WHERE team = ? AND sha256 = ?",
            [team.as_str(), &entry.sha256],
        )?;
        if let Some(bytes) = bytes {
            files.insert(entry.path.clone(), bytes);
        }
    }
    match record::verify(&files, &revision.files) {
        Ok(()) => Ok(files),
        Err(path) => Err(StoreFault::Damaged {
            what: format!("{path} of revision {}", revision.id),
        }
        .into()),
    }
}

pub(super) fn generation(db: Db<'_>, team: &TeamId) -> Result<u64, StoreError> {
    let found: Option<i64> = db.optional("SELECT generation FROM listings WHERE team = ?", [team.as_str()])?;
    Ok(found.map_or(0, rows::unsigned))
}

pub(super) fn hidden(db: Db<'_>, team: &TeamId, user: Option<&UserId>) -> Result<BTreeSet<String>, StoreError> {
    let found: Vec<String> = db.all(
        "SELECT skill FROM hidden_skills WHERE team = ? AND owner IN ('', ?)",
        [team.as_str(), user.map_or("", UserId::as_str)],
        |row| Ok::<_, StoreError>(row.get(0)?),
    )?;
    Ok(found.into_iter().collect())
}

pub(super) fn is_referenced(db: Db<'_>, team: &TeamId, uid: &str) -> Result<bool, StoreError> {
    db.exists(
        "SELECT 1 FROM skill_references WHERE team = ? AND skill = ?",
        [team.as_str(), uid],
    )
}

pub(super) fn last_read(db: Db<'_>, team: &TeamId, reader: &Reader, uid: &str) -> Result<Option<String>, StoreError> {
    db.optional(
        "SELECT revision FROM reads WHERE team = ? AND reader = ? AND skill = ?",
        params![team.as_str(), reader.key(), uid],
    )
}
