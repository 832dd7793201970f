//! The library's part of the store: records with their age, snapshots, and what each run changed.

use async_trait::async_trait;
use steward_base::Timestamp;
use steward_base::names::TeamId;
use steward_skill_core::error::StoreFault;
use steward_skill_core::library::{
    Age, AgeChange, LibraryRecord, LibraryStore, NewSnapshot, RunChange, Snapshot, SnapshotEntry,
};
use steward_skill_core::record::BrokenRecord;
use steward_skill_core::store::CommitError;
use steward_store::{Db, Row, SqlError, StoreError, params};

use super::write::{self, Failure};
use super::{SqliteSkillStore, fault, rows};

type Found = Result<LibraryRecord, BrokenRecord>;

/// A skill with its age. Setting aside by a curation is no sign of life, everything else that makes a revision is one.
macro_rules! library_columns {
    () => {
        concat!(
            "SELECT ",
            rows::skill_columns!(),
            ", stale_since, (SELECT max(r.created) FROM revisions r WHERE r.team = skills.team AND r.skill = skills.uid \
             AND NOT (r.origin = 'curation' AND r.action = 'archive')) AS last_change, \
             EXISTS (SELECT 1 FROM skill_references h WHERE h.team = skills.team AND h.skill = skills.uid) \
             AS referenced FROM skills "
        )
    };
}

/// Who can have made a skill, apart from reviews and curations; whatever else stands there cannot be read.
const OTHER_MAKERS: &str = r#"["user_made","hub","builtin","external","imported"]"#;

fn found(row: &Row<'_>) -> Found {
    let record = rows::skill(row)?;
    let time = |column: &str| {
        row.get::<_, Option<i64>>(column)
            .map(|at| at.map(Timestamp::from_micros))
    };
    let broken = |error: SqlError| BrokenRecord {
        skill: record.full_name(),
        uid: record.uid.clone(),
        problem: error.to_string(),
    };
    let stale_since = time("stale_since").map_err(broken)?;
    let last_change = time("last_change").map_err(broken)?;
    let referenced = row.get::<_, i64>("referenced").map_err(broken)? != 0;
    Ok(LibraryRecord {
        stale_since,
        last_change: last_change.map_or(record.created, |at| at.max(record.created)),
        referenced,
        record,
    })
}

fn records(
    db: Db<'_>,
    team: &TeamId,
    after: Option<&str>,
    limit: u32,
    builtins: bool,
) -> Result<Vec<Found>, StoreError> {
    db.all(
        concat!(
            library_columns!(),
            "WHERE team = ? AND uid > ? AND (provenance NOT IN (SELECT value FROM json_each(?)) \
         OR (? AND provenance = 'builtin' AND protected = 0)) ORDER BY uid LIMIT ?"
        ),
        params![team.as_str(), after.unwrap_or_default(), OTHER_MAKERS, builtins, limit],
        |row| Ok(found(row)),
    )
}

fn record(db: Db<'_>, team: &TeamId, uid: &str) -> Result<Option<Found>, StoreError> {
    db.first(
        concat!(library_columns!(), "WHERE team = ? AND uid = ?"),
        [team.as_str(), uid],
        |row| Ok(found(row)),
    )
}

fn snapshot(db: Db<'_>, team: &TeamId, run: &str) -> Result<Option<Snapshot>, Failure> {
    let row: Option<(i64, String)> = db.first(
        "SELECT taken, content FROM library_snapshots WHERE team = ? AND run = ?",
        [team.as_str(), run],
        |row| Ok::<_, Failure>((row.get(0)?, row.get(1)?)),
    )?;
    let Some((taken, content)) = row else {
        return Ok(None);
    };
    let skills: Vec<SnapshotEntry> = serde_json::from_str(&content).map_err(|error| StoreFault::Damaged {
        what: format!("the snapshot of run {run}: {error}"),
    })?;
    Ok(Some(Snapshot {
        run: run.to_owned(),
        taken: Timestamp::from_micros(taken),
        skills,
    }))
}

fn snapshots(db: Db<'_>, team: &TeamId) -> Result<Vec<Snapshot>, Failure> {
    let runs: Vec<String> = db.all(
        "SELECT run FROM library_snapshots WHERE team = ? ORDER BY rowid DESC",
        [team.as_str()],
        |row| Ok::<_, StoreError>(row.get(0)?),
    )?;
    let mut found = Vec::with_capacity(runs.len());
    for run in runs {
        found.extend(snapshot(db, team, &run)?);
    }
    Ok(found)
}

fn take_snapshot(db: Db<'_>, new: NewSnapshot) -> Result<Snapshot, Failure> {
    if let Some(job) = &new.fence {
        write::take_fence(db, &new.team, job)?;
    }
    if let Some(snapshot) = snapshot(db, &new.team, &new.run)? {
        return Ok(snapshot);
    }
    let listed = db.all(
        concat!(library_columns!(), "WHERE team = ? ORDER BY uid"),
        [new.team.as_str()],
        |row| Ok::<_, Failure>(found(row)),
    )?;
    // What cannot be read is touched by nobody, so that nothing of it will have to be put back.
    let skills: Vec<SnapshotEntry> = listed
        .into_iter()
        .flatten()
        .map(|found| SnapshotEntry::of(&found.record, found.stale_since))
        .collect();
    let content = serde_json::to_string(&skills).map_err(|error| {
        CommitError::Store(StoreFault::Internal {
            operation: "encode a snapshot",
            source: Box::new(error),
        })
    })?;
    db.execute(
        "INSERT INTO library_snapshots (team, run, taken, content) VALUES (?, ?, ?, ?)",
        params![new.team.as_str(), &new.run, new.now.as_micros(), content],
    )?;
    db.execute(
        "DELETE FROM library_snapshots WHERE team = ?1 AND run IS NOT ?2 AND run NOT IN \
         (SELECT run FROM library_snapshots WHERE team = ?1 ORDER BY rowid DESC LIMIT ?3)",
        params![new.team.as_str(), &new.spare, new.keep],
    )?;
    Ok(Snapshot {
        run: new.run,
        taken: new.now,
        skills,
    })
}

