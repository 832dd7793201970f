//! The writes, each in one transaction that the caller has begun. Checks come first, in the order of the port's words:
//! fence, request id, version, names, what is revoked.

use std::time::Duration;

use steward_base::JobRef;
use steward_base::names::{SkillId, TeamId};
use steward_skill_core::error::StoreFault;
use steward_skill_core::name::{self, Category};
use steward_skill_core::record::{Files, Revision, SkillRecord, State};
use steward_skill_core::store::{Change, CommitError, Purge, RequestKey, View};
use steward_store::{Db, SqlError, StoreError, params};

use super::rows::{self, signed};
use super::{fault, hub, proposals, read};

/// How long first answers are kept: longer than any turn waits, any job is retried or any client repeats.
const ANSWERS_KEPT: Duration = Duration::from_hours(30 * 24);

/// Why work on the database came to nothing, and a transaction is rolled back.
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

    /// What it is to those who can only meet faults.
    pub(super) fn into_fault(self, operation: &'static str) -> StoreFault {
        match self {
            Self::Refused(CommitError::Store(fault)) => fault,
            Self::Refused(other) => StoreFault::Internal {
                operation,
                source: Box::new(other),
            },
            Self::Store(error) => fault(operation, error),
        }
    }
}

impl From<StoreError> for Failure {
    fn from(error: StoreError) -> Self {
        Self::Store(error)
    }
}

impl From<SqlError> for Failure {
    fn from(error: SqlError) -> Self {
        Self::Store(error.into())
    }
}

impl From<StoreFault> for Failure {
    fn from(fault: StoreFault) -> Self {
        Self::Refused(CommitError::Store(fault))
    }
}

impl From<CommitError> for Failure {
    fn from(error: CommitError) -> Self {
        Self::Refused(error)
    }
}

pub(super) fn commit(db: Db<'_>, change: Change) -> Result<(), Failure> {
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
        take_fence(db, &record.team, job)?;
    }
    if let Some((key, _)) = &answer
        && let Some(first) = read::first_answer(db, &record.team, &key.scope, &key.id)?
    {
        return Err(CommitError::Answered(first).into());
    }
    let was_active = check_version(db, &record, expected)?;
    if record.is_active() {
        check_place(db, &record)?;
        check_revoked(db, &record, revision.as_ref().map(|(revision, _)| revision), was_active)?;
    }
    match expected {
        None => insert_skill(db, &record)?,
        Some(_) => update_skill(db, &record, is_patch)?,
    }
    for (revision, files) in beneath.iter().chain(&revision) {
        insert_revision(db, &record, revision, files)?;
    }
    if let Some(reader) = &reader {
        remember(db, record.team.as_str(), &reader.key(), &record.uid, &record.revision)?;
    }
    if let Some((key, answer)) = &answer {
        insert_answer(db, &record, key, answer)?;
    }
    match &decides {
        Some(proposal) if !proposals::decide(db, proposal)? => Err(CommitError::VersionMismatch.into()),
        _ => Ok(()),
    }
}

pub(super) fn take_fence(db: Db<'_>, team: &TeamId, job: &JobRef) -> Result<(), Failure> {
    let newest: Option<i64> = db.optional(
        "SELECT fence FROM job_fences WHERE team = ? AND job = ?",
        params![team.as_str(), &job.id],
    )?;
    let newest = newest.map_or(0, rows::unsigned);
    if newest > job.fence {
        return Err(CommitError::StaleFence { current: newest }.into());
    }
    db.execute(
        "INSERT INTO job_fences (team, job, fence) VALUES (?, ?, ?) \
         ON CONFLICT (team, job) DO UPDATE SET fence = excluded.fence",
        params![team.as_str(), &job.id, signed(job.fence)],
    )?;
    Ok(())
}

/// Whether the skill is in use now.
fn check_version(db: Db<'_>, record: &SkillRecord, expected: Option<u64>) -> Result<bool, Failure> {
    let there: Option<(i64, i64)> = db.first(
        "SELECT version, archived FROM skills WHERE team = ? AND uid = ?",
        [record.team.as_str(), &record.uid],
        |row| Ok::<_, Failure>((row.get(0)?, row.get(1)?)),
    )?;
    if there.map(|(version, _)| rows::unsigned(version)) == expected {
        Ok(there.is_some_and(|(_, archived)| archived == 0))
    } else {
        Err(CommitError::VersionMismatch.into())
    }
}

/// The one place that every tree passes on its way into use. A change of a record alone, such as a pin, puts nothing into use.
fn check_revoked(
    db: Db<'_>,
    record: &SkillRecord,
    revision: Option<&Revision>,
    was_active: bool,
) -> Result<(), Failure> {
    let team = record.team.as_str();
    if let Some(revision) = revision {
        return hub::check_revoked(db, team, &revision.files);
    }
    if was_active {
        return Ok(());
    }
    match read::revision(db, &record.team, &record.uid, &record.revision)? {
        Some(present) => hub::check_revoked(db, team, &present.files),
        None => Err(CommitError::Store(StoreFault::Damaged {
            what: format!("the newest revision of {}", record.full_name()),
        })
        .into()),
    }
}

