//! The database files of an installation that does not run: schema, structure, and the version of the search index.
//!
//! A file that a server holds is left alone; the lock beside it says so. Others are opened for reading only, and with a
//! share of that lock, so that no server opens one in the midst of the check.

use std::fs::{File, TryLockError};
use std::path::{Path, PathBuf};

use sqlx::migrate::Migrator;
use sqlx::sqlite::{SqliteConnectOptions, SqliteConnection};
use sqlx::{ConnectOptions as _, Connection as _};

use super::Report;

const AREA: &str = "store";
/// More complaints than this about one file help nobody.
const MOST_PROBLEMS: usize = 5;

static RECALL: Migrator = sqlx::migrate!("../recall-service/server/migrations");
static MEMORY: Migrator = sqlx::migrate!("../memory-service/server/migrations");
static SKILLS: Migrator = sqlx::migrate!("../skill-registry/server/migrations");
static AGENT: Migrator = sqlx::migrate!("../agent-orchestrator/server/migrations");
static AUDIT: Migrator = sqlx::migrate!("../kit/audit/migrations");
static LEARNING: Migrator = sqlx::migrate!("../curator-worker/server/migrations");

/// A database file and what this program knows of its kind.
pub(super) struct Store {
    pub(super) path: PathBuf,
    migrator: &'static Migrator,
    has_index: bool,
}

/// The database files of a data folder that are there.
pub(super) fn files(data_dir: &Path) -> Vec<Store> {
    let mut stores: Vec<Store> = [
        ("agent/access.db", &AGENT),
        ("memory/memory.db", &MEMORY),
        ("skills/skills.db", &SKILLS),
        ("learning/learning.db", &LEARNING),
        // One for each process: the first where all services are in one.
        ("agent/audit/audit.db", &AUDIT),
        ("memory/audit/audit.db", &AUDIT),
        ("skills/audit/audit.db", &AUDIT),
        ("learning/audit/audit.db", &AUDIT),
        ("recall/audit/audit.db", &AUDIT),
    ]
    .into_iter()
    .map(|(name, migrator)| Store {
        path: data_dir.join(name),
        migrator,
        has_index: false,
    })
    .filter(|store| store.path.exists())
    .collect();
    let teams = std::fs::read_dir(data_dir.join("recall"))
        .into_iter()
        .flatten()
        .flatten();
    let mut teams: Vec<_> = teams
        .map(|entry| entry.path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "db"))
        .collect();
    teams.sort();
    stores.extend(teams.into_iter().map(|path| Store {
        path,
        migrator: &RECALL,
        has_index: true,
    }));
    stores
}

/// Looks at every database file; says whether a server holds one.
pub(super) async fn examine(data_dir: &Path, report: &mut Report, progress: &mut impl FnMut(&str)) -> bool {
    let stores = files(data_dir);
    if stores.is_empty() {
        report.note(AREA, data_dir.display().to_string(), "holds no database yet", "");
        return false;
    }
    let mut any_held = false;
    for store in stores {
        let subject = store
            .path
            .strip_prefix(data_dir)
            .unwrap_or(&store.path)
            .display()
            .to_string();
        match share_lock(&store.path) {
            Ok(_lock) => {
                progress(&format!("reading {subject}"));
                examine_one(&store, &subject, report).await;
            }
            Err(TryLockError::WouldBlock) => {
                any_held = true;
                report.ok(AREA, subject, "in use by a running server, which is asked instead");
            }
            Err(TryLockError::Error(error)) => {
                report.problem(
                    AREA,
                    subject,
                    error.to_string(),
                    "run as the user that the server runs as",
                );
            }
        }
    }
    any_held
}

/// Whether a server has this database file.
pub(crate) fn is_held(path: &Path) -> bool {
    matches!(share_lock(path), Err(TryLockError::WouldBlock))
}

