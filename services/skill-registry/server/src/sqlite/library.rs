//! The library's part of the store: records with their age, snapshots, and what each run changed.

use async_trait::async_trait;
use sqlx::Row as _;
use sqlx::sqlite::{SqliteConnection, SqliteRow};
use steward_base::names::TeamId;
use steward_base::{JobRef, Timestamp};
use steward_skill_core::error::StoreFault;
use steward_skill_core::library::{
    Age, AgeChange, LibraryRecord, LibraryStore, NewSnapshot, RunChange, Snapshot, SnapshotEntry,
};
use steward_skill_core::record::BrokenRecord;
use steward_skill_core::store::CommitError;
use steward_store::StoreError;

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

fn found(row: &SqliteRow) -> Found {
    let record = rows::skill(row)?;
    let time = |column: &str| {
        row.try_get::<Option<i64>, _>(column)
            .map(|at| at.map(Timestamp::from_micros))
    };
    let broken = |error: sqlx::Error| BrokenRecord {
        skill: record.full_name(),
        uid: record.uid.clone(),
        problem: error.to_string(),
    };
    let stale_since = time("stale_since").map_err(broken)?;
    let last_change = time("last_change").map_err(broken)?;
    let referenced = row.try_get::<i64, _>("referenced").map_err(broken)? != 0;
    Ok(LibraryRecord {
        stale_since,
        last_change: last_change.map_or(record.created, |at| at.max(record.created)),
        referenced,
        record,
    })
}

async fn records(
    connection: &mut SqliteConnection,
    team: &TeamId,
    after: Option<&str>,
    limit: u32,
    builtins: bool,
) -> Result<Vec<Found>, StoreError> {
    let listed = sqlx::query(concat!(
        library_columns!(),
        "WHERE team = ? AND uid > ? AND (provenance NOT IN (SELECT value FROM json_each(?)) \
         OR (? AND provenance = 'builtin' AND protected = 0)) ORDER BY uid LIMIT ?"
    ))
    .bind(team.as_str())
    .bind(after.unwrap_or_default())
    .bind(OTHER_MAKERS)
    .bind(builtins)
    .bind(i64::from(limit))
    .fetch_all(connection)
    .await?;
    Ok(listed.iter().map(found).collect())
}

async fn record(connection: &mut SqliteConnection, team: &TeamId, uid: &str) -> Result<Option<Found>, StoreError> {
    let listed = sqlx::query(concat!(library_columns!(), "WHERE team = ? AND uid = ?"))
        .bind(team.as_str())
        .bind(uid)
        .fetch_optional(connection)
        .await?;
    Ok(listed.as_ref().map(found))
}