pub(super) fn check_place(db: Db<'_>, record: &SkillRecord) -> Result<(), Failure> {
    let others: Vec<(String, String)> = db.all(
        "SELECT category, name FROM skills \
         WHERE team = ? AND scope = ? AND owner = ? AND archived = 0 AND uid <> ?",
        params![
            record.team.as_str(),
            record.scope.label(),
            record.scope.owner(),
            &record.uid
        ],
        |row| Ok::<_, Failure>((row.get(0)?, row.get(1)?)),
    )?;
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

fn insert_skill(db: Db<'_>, record: &SkillRecord) -> Result<(), Failure> {
    let (header, archival) = encoded(record)?;
    db.execute(
        "INSERT INTO skills (team, uid, scope, owner, category, name, provenance, author, pinned, protected, archived, \
         archival, version, revision, number, tree, header, created, updated) \
         VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        params![
            record.team.as_str(),
            &record.uid,
            record.scope.label(),
            record.scope.owner(),
            record.category.as_str(),
            record.name.as_str(),
            record.provenance.as_str(),
            record.author.as_ref().map(|author| author.as_str().to_owned()),
            i64::from(record.pinned),
            i64::from(record.protected),
            i64::from(archival.is_some()),
            archival,
            signed(record.version),
            &record.revision,
            signed(record.number),
            &record.tree,
            header,
            record.created.as_micros(),
            record.updated.as_micros()
        ],
    )?;
    Ok(())
}

/// What can change in a record; usage only by counting.
fn update_skill(db: Db<'_>, record: &SkillRecord, is_patch: bool) -> Result<(), Failure> {
    let (header, archival) = encoded(record)?;
    db.execute(
        "UPDATE skills SET pinned = ?, archived = ?, archival = ?, version = ?, revision = ?, number = ?, tree = ?, \
         header = ?, updated = ?, patches = patches + ?, last_patched = coalesce(?, last_patched), \
         stale_since = CASE WHEN ? THEN NULL ELSE stale_since END \
         WHERE team = ? AND uid = ?",
        params![
            i64::from(record.pinned),
            i64::from(archival.is_some()),
            archival,
            signed(record.version),
            &record.revision,
            signed(record.number),
            &record.tree,
            header,
            record.updated.as_micros(),
            i64::from(is_patch),
            is_patch.then(|| record.updated.as_micros()),
            is_patch || !record.is_active(),
            record.team.as_str(),
            &record.uid
        ],
    )?;
    Ok(())
}

fn insert_revision(db: Db<'_>, record: &SkillRecord, revision: &Revision, files: &Files) -> Result<(), Failure> {
    let by = &revision.by;
    let evidence = serde_json::to_string(&by.evidence).map_err(|error| {
        CommitError::Store(StoreFault::Internal {
            operation: "encode evidence",
            source: Box::new(error),
        })
    })?;
    let lowest = by.evidence.iter().filter_map(|evidence| evidence.integrity).min();
    db.execute(
        "INSERT INTO revisions (team, skill, number, id, parent, tree, action, author, origin, session, turn, job, \
         fence, reason, evidence, basis, integrity, restored_from, created) \
         VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        params![
            record.team.as_str(),
            &record.uid,
            signed(revision.number),
            &revision.id,
            &revision.parent,
            &revision.tree,
            &revision.action,
            by.user.as_ref().map(|user| user.as_str().to_owned()),
            by.origin.as_str(),
            &by.session,
            &by.turn,
            by.job.as_ref().map(|job| job.id.clone()),
            by.job.as_ref().map(|job| signed(job.fence)),
            &by.reason,
            evidence,
            by.evidence.first().map(|evidence| evidence.basis.clone()),
            lowest.map(|level| i64::from(level.level())),
            &revision.restored_from,
            revision.created.as_micros()
        ],
    )?;
    insert_files(db, record, revision, files)
}

fn insert_files(db: Db<'_>, record: &SkillRecord, revision: &Revision, files: &Files) -> Result<(), Failure> {
    for entry in &revision.files {
        if let Some(bytes) = files.get(&entry.path) {
            db.execute(
                "INSERT INTO blobs (team, sha256, bytes) VALUES (?, ?, ?) ON CONFLICT (team, sha256) DO NOTHING",
                params![record.team.as_str(), &entry.sha256, bytes],
            )?;
        }
        db.execute(
            "INSERT INTO revision_files (team, skill, number, path, sha256, size) VALUES (?, ?, ?, ?, ?, ?)",
            params![
                record.team.as_str(),
                &record.uid,
                signed(revision.number),
                entry.path.as_str(),
                &entry.sha256,
                signed(entry.size)
            ],
        )?;
    }
    Ok(())
}