/// A share of the lock that a server takes as a whole. `None` where no server has ever had the file.
fn share_lock(path: &Path) -> Result<Option<File>, TryLockError> {
    let mut lock = path.as_os_str().to_owned();
    lock.push(".lock");
    match File::open(PathBuf::from(lock)) {
        Ok(lock) => lock.try_lock_shared().map(|()| Some(lock)),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(TryLockError::Error(error)),
    }
}

struct Inspection {
    schema: i64,
    problems: Vec<String>,
    tokenizer: Option<String>,
}

async fn examine_one(store: &Store, subject: &str, report: &mut Report) {
    const DAMAGED: &str = "put a backup in its place; until then, do not start a server on it";
    let known = store
        .migrator
        .iter()
        .map(|migration| migration.version)
        .max()
        .unwrap_or(0);
    let found = match inspect(store).await {
        Ok(found) => found,
        Err(error) => return report.problem(AREA, subject, format!("cannot be read: {error}"), DAMAGED),
    };
    let schema = found.schema;
    if !found.problems.is_empty() {
        report.problem(
            AREA,
            subject,
            format!("damaged: {}", found.problems.join("; ")),
            DAMAGED,
        );
    } else if schema > known {
        let detail = format!("schema {schema} is later than {known}, the last that this program knows");
        report.problem(
            AREA,
            subject,
            detail,
            "run the version of steward that wrote it, or a later one",
        );
    } else if schema < known {
        report.note(
            AREA,
            subject,
            format!("sound, schema {schema}; the next start brings it to {known}"),
            "",
        );
    } else {
        report.ok(AREA, subject, format!("sound, schema {schema}"));
    }
    if store.has_index {
        let expected = steward_recall_core::tokenizer::VERSION.to_string();
        match found.tokenizer {
            Some(version) if version == expected => report.ok("index", subject, format!("tokenizer {version}")),
            version => {
                let version = version.unwrap_or_else(|| "unknown".to_owned());
                let detail = format!("tokenizer {version}; the next start rebuilds the index for {expected}");
                report.note("index", subject, detail, "");
            }
        }
    }
}

async fn inspect(store: &Store) -> Result<Inspection, sqlx::Error> {
    let mut wal = store.path.as_os_str().to_owned();
    wal.push("-wal");
    let has_log = std::fs::metadata(PathBuf::from(wal)).is_ok_and(|metadata| metadata.len() > 0);
    let mut connection = SqliteConnectOptions::new()
        .filename(&store.path)
        .create_if_missing(false)
        .read_only(true)
        // Without a log to read, SQLite need not put files of its own beside the database.
        .immutable(!has_log)
        .connect()
        .await?;
    let found = look(&mut connection, store.has_index).await;
    // Nothing was written, so a failing close changes nothing.
    let _ = connection.close().await;
    found
}

async fn look(connection: &mut SqliteConnection, has_index: bool) -> Result<Inspection, sqlx::Error> {
    // Virtual tables need their tokenizer; the tables that they are made of are among the ordinary ones.
    let mut problems: Vec<String> = sqlx::query_scalar(
        "SELECT c.quick_check FROM sqlite_schema s, pragma_quick_check(s.name) c
         WHERE s.type = 'table' AND s.sql NOT LIKE 'CREATE VIRTUAL%' AND c.quick_check <> 'ok'",
    )
    .fetch_all(&mut *connection)
    .await?;
    problems.truncate(MOST_PROBLEMS);
    let migrated: i64 = sqlx::query_scalar("SELECT count(*) FROM sqlite_schema WHERE name = '_sqlx_migrations'")
        .fetch_one(&mut *connection)
        .await?;
    let schema = if migrated == 0 {
        0
    } else {
        sqlx::query_scalar("SELECT coalesce(max(version), 0) FROM _sqlx_migrations")
            .fetch_one(&mut *connection)
            .await?
    };
    let tokenizer = if has_index && schema > 0 {
        sqlx::query_scalar("SELECT value FROM meta WHERE key = 'tokenizer_version'")
            .fetch_optional(&mut *connection)
            .await?
    } else {
        None
    };
    Ok(Inspection {
        schema,
        problems,
        tokenizer,
    })
}
