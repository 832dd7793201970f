//! The writes, each in one transaction that the caller has begun. Checks come first, in the order of the port's words:
//! fence, request id, version, names, what is revoked.

use std::time::Duration;

use sqlx::sqlite::SqliteConnection;
use steward_base::JobRef;
use steward_base::names::{SkillId, TeamId};
use steward_skill_core::error::StoreFault;
use steward_skill_core::name::{self, Category};
use steward_skill_core::record::{Files, Revision, SkillRecord, State};
use steward_skill_core::store::{Change, CommitError, Purge, RequestKey, View};
use steward_store::StoreError;

use super::rows::{self, signed};
use super::{fault, hub, proposals, read};

/// How long first answers are kept: longer than any turn waits, any job is retried or any client repeats.
const ANSWERS_KEPT: Duration = Duration::from_hours(30 * 24);

/// Why a transaction is rolled back.
#[derive(Debug)]
pub(super) enum Failure {
    /// A check failed.
    Refused(CommitError),
    /// The database failed.
    Store(StoreError),
}

impl Failure {
    pub(super) fn into_commit_error(self) -> CommitError {
        match self {
            Self::Refused(error) => error,
            Self::Store(error) => CommitError::Store(fault("change a skill", error)),
        }
    }
}

impl From<StoreError> for Failure {
    fn from(error: StoreError) -> Self {
        Self::Store(error)
    }
}

impl From<sqlx::Error> for Failure {
    fn from(error: sqlx::Error) -> Self {
        Self::Store(error.into())
    }
}

impl From<CommitError> for Failure {
    fn from(error: CommitError) -> Self {
        Self::Refused(error)
    }
}

pub(super) async fn commit(connection: &mut SqliteConnection, change: Change) -> Result<(), Failure> {
    let Change {
        record,
        expected,
        revision,
        beneath,
        is_patch,
        reader,
        fence,
        answer,
        decides,
    } = change;
    if let Some(job) = &fence {
        take_fence(connection, &record.team, job).await?;
    }
    if let Some((key, _)) = &answer
        && let Some(first) = read::first_answer(connection, &record.team, &key.scope, &key.id).await?
    {
        return Err(CommitError::Answered(first).into());
    }
    let was_active = check_version(connection, &record, expected).await?;
    if record.is_active() {
        check_place(connection, &record).await?;
        check_revoked(
            connection,
            &record,
            revision.as_ref().map(|(revision, _)| revision),
            was_active,
        )
        .await?;
    }
    match expected {
        None => insert_skill(connection, &record).await?,
        Some(_) => update_skill(connection, &record, is_patch).await?,
    }
    for (revision, files) in beneath.iter().chain(&revision) {
        insert_revision(connection, &record, revision, files).await?;
    }
    if let Some(reader) = &reader {
        remember(
            connection,
            record.team.as_str(),
            &reader.key(),
            &record.uid,
            &record.revision,
        )
        .await?;
    }
    if let Some((key, answer)) = &answer {
        insert_answer(connection, &record, key, answer).await?;
    }
    match &decides {
        Some(proposal) if !proposals::decide(connection, proposal).await? => Err(CommitError::VersionMismatch.into()),
        _ => Ok(()),
    }
}

pub(super) async fn take_fence(connection: &mut SqliteConnection, team: &TeamId, job: &JobRef) -> Result<(), Failure> {
    let newest: Option<i64> = sqlx::query_scalar("SELECT fence FROM job_fences WHERE team = ? AND job = ?")
        .bind(team.as_str())
        .bind(&job.id)
        .fetch_optional(&mut *connection)
        .await?;
    let newest = newest.map_or(0, rows::unsigned);
    if newest > job.fence {
        return Err(CommitError::StaleFence { current: newest }.into());
    }
    sqlx::query(
        "INSERT INTO job_fences (team, job, fence) VALUES (?, ?, ?) \
         ON CONFLICT (team, job) DO UPDATE SET fence = excluded.fence",
    )
    .bind(team.as_str())
    .bind(&job.id)
    .bind(signed(job.fence))
    .execute(connection)
    .await?;
    Ok(())
}

/// Whether the skill is in use now.
async fn check_version(
    connection: &mut SqliteConnection,
    record: &SkillRecord,
    expected: Option<u64>,
) -> Result<bool, Failure> {
    let there: Option<(i64, i64)> = sqlx::query_as("SELECT version, archived FROM skills WHERE team = ? AND uid = ?")
        .bind(record.team.as_str())
        .bind(&record.uid)
        .fetch_optional(connection)
        .await?;
    if there.map(|(version, _)| rows::unsigned(version)) == expected {
        Ok(there.is_some_and(|(_, archived)| archived == 0))
    } else {
        Err(CommitError::VersionMismatch.into())
    }
}