async fn snapshot(connection: &mut SqliteConnection, team: &TeamId, run: &str) -> Result<Option<Snapshot>, StoreFault> {
    let row: Option<(i64, String)> =
        sqlx::query_as("SELECT taken, content FROM library_snapshots WHERE team = ? AND run = ?")
            .bind(team.as_str())
            .bind(run)
            .fetch_optional(connection)
            .await
            .map_err(|error| fault("read a snapshot", error.into()))?;
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

async fn snapshots(connection: &mut SqliteConnection, team: &TeamId) -> Result<Vec<Snapshot>, StoreFault> {
    let runs: Vec<String> = sqlx::query_scalar("SELECT run FROM library_snapshots WHERE team = ? ORDER BY rowid DESC")
        .bind(team.as_str())
        .fetch_all(&mut *connection)
        .await
        .map_err(|error| fault("list snapshots", error.into()))?;
    let mut found = Vec::with_capacity(runs.len());
    for run in runs {
        found.extend(snapshot(connection, team, &run).await?);
    }
    Ok(found)
}

async fn take_snapshot(connection: &mut SqliteConnection, new: NewSnapshot) -> Result<Snapshot, Failure> {
    if let Some(job) = &new.fence {
        let job: &JobRef = job;
        write::take_fence(connection, &new.team, job).await?;
    }
    if let Some(snapshot) = snapshot(connection, &new.team, &new.run)
        .await
        .map_err(CommitError::Store)?
    {
        return Ok(snapshot);
    }
    let listed = sqlx::query(concat!(library_columns!(), "WHERE team = ? ORDER BY uid"))
        .bind(new.team.as_str())
        .fetch_all(&mut *connection)
        .await?;
    // What cannot be read is touched by nobody, so that nothing of it will have to be put back.
    let readable = listed.iter().filter_map(|row| found(row).ok());
    let skills: Vec<SnapshotEntry> = readable
        .map(|found| SnapshotEntry::of(&found.record, found.stale_since))
        .collect();
    let content = serde_json::to_string(&skills).map_err(|error| {
        CommitError::Store(StoreFault::Internal {
            operation: "encode a snapshot",
            source: Box::new(error),
        })
    })?;
    sqlx::query("INSERT INTO library_snapshots (team, run, taken, content) VALUES (?, ?, ?, ?)")
        .bind(new.team.as_str())
        .bind(&new.run)
        .bind(new.now.as_micros())
        .bind(content)
        .execute(&mut *connection)
        .await?;
    sqlx::query(
        "DELETE FROM library_snapshots WHERE team = ?1 AND run IS NOT ?2 AND run NOT IN \
         (SELECT run FROM library_snapshots WHERE team = ?1 ORDER BY rowid DESC LIMIT ?3)",
    )
    .bind(new.team.as_str())
    .bind(&new.spare)
    .bind(i64::from(new.keep))
    .execute(connection)
    .await?;
    Ok(Snapshot {
        run: new.run,
        taken: new.now,
        skills,
    })
}

async fn was_dropped(connection: &mut SqliteConnection, team: &TeamId, run: &str) -> Result<bool, StoreError> {
    let found: i64 = sqlx::query_scalar("SELECT EXISTS (SELECT 1 FROM dropped_snapshots WHERE team = ? AND run = ?)")
        .bind(team.as_str())
        .bind(run)
        .fetch_one(connection)
        .await?;
    Ok(found != 0)
}

async fn changes(connection: &mut SqliteConnection, team: &TeamId, run: &str) -> Result<Vec<RunChange>, StoreFault> {
    let rows: Vec<(String, String, String, String, i64)> = sqlx::query_as(
        "SELECT skill, name, from_age, to_age, version FROM library_changes WHERE team = ? AND run = ? ORDER BY skill",
    )
    .bind(team.as_str())
    .bind(run)
    .fetch_all(connection)
    .await
    .map_err(|error| fault("read what a run changed", error.into()))?;
    let age = |name: &str| {
        Age::parse(name).ok_or_else(|| StoreFault::Damaged {
            what: format!("a change of run {run}"),
        })
    };
    let change = |(uid, name, from, to, version): (String, String, String, String, i64)| {
        Ok(RunChange {
            run: run.to_owned(),
            uid,
            name,
            from: age(&from)?,
            to: age(&to)?,
            version: rows::unsigned(version),
        })
    };
    rows.into_iter().map(change).collect()
}

async fn change_age(connection: &mut SqliteConnection, change: AgeChange) -> Result<(), Failure> {
    let AgeChange {
        change,
        stale_since,
        uses,
        log,
    } = change;
    let (team, uid) = (change.record.team.clone(), change.record.uid.clone());
    // Everything is undone if a later step fails.
    write::commit(connection, change).await?;
    let marked = sqlx::query("UPDATE skills SET stale_since = ? WHERE team = ? AND uid = ? AND uses = ?")
        .bind(stale_since.map(Timestamp::as_micros))
        .bind(team.as_str())
        .bind(&uid)
        .bind(rows::signed(uses))
        .execute(&mut *connection)
        .await?;
    if marked.rows_affected() == 0 {
        return Err(CommitError::VersionMismatch.into());
    }
    sqlx::query(
        "INSERT INTO library_changes (team, run, skill, name, from_age, to_age, version) VALUES (?, ?, ?, ?, ?, ?, ?)",
    )
    .bind(team.as_str())
    .bind(&log.run)
    .bind(&uid)
    .bind(&log.name)
    .bind(log.from.as_str())
    .bind(log.to.as_str())
    .bind(rows::signed(log.version))
    .execute(connection)
    .await?;
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
        let internal = |error| fault("list the library", error);
        let mut reader = self.sqlite.read().await.map_err(internal)?;
        records(&mut reader, team, after, limit, builtins)
            .await
            .map_err(internal)
    }

    async fn library_record(&self, team: &TeamId, uid: &str) -> Result<Option<Found>, StoreFault> {
        let internal = |error| fault("find a skill", error);
        let mut reader = self.sqlite.read().await.map_err(internal)?;
        record(&mut reader, team, uid).await.map_err(internal)
    }

    async fn take_snapshot(&self, new: NewSnapshot) -> Result<Snapshot, CommitError> {
        let taken = self
            .sqlite
            .write(move |connection| Box::pin(take_snapshot(connection, new)))
            .await;
        taken.map_err(Failure::into_commit_error)
    }

    async fn snapshot(&self, team: &TeamId, run: &str) -> Result<Option<Snapshot>, StoreFault> {
        let mut reader = self
            .sqlite
            .read()
            .await
            .map_err(|error| fault("read a snapshot", error))?;
        snapshot(&mut reader, team, run).await
    }

    async fn snapshots(&self, team: &TeamId) -> Result<Vec<Snapshot>, StoreFault> {
        let mut reader = self
            .sqlite
            .read()
            .await
            .map_err(|error| fault("list snapshots", error))?;
        snapshots(&mut reader, team).await
    }

    async fn was_dropped(&self, team: &TeamId, run: &str) -> Result<bool, StoreFault> {
        let internal = |error| fault("look for a snapshot", error);
        let mut reader = self.sqlite.read().await.map_err(internal)?;
        was_dropped(&mut reader, team, run).await.map_err(internal)
    }

    async fn run_changes(&self, team: &TeamId, run: &str) -> Result<Vec<RunChange>, StoreFault> {
        let mut reader = self
            .sqlite
            .read()
            .await
            .map_err(|error| fault("read what a run changed", error))?;
        changes(&mut reader, team, run).await
    }

    async fn change_age(&self, change: AgeChange) -> Result<(), CommitError> {
        let written = self
            .sqlite
            .write(move |connection| Box::pin(change_age(connection, change)))
            .await;
        written.map_err(Failure::into_commit_error)
    }
}
