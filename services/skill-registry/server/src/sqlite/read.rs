//! What is asked of the store.

use std::collections::BTreeSet;

use sqlx::sqlite::{SqliteConnection, SqliteRow};
use sqlx::{AssertSqlSafe, Row, SqlSafeStr as _};
use steward_base::names::{SkillId, TeamId, UserId};
use steward_skill_core::error::StoreFault;
use steward_skill_core::name::Scope;
use steward_skill_core::record::{self, FileEntry, Files, Found, Revision};
use steward_skill_core::store::{FirstAnswer, Reader};
use steward_store::StoreError;

use super::{fault, rows};

pub(super) async fn first_answer(
    connection: &mut SqliteConnection,
    team: &TeamId,
    scope: &str,
    id: &str,
) -> Result<Option<FirstAnswer>, StoreError> {
    let found: Option<(String, String)> =
        sqlx::query_as("SELECT hash, answer FROM answers WHERE team = ? AND scope = ? AND id = ?")
            .bind(team.as_str())
            .bind(scope)
            .bind(id)
            .fetch_optional(connection)
            .await?;
    Ok(found.map(|(hash, answer)| FirstAnswer { hash, answer }))
}

fn nearest_first(scopes: &[Scope]) -> Vec<&Scope> {
    let mut scopes = scopes.iter().collect::<Vec<_>>();
    scopes.sort_by_key(|scope| scope.rank());
    scopes
}

/// One statement over all scopes, so that they are seen in one state.
pub(super) async fn list(
    connection: &mut SqliteConnection,
    team: &TeamId,
    scopes: &[Scope],
    archived: bool,
) -> Result<Vec<Found>, StoreError> {
    let scopes = nearest_first(scopes);
    let of_scope = |rank: usize| {
        format!(
            "SELECT {rank}, group_concat({}, char(29) ORDER BY category, name, uid) FROM skills \
             WHERE team = ? AND scope = ? AND owner = ? AND archived = ?",
            rows::PACKED
        )
    };
    let statement = (0..scopes.len()).map(of_scope).collect::<Vec<_>>().join(" UNION ALL ");
    // Nothing in it comes from a caller; there are as many texts as there are numbers of scopes.
    let mut query = sqlx::query_as::<_, (i64, Option<String>)>(AssertSqlSafe(statement).into_sql_str());
    for scope in &scopes {
        query = query
            .bind(team.as_str())
            .bind(scope.label())
            .bind(scope.owner())
            .bind(i64::from(archived));
    }
    let mut listed = query.fetch_all(connection).await?;
    listed.sort_by_key(|(rank, _)| *rank);
    let packed = listed.iter().filter_map(|(_, packed)| packed.as_deref());
    let skills = packed.flat_map(|packed| packed.split(rows::BETWEEN));
    Ok(skills.map(|skill| rows::packed(team, skill)).collect())
}

/// One statement over all scopes, since every view begins with it.
pub(super) async fn named(
    connection: &mut SqliteConnection,
    team: &TeamId,
    scopes: &[Scope],
    name: &SkillId,
) -> Result<Vec<Found>, StoreError> {
    let listed = sqlx::query(concat!(
        "SELECT ",
        rows::skill_columns!(),
        " FROM skills WHERE team = ? AND name = ? ORDER BY category, name, uid"
    ))
    .bind(team.as_str())
    .bind(name.as_str())
    .fetch_all(connection)
    .await?;
    let rank = |row: &SqliteRow| -> Result<Option<u8>, sqlx::Error> {
        let (label, owner): (&str, &str) = (row.try_get("scope")?, row.try_get("owner")?);
        let scope = scopes
            .iter()
            .find(|scope| scope.label() == label && scope.owner() == owner);
        Ok(scope.map(Scope::rank))
    };
    let mut found = Vec::new();
    for row in &listed {
        found.extend(rank(row)?.map(|rank| (rank, rows::skill(row))));
    }
    found.sort_by_key(|(rank, _)| *rank);
    Ok(found.into_iter().map(|(_, found)| found).collect())
}

pub(super) async fn revisions(
    connection: &mut SqliteConnection,
    team: &TeamId,
    uid: &str,
    before: Option<u64>,
    limit: u32,
) -> Result<Vec<Revision>, StoreFault> {
    let internal = |error: sqlx::Error| fault("list revisions", error.into());
    let listed =
        sqlx::query("SELECT * FROM revisions WHERE team = ? AND skill = ? AND number < ? ORDER BY number DESC LIMIT ?")
            .bind(team.as_str())
            .bind(uid)
            .bind(before.map_or(i64::MAX, rows::signed))
            .bind(i64::from(limit))
            .fetch_all(&mut *connection)
            .await
            .map_err(internal)?;
    let mut revisions = Vec::with_capacity(listed.len());
    for row in &listed {
        revisions.push(with_files(connection, team, uid, row).await?);
    }
    Ok(revisions)
}