/// The one place that every tree passes on its way into use. A change of a record alone, such as a pin, puts nothing into use.
async fn check_revoked(
    connection: &mut SqliteConnection,
    record: &SkillRecord,
    revision: Option<&Revision>,
    was_active: bool,
) -> Result<(), Failure> {
    let team = record.team.as_str();
    if let Some(revision) = revision {
        return hub::check_revoked(connection, team, &revision.files).await;
    }
    if was_active {
        return Ok(());
    }
    let present = read::revision(connection, &record.team, &record.uid, &record.revision).await;
    match present.map_err(CommitError::Store)? {
        Some(present) => hub::check_revoked(connection, team, &present.files).await,
        None => Err(CommitError::Store(StoreFault::Damaged {
            what: format!("the newest revision of {}", record.full_name()),
        })
        .into()),
    }
}

async fn check_place(connection: &mut SqliteConnection, record: &SkillRecord) -> Result<(), Failure> {
    let others: Vec<(String, String)> = sqlx::query_as(
        "SELECT category, name FROM skills \
         WHERE team = ? AND scope = ? AND owner = ? AND archived = 0 AND uid <> ?",
    )
    .bind(record.team.as_str())
    .bind(record.scope.label())
    .bind(record.scope.owner())
    .bind(&record.uid)
    .fetch_all(connection)
    .await?;
    // A row whose place cannot be read stands nowhere; its name is still held by the unique index.
    let others = others
        .into_iter()
        .filter_map(|(category, name)| Some((Category::parse(&category).ok()?, SkillId::parse(name).ok()?)))
        .collect::<Vec<_>>();
    let existing = others.iter().map(|(category, name)| (category, name));
    let in_the_way = name::in_the_way(&record.scope, &record.category, &record.name, existing);
    if in_the_way.is_empty() {
        Ok(())
    } else {
        Err(CommitError::InTheWay(in_the_way).into())
    }
}

/// The columns that are JSON, and whether the skill is archived.
fn encoded(record: &SkillRecord) -> Result<(String, Option<String>), Failure> {
    let internal = |error: serde_json::Error| {
        let fault = StoreFault::Internal {
            operation: "encode a record",
            source: Box::new(error),
        };
        Failure::Refused(CommitError::Store(fault))
    };
    let header = serde_json::to_string(&record.header).map_err(internal)?;
    let archival = match &record.state {
        State::Active => None,
        State::Archived(archival) => Some(serde_json::to_string(archival).map_err(internal)?),
    };
    Ok((header, archival))
}

async fn insert_skill(connection: &mut SqliteConnection, record: &SkillRecord) -> Result<(), Failure> {
    let (header, archival) = encoded(record)?;
    sqlx::query(
        "INSERT INTO skills (team, uid, scope, owner, category, name, provenance, author, pinned, protected, archived, \
         archival, version, revision, number, tree, header, created, updated) \
         VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
    )
    .bind(record.team.as_str())
    .bind(&record.uid)
    .bind(record.scope.label())
    .bind(record.scope.owner())
    .bind(record.category.as_str())
    .bind(record.name.as_str())
    .bind(record.provenance.as_str())
    .bind(record.author.as_ref().map(|author| author.as_str().to_owned()))
    .bind(i64::from(record.pinned))
    .bind(i64::from(record.protected))
    .bind(i64::from(archival.is_some()))
    .bind(archival)
    .bind(signed(record.version))
    .bind(&record.revision)
    .bind(signed(record.number))
    .bind(&record.tree)
    .bind(header)
    .bind(record.created.as_micros())
    .bind(record.updated.as_micros())
    .execute(connection)
    .await?;
    Ok(())
}

/// What can change in a record; usage only by counting.
async fn update_skill(connection: &mut SqliteConnection, record: &SkillRecord, is_patch: bool) -> Result<(), Failure> {
    let (header, archival) = encoded(record)?;
    sqlx::query(
        "UPDATE skills SET pinned = ?, archived = ?, archival = ?, version = ?, revision = ?, number = ?, tree = ?, \
         header = ?, updated = ?, patches = patches + ?, last_patched = coalesce(?, last_patched), \
         stale_since = CASE WHEN ? THEN NULL ELSE stale_since END \
         WHERE team = ? AND uid = ?",
    )
    .bind(i64::from(record.pinned))
    .bind(i64::from(archival.is_some()))
    .bind(archival)
    .bind(signed(record.version))
    .bind(&record.revision)
    .bind(signed(record.number))
    .bind(&record.tree)
    .bind(header)
    .bind(record.updated.as_micros())
    .bind(i64::from(is_patch))
    .bind(is_patch.then(|| record.updated.as_micros()))
    .bind(is_patch || !record.is_active())
    .bind(record.team.as_str())
    .bind(&record.uid)
    .execute(connection)
    .await?;
    Ok(())
}