fn remember(db: Db<'_>, team: &str, reader: &str, uid: &str, revision: &str) -> Result<(), StoreError> {
    db.execute(
        "INSERT INTO reads (team, reader, skill, revision) VALUES (?, ?, ?, ?) \
         ON CONFLICT (team, reader, skill) DO UPDATE SET revision = excluded.revision",
        params![team, reader, uid, revision],
    )?;
    Ok(())
}

/// Keeps the first answer, and lets go of the team's oldest ones.
fn insert_answer(db: Db<'_>, record: &SkillRecord, key: &RequestKey, answer: &str) -> Result<(), Failure> {
    db.execute(
        "DELETE FROM answers WHERE team = ? AND at < ?",
        params![record.team.as_str(), record.updated.minus(ANSWERS_KEPT).as_micros()],
    )?;
    db.execute(
        "INSERT INTO answers (team, scope, id, hash, skill, answer, at) VALUES (?, ?, ?, ?, ?, ?, ?)",
        params![
            record.team.as_str(),
            &key.scope,
            &key.id,
            &key.hash,
            &record.uid,
            answer,
            record.updated.as_micros()
        ],
    )?;
    Ok(())
}

pub(super) fn set_hidden(db: Db<'_>, team: &TeamId, user: &str, uid: &str, hidden: bool) -> Result<(), StoreError> {
    let statement = if hidden {
        "INSERT OR IGNORE INTO hidden_skills (team, owner, skill) SELECT team, ?1, uid FROM skills WHERE team = ?2 AND uid = ?3"
    } else {
        "DELETE FROM hidden_skills WHERE owner = ?1 AND team = ?2 AND skill = ?3"
    };
    db.execute(statement, params![user, team.as_str(), uid])?;
    Ok(())
}

pub(super) fn set_references(db: Db<'_>, team: &TeamId, holder: &str, uids: &[String]) -> Result<(), StoreError> {
    db.execute(
        "DELETE FROM skill_references WHERE team = ? AND holder = ?",
        params![team.as_str(), holder],
    )?;
    for uid in uids {
        // Purged meanwhile: there is nothing to protect.
        db.execute(
            "INSERT OR IGNORE INTO skill_references (team, holder, skill) \
             SELECT team, ?, uid FROM skills WHERE team = ? AND uid = ?",
            params![holder, team.as_str(), uid],
        )?;
    }
    Ok(())
}

pub(super) fn record_view(db: Db<'_>, view: &View) -> Result<(), StoreError> {
    let team = view.team.as_str();
    let counted = if view.is_use {
        db.execute(
            "UPDATE skills SET views = views + 1, uses = uses + 1, last_used = ?, stale_since = NULL \
             WHERE team = ? AND uid = ?",
            params![view.at.as_micros(), team, &view.uid],
        )?
    } else {
        db.execute(
            "UPDATE skills SET review_views = review_views + 1 WHERE team = ? AND uid = ?",
            params![team, &view.uid],
        )?
    };
    // Purged meanwhile: there is nothing to remember.
    if let (1.., Some(reader)) = (counted, &view.reader) {
        remember(db, team, &reader.key(), &view.uid, &view.revision)?;
    }
    Ok(())
}

/// Lets go of blobs that neither a revision nor an item in quarantine has.
pub(super) fn drop_orphans(db: Db<'_>, team: &str) -> Result<(), StoreError> {
    db.execute(
        "DELETE FROM blobs WHERE team = ? \
         AND NOT EXISTS (SELECT 1 FROM revision_files f WHERE f.team = blobs.team AND f.sha256 = blobs.sha256) \
         AND NOT EXISTS (SELECT 1 FROM hub_item_files f WHERE f.team = blobs.team AND f.sha256 = blobs.sha256)",
        [team],
    )?;
    Ok(())
}

pub(super) fn purge(db: Db<'_>, purge: &Purge) -> Result<u64, Failure> {
    let record = &purge.record;
    check_version(db, record, Some(record.version))?;
    let revisions: i64 = db.value(
        "SELECT count(*) FROM revisions WHERE team = ? AND skill = ?",
        params![record.team.as_str(), &record.uid],
    )?;
    db.execute(
        "DELETE FROM proposals WHERE team = ? AND skill = ? AND fingerprint <> ''",
        params![record.team.as_str(), &record.uid],
    )?;
    // Revisions, their files, readings and answers go with the row.
    db.execute(
        "DELETE FROM skills WHERE team = ? AND uid = ?",
        params![record.team.as_str(), &record.uid],
    )?;
    drop_orphans(db, record.team.as_str())?;
    db.execute(
        "INSERT INTO purges (team, uid, skill, revisions, actor, at) VALUES (?, ?, ?, ?, ?, ?)",
        params![
            record.team.as_str(),
            &record.uid,
            record.full_name(),
            revisions,
            &purge.by,
            purge.at.as_micros()
        ],
    )?;
    Ok(rows::unsigned(revisions))
}