fn was_dropped(db: Db<'_>, team: &TeamId, run: &str) -> Result<bool, StoreError> {
    db.exists(
        "SELECT 1 FROM dropped_snapshots WHERE team = ? AND run = ?",
        [team.as_str(), run],
    )
}

fn changes(db: Db<'_>, team: &TeamId, run: &str) -> Result<Vec<RunChange>, Failure> {
    let age = |name: String| {
        Age::parse(&name).ok_or_else(|| StoreFault::Damaged {
            what: format!("a change of run {run}"),
        })
    };
    db.all(
        "SELECT skill, name, from_age, to_age, version FROM library_changes WHERE team = ? AND run = ? ORDER BY skill",
        [team.as_str(), run],
        |row| {
            Ok(RunChange {
                run: run.to_owned(),
                uid: row.get(0)?,
                name: row.get(1)?,
                from: age(row.get(2)?)?,
                to: age(row.get(3)?)?,
                version: rows::unsigned(row.get(4)?),
            })
        },
    )
}

fn change_age(db: Db<'_>, change: AgeChange) -> Result<(), Failure> {
    let AgeChange {
        change,
        stale_since,
        uses,
        log,
    } = change;
    let (team, uid) = (change.record.team.clone(), change.record.uid.clone());
    // Everything is undone if a later step fails.
    write::commit(db, change)?;
    let marked = db.execute(
        "UPDATE skills SET stale_since = ? WHERE team = ? AND uid = ? AND uses = ?",
        params![
            stale_since.map(Timestamp::as_micros),
            team.as_str(),
            &uid,
            rows::signed(uses)
        ],
    )?;
    if marked == 0 {
        return Err(CommitError::VersionMismatch.into());
    }
    db.execute(
        "INSERT INTO library_changes (team, run, skill, name, from_age, to_age, version) VALUES (?, ?, ?, ?, ?, ?, ?)",
        params![
            team.as_str(),
            &log.run,
            &uid,
            &log.name,
            log.from.as_str(),
            log.to.as_str(),
            rows::signed(log.version)
        ],
    )?;
    Ok(())
}

#[async_trait]
impl LibraryStore for SqliteSkillStore {
    async fn library_records(
        &self,
        team: &TeamId,
        after: Option<&str>,
        limit: u32,
        builtins: bool,
    ) -> Result<Vec<Found>, StoreFault> {
        let (team, after) = (team.clone(), after.map(str::to_owned));
        let listed = self
            .sqlite
            .view_beside(move |db| records(db, &team, after.as_deref(), limit, builtins));
        listed.await.map_err(|error| fault("list the library", error))
    }

    async fn library_record(&self, team: &TeamId, uid: &str) -> Result<Option<Found>, StoreFault> {
        let found = self.sqlite.view(|db| record(db, team, uid)).await;
        found.map_err(|error| fault("find a skill", error))
    }

    async fn take_snapshot(&self, new: NewSnapshot) -> Result<Snapshot, CommitError> {
        let taken = self.sqlite.update(move |db| take_snapshot(db, new)).await;
        taken.map_err(Failure::into_commit_error)
    }

    async fn snapshot(&self, team: &TeamId, run: &str) -> Result<Option<Snapshot>, StoreFault> {
        let (team, run) = (team.clone(), run.to_owned());
        let found = self.sqlite.view_beside(move |db| snapshot(db, &team, &run)).await;
        found.map_err(|failure| failure.into_fault("read a snapshot"))
    }

    async fn snapshots(&self, team: &TeamId) -> Result<Vec<Snapshot>, StoreFault> {
        let team = team.clone();
        let found = self.sqlite.view_beside(move |db| snapshots(db, &team)).await;
        found.map_err(|failure| failure.into_fault("list snapshots"))
    }

    async fn was_dropped(&self, team: &TeamId, run: &str) -> Result<bool, StoreFault> {
        let found = self.sqlite.view(|db| was_dropped(db, team, run)).await;
        found.map_err(|error| fault("look for a snapshot", error))
    }

    async fn run_changes(&self, team: &TeamId, run: &str) -> Result<Vec<RunChange>, StoreFault> {
        let (team, run) = (team.clone(), run.to_owned());
        let found = self.sqlite.view_beside(move |db| changes(db, &team, &run)).await;
        found.map_err(|failure| failure.into_fault("read what a run changed"))
    }

    async fn change_age(&self, change: AgeChange) -> Result<(), CommitError> {
        let written = self.sqlite.update(move |db| change_age(db, change)).await;
        written.map_err(Failure::into_commit_error)
    }
}