async fn insert_revision(
    connection: &mut SqliteConnection,
    record: &SkillRecord,
    revision: &Revision,
    files: &Files,
) -> Result<(), Failure> {
    let by = &revision.by;
    let evidence = serde_json::to_string(&by.evidence).map_err(|error| {
        CommitError::Store(StoreFault::Internal {
            operation: "encode evidence",
            source: Box::new(error),
        })
    })?;
    let lowest = by.evidence.iter().filter_map(|evidence| evidence.integrity).min();
    sqlx::query(
        "INSERT INTO revisions (team, skill, number, id, parent, tree, action, author, origin, session, turn, job, \
         fence, reason, evidence, basis, integrity, restored_from, created) \
         VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
    )
    .bind(record.team.as_str())
    .bind(&record.uid)
    .bind(signed(revision.number))
    .bind(&revision.id)
    .bind(&revision.parent)
    .bind(&revision.tree)
    .bind(&revision.action)
    .bind(by.user.as_ref().map(|user| user.as_str().to_owned()))
    .bind(by.origin.as_str())
    .bind(&by.session)
    .bind(&by.turn)
    .bind(by.job.as_ref().map(|job| job.id.clone()))
    .bind(by.job.as_ref().map(|job| signed(job.fence)))
    .bind(&by.reason)
    .bind(evidence)
    .bind(by.evidence.first().map(|evidence| evidence.basis.clone()))
    .bind(lowest.map(|level| i64::from(level.level())))
    .bind(&revision.restored_from)
    .bind(revision.created.as_micros())
    .execute(&mut *connection)
    .await?;
    insert_files(connection, record, revision, files).await
}

async fn insert_files(
    connection: &mut SqliteConnection,
    record: &SkillRecord,
    revision: &Revision,
    files: &Files,
) -> Result<(), Failure> {
    for entry in &revision.files {
        if let Some(bytes) = files.get(&entry.path) {
            sqlx::query(
                "INSERT INTO blobs (team, sha256, bytes) VALUES (?, ?, ?) ON CONFLICT (team, sha256) DO NOTHING",
            )
            .bind(record.team.as_str())
            .bind(&entry.sha256)
            .bind(bytes)
            .execute(&mut *connection)
            .await?;
        }
        sqlx::query("INSERT INTO revision_files (team, skill, number, path, sha256, size) VALUES (?, ?, ?, ?, ?, ?)")
            .bind(record.team.as_str())
            .bind(&record.uid)
            .bind(signed(revision.number))
            .bind(entry.path.as_str())
            .bind(&entry.sha256)
            .bind(signed(entry.size))
            .execute(&mut *connection)
            .await?;
    }
    Ok(())
}

async fn remember(
    connection: &mut SqliteConnection,
    team: &str,
    reader: &str,
    uid: &str,
    revision: &str,
) -> Result<(), sqlx::Error> {
    sqlx::query(
        "INSERT INTO reads (team, reader, skill, revision) VALUES (?, ?, ?, ?) \
         ON CONFLICT (team, reader, skill) DO UPDATE SET revision = excluded.revision",
    )
    .bind(team)
    .bind(reader)
    .bind(uid)
    .bind(revision)
    .execute(connection)
    .await?;
    Ok(())
}

/// Keeps the first answer, and lets go of the team's oldest ones.
async fn insert_answer(
    connection: &mut SqliteConnection,
    record: &SkillRecord,
    key: &RequestKey,
    answer: &str,
) -> Result<(), Failure> {
    sqlx::query("DELETE FROM answers WHERE team = ? AND at < ?")
        .bind(record.team.as_str())
        .bind(record.updated.minus(ANSWERS_KEPT).as_micros())
        .execute(&mut *connection)
        .await?;
    sqlx::query("INSERT INTO answers (team, scope, id, hash, skill, answer, at) VALUES (?, ?, ?, ?, ?, ?, ?)")
        .bind(record.team.as_str())
        .bind(&key.scope)
        .bind(&key.id)
        .bind(&key.hash)
        .bind(&record.uid)
        .bind(answer)
        .bind(record.updated.as_micros())
        .execute(connection)
        .await?;
    Ok(())
}

