//! Backups: files beside the teams' own, each opened, checked and counted before anybody is told of it.

use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

use async_trait::async_trait;
use steward_base::names::{TeamId, team_name};
use steward_base::{Timestamp, error_chain};
use steward_recall_core::Error;
use steward_recall_core::backups::{Backup, Backups, Counts, Restored, is_id};
use steward_store::{Sqlite, StoreError};

use super::SqliteSessionStore;
use super::catch_up::Progress;
use super::failure::Failure;
use super::files::{self, blocking};
use super::index;
use super::teams::{options, unavailable};

impl SqliteSessionStore {
    fn backup_path(&self, team: &TeamId, id: &str) -> Result<PathBuf, Error> {
        if is_id(id) {
            Ok(self.backups.join(team.as_str()).join(format!("{id}.db")))
        } else {
            Err(not_found(team, id))
        }
    }
}

fn name(team: &TeamId, id: &str) -> String {
    format!("{}/backups/{id}", team_name(team))
}

fn not_found(team: &TeamId, id: &str) -> Error {
    Error::BackupNotFound { backup: name(team, id) }
}

#[async_trait]
impl Backups for SqliteSessionStore {
    async fn backup(&self, team: &TeamId, id: &str, now: Timestamp) -> Result<Backup, Error> {
        let path = self.backup_path(team, id)?;
        let sqlite = self.team(team).await?;
        let sqlite = sqlite.ok_or_else(|| Error::field("parent", "has no sessions yet"))?;
        let folder = self.backups.join(team.as_str());
        blocking(move || make_private(&folder)).await?;
        sqlite.backup(&path).await.map_err(Failure::from)?;
        let counts = match verified(&path, team).await {
            Ok(counts) => counts,
            Err(problem) => {
                remove(&path).await?;
                return Err(problem.into_error(&name(team, id)));
            }
        };
        let size = blocking(move || Ok(std::fs::metadata(path).map_err(unavailable)?.len())).await?;
        tracing::info!(team = %team, backup = id, size_bytes = size, messages = counts.messages, "a team was backed up");
        Ok(Backup {
            team: team.clone(),
            id: id.to_owned(),
            size,
            created: now,
            counts: Some(counts),
        })
    }

    async fn backups(&self, team: &TeamId, before: Option<&str>, limit: u32) -> Result<Vec<Backup>, Error> {
        let (folder, team) = (self.backups.join(team.as_str()), team.clone());
        let mut found = blocking(move || list(&folder, &team)).await?;
        found.sort_by(|one, two| two.id.cmp(&one.id));
        found.retain(|backup| before.is_none_or(|before| backup.id.as_str() < before));
        found.truncate(limit as usize);
        Ok(found)
    }

    async fn restore(&self, team: &TeamId, id: &str, aside: &str) -> Result<Restored, Error> {
        let (path, aside_path) = (self.backup_path(team, id)?, self.backup_path(team, aside)?);
        // On a copy: what is opened is changed, and the backup must stay what it is.
        let copy = self.teams.beside(team, "restoring");
        let (from, to) = (path, copy.clone());
        let is_there = blocking(move || {
            let is_there = from.exists();
            if is_there {
                // Of a restore that a crash ended.
                files::forget_logs(&to);
                std::fs::copy(&from, &to).map_err(unavailable)?;
            }
            Ok(is_there)
        });
        if !is_there.await? {
            return Err(not_found(team, id));
        }
        let counts = match verified(&copy, team).await {
            Ok(counts) => counts,
            Err(problem) => {
                remove(&copy).await?;
                return Err(problem.into_error(&name(team, id)));
            }
        };
        let stood = self.teams.replace(team, &copy, &aside_path).await?;
        self.with_due.add(team);
        self.with_waiting.add(team);
        self.trouble(team, None);
        tracing::warn!(team = %team, backup = id, messages = counts.messages, "a team was restored from a backup");
        Ok(Restored {
            counts,
            set_aside: stood.then(|| aside.to_owned()),
        })
    }
}

/// Why a file is not what was asked for.
enum Problem {
    /// The file itself.
    Unusable(String),
    /// Something around it.
    Failed(Error),
}

impl Problem {
    fn into_error(self, backup: &str) -> Error {
        match self {
            Self::Unusable(problem) => Error::BackupUnusable {
                backup: backup.to_owned(),
                problem,
            },
            Self::Failed(error) => error,
        }
    }
}

impl From<Failure> for Problem {
    fn from(Failure(error): Failure) -> Self {
        match error {
            Error::Damaged { .. } => Self::Unusable(error_chain(&error)),
            other => Self::Failed(other),
        }
    }
}

/// Opens a file that nobody else has, checks all of it and counts. It is closed again, and brought up to date.
async fn verified(path: &Path, team: &TeamId) -> Result<Counts, Problem> {
    files::check_ours(path).await?;
    let sqlite = match Sqlite::open(path, options()).await {
        Ok(sqlite) => sqlite,
        Err(error @ (StoreError::NewerSchema { .. } | StoreError::Migration { .. } | StoreError::Damaged { .. })) => {
            return Err(Problem::Unusable(error_chain(&error)));
        }
        Err(error) => return Err(Failure::from(error).into()),
    };
    let looked = looked_through(&sqlite, team).await;
    sqlite.close().await;
    files::forget_lock(path);
    looked
}

async fn looked_through(sqlite: &Sqlite, team: &TeamId) -> Result<Counts, Problem> {
    index::bring_up_to_date(sqlite).await?;
    let report = index::check(sqlite, &Progress::default()).await?;
    if !report.problems.is_empty() {
        return Err(Problem::Unusable(report.problems.join("; ")));
    }
    let of = team.clone();
    let counted = sqlite.view_beside(move |db| {
        db.first(
            "SELECT count(*), count(*) FILTER (WHERE team <> ?) FROM session",
            [of.as_str()],
            |row| Ok::<_, Failure>((row.get(0)?, row.get(1)?)),
        )
    });
    let (sessions, foreign): (i64, i64) = counted.await?.unwrap_or_default();
    if foreign > 0 {
        return Err(Problem::Unusable("it is of another team".to_owned()));
    }
    Ok(Counts {
        sessions: sessions.unsigned_abs(),
        messages: report.messages,
    })
}

async fn remove(path: &Path) -> Result<(), Failure> {
    let path = path.to_owned();
    blocking(move || {
        files::forget_logs(&path);
        std::fs::remove_file(&path).map_err(unavailable)
    })
    .await
}

fn make_private(folder: &Path) -> Result<(), Failure> {
    let mut builder = std::fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(folder).map_err(unavailable)
}

fn list(folder: &Path, team: &TeamId) -> Result<Vec<Backup>, Failure> {
    let entries = match std::fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(unavailable(error)),
    };
    let mut found = Vec::new();
    for entry in entries {
        let entry = entry.map_err(unavailable)?;
        let file = entry.file_name();
        let id = file.to_str().and_then(|name| name.strip_suffix(".db"));
        let Some(id) = id.filter(|id| is_id(id)) else { continue };
        let metadata = entry.metadata().map_err(unavailable)?;
        let made = metadata.modified().ok();
        let made = made.and_then(|at| at.duration_since(UNIX_EPOCH).ok());
        found.push(Backup {
            team: team.clone(),
            id: id.to_owned(),
            size: metadata.len(),
            created: Timestamp::default().plus(made.unwrap_or_default()),
            counts: None,
        });
    }
    Ok(found)
}