pub(super) async fn revision(
    connection: &mut SqliteConnection,
    team: &TeamId,
    uid: &str,
    id: &str,
) -> Result<Option<Revision>, StoreFault> {
    let internal = |error: sqlx::Error| fault("find a revision", error.into());
    let found = sqlx::query("SELECT * FROM revisions WHERE team = ? AND skill = ? AND id = ?")
        .bind(team.as_str())
        .bind(uid)
        .bind(id)
        .fetch_optional(&mut *connection)
        .await
        .map_err(internal)?;
    match found {
        Some(row) => Ok(Some(with_files(connection, team, uid, &row).await?)),
        None => Ok(None),
    }
}

/// Revisions never change, so their files may be read in a statement of their own.
async fn with_files(
    connection: &mut SqliteConnection,
    team: &TeamId,
    uid: &str,
    row: &SqliteRow,
) -> Result<Revision, StoreFault> {
    let internal = |error: sqlx::Error| fault("list files", error.into());
    let number = row.try_get::<i64, _>("number").map_err(internal)?;
    let files = sqlx::query(
        "SELECT path, sha256, size FROM revision_files WHERE team = ? AND skill = ? AND number = ? ORDER BY path",
    )
    .bind(team.as_str())
    .bind(uid)
    .bind(number)
    .fetch_all(connection)
    .await
    .map_err(internal)?;
    let files = files.iter().map(rows::file).collect::<Result<Vec<FileEntry>, _>>()?;
    rows::revision(row, files)
}

pub(super) async fn files(
    connection: &mut SqliteConnection,
    team: &TeamId,
    revision: &Revision,
) -> Result<Files, StoreFault> {
    let internal = |error: sqlx::Error| fault("read files", error.into());
    let mut files = Files::new();
    for entry in &revision.files {
        let bytes: Option<Vec<u8>> = sqlx::query_scalar("SELECT bytes FROM blobs WHERE team = ? AND sha256 = ?")
            .bind(team.as_str())
            .bind(&entry.sha256)
            .fetch_optional(&mut *connection)
            .await
            .map_err(internal)?;
        if let Some(bytes) = bytes {
            files.insert(entry.path.clone(), bytes);
        }
    }
    match record::verify(&files, &revision.files) {
        Ok(()) => Ok(files),
        Err(path) => Err(StoreFault::Damaged {
            what: format!("{path} of revision {}", revision.id),
        }),
    }
}

pub(super) async fn generation(connection: &mut SqliteConnection, team: &TeamId) -> Result<u64, StoreError> {
    let found: Option<i64> = sqlx::query_scalar("SELECT generation FROM listings WHERE team = ?")
        .bind(team.as_str())
        .fetch_optional(connection)
        .await?;
    Ok(found.map_or(0, rows::unsigned))
}

pub(super) async fn hidden(
    connection: &mut SqliteConnection,
    team: &TeamId,
    user: Option<&UserId>,
) -> Result<BTreeSet<String>, StoreError> {
    let found: Vec<String> = sqlx::query_scalar("SELECT skill FROM hidden_skills WHERE team = ? AND owner IN ('', ?)")
        .bind(team.as_str())
        .bind(user.map_or("", UserId::as_str))
        .fetch_all(connection)
        .await?;
    Ok(found.into_iter().collect())
}

pub(super) async fn is_referenced(
    connection: &mut SqliteConnection,
    team: &TeamId,
    uid: &str,
) -> Result<bool, StoreError> {
    let found: i64 = sqlx::query_scalar("SELECT EXISTS (SELECT 1 FROM skill_references WHERE team = ? AND skill = ?)")
        .bind(team.as_str())
        .bind(uid)
        .fetch_one(connection)
        .await?;
    Ok(found != 0)
}

pub(super) async fn last_read(
    connection: &mut SqliteConnection,
    team: &TeamId,
    reader: &Reader,
    uid: &str,
) -> Result<Option<String>, StoreError> {
    Ok(
        sqlx::query_scalar("SELECT revision FROM reads WHERE team = ? AND reader = ? AND skill = ?")
            .bind(team.as_str())
            .bind(reader.key())
            .bind(uid)
            .fetch_optional(connection)
            .await?,
    )
}