pub(super) async fn set_hidden(
    connection: &mut SqliteConnection,
    team: &TeamId,
    user: &str,
    uid: &str,
    hidden: bool,
) -> Result<(), StoreError> {
    let statement = if hidden {
        "INSERT OR IGNORE INTO hidden_skills (team, owner, skill) SELECT team, ?1, uid FROM skills WHERE team = ?2 AND uid = ?3"
    } else {
        "DELETE FROM hidden_skills WHERE owner = ?1 AND team = ?2 AND skill = ?3"
    };
    sqlx::query(statement)
        .bind(user)
        .bind(team.as_str())
        .bind(uid)
        .execute(connection)
        .await?;
    Ok(())
}

pub(super) async fn set_references(
    connection: &mut SqliteConnection,
    team: &TeamId,
    holder: &str,
    uids: &[String],
) -> Result<(), StoreError> {
    sqlx::query("DELETE FROM skill_references WHERE team = ? AND holder = ?")
        .bind(team.as_str())
        .bind(holder)
        .execute(&mut *connection)
        .await?;
    for uid in uids {
        // Purged meanwhile: there is nothing to protect.
        sqlx::query(
            "INSERT OR IGNORE INTO skill_references (team, holder, skill) \
             SELECT team, ?, uid FROM skills WHERE team = ? AND uid = ?",
        )
        .bind(holder)
        .bind(team.as_str())
        .bind(uid)
        .execute(&mut *connection)
        .await?;
    }
    Ok(())
}

pub(super) async fn record_view(connection: &mut SqliteConnection, view: View) -> Result<(), StoreError> {
    let team = view.team.as_str();
    let counted = if view.is_use {
        sqlx::query("UPDATE skills SET views = views + 1, uses = uses + 1, last_used = ?, stale_since = NULL WHERE team = ? AND uid = ?")
            .bind(view.at.as_micros())
            .bind(team)
            .bind(&view.uid)
            .execute(&mut *connection)
            .await?
    } else {
        sqlx::query("UPDATE skills SET review_views = review_views + 1 WHERE team = ? AND uid = ?")
            .bind(team)
            .bind(&view.uid)
            .execute(&mut *connection)
            .await?
    };
    // Purged meanwhile: there is nothing to remember.
    if let (1.., Some(reader)) = (counted.rows_affected(), &view.reader) {
        remember(connection, team, &reader.key(), &view.uid, &view.revision).await?;
    }
    Ok(())
}

/// Lets go of blobs that neither a revision nor an item in quarantine has.
pub(super) async fn drop_orphans(connection: &mut SqliteConnection, team: &str) -> Result<(), sqlx::Error> {
    sqlx::query(
        "DELETE FROM blobs WHERE team = ? \
         AND NOT EXISTS (SELECT 1 FROM revision_files f WHERE f.team = blobs.team AND f.sha256 = blobs.sha256) \
         AND NOT EXISTS (SELECT 1 FROM hub_item_files f WHERE f.team = blobs.team AND f.sha256 = blobs.sha256)",
    )
    .bind(team)
    .execute(connection)
    .await?;
    Ok(())
}

pub(super) async fn purge(connection: &mut SqliteConnection, purge: Purge) -> Result<u64, Failure> {
    let record = &purge.record;
    check_version(connection, record, Some(record.version)).await?;
    let revisions: i64 = sqlx::query_scalar("SELECT count(*) FROM revisions WHERE team = ? AND skill = ?")
        .bind(record.team.as_str())
        .bind(&record.uid)
        .fetch_one(&mut *connection)
        .await?;
    sqlx::query("DELETE FROM proposals WHERE team = ? AND skill = ? AND fingerprint <> ''")
        .bind(record.team.as_str())
        .bind(&record.uid)
        .execute(&mut *connection)
        .await?;
    // Revisions, their files, readings and answers go with the row.
    sqlx::query("DELETE FROM skills WHERE team = ? AND uid = ?")
        .bind(record.team.as_str())
        .bind(&record.uid)
        .execute(&mut *connection)
        .await?;
    drop_orphans(connection, record.team.as_str()).await?;
    sqlx::query("INSERT INTO purges (team, uid, skill, revisions, actor, at) VALUES (?, ?, ?, ?, ?, ?)")
        .bind(record.team.as_str())
        .bind(&record.uid)
        .bind(record.full_name())
        .bind(revisions)
        .bind(&purge.by)
        .bind(purge.at.as_micros())
        .execute(connection)
        .await?;
    Ok(rows::unsigned(revisions))
}
