//! What a store can fail with, told apart by what is wrong rather than by which call met it.
//!
//! Result codes decide; SQLite's message text is read in one place only (`constraint_name`), because SQLite reports
//! the name of a violated constraint nowhere else.

use std::path::{Path, PathBuf};

use sqlx::migrate::MigrateError;
use steward_base::{ErrorKind, Fault, error_chain};

/// Why the store could not do what it was asked.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// The database does not answer: it is busy beyond the wait, closed, or its file cannot be read or written.
    #[error("the database is not available")]
    Unavailable {
        /// What the driver or the operating system said.
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// The store was closed, or is closing.
    #[error("the database is closed")]
    Closed,
    /// No room left on the device or in the database's own limit. Nothing of the write was kept, nothing earlier lost.
    #[error("the disk or the database is full; nothing was written")]
    Full,
    /// The file is not a database, or its content is damaged.
    #[error("the database is damaged")]
    Damaged {
        /// What the driver said.
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// Another process, or another opening in this one, has the database.
    #[error("the database {} is in use; only one process may open it", path.display())]
    InUse {
        /// The database file.
        path: PathBuf,
    },
    /// The file was written by a later version of the program.
    #[error("the database has schema version {found}, but this program knows versions up to {known}")]
    NewerSchema {
        /// Version in the file.
        found: i64,
        /// Latest version that this program can read.
        known: i64,
    },
    /// A migration failed, or an applied one is not the one this program ships.
    #[error("the database could not be migrated")]
    Migration {
        /// What the migrator said.
        #[source]
        source: Box<MigrateError>,
    },
    /// A constraint of the schema refused the write. Repositories turn the names they expect into domain errors, so
    /// that one which reaches the edge is a fault of ours.
    #[error("the write violates the constraint {name}")]
    Constraint {
        /// The columns of a unique or primary key (`entry.team, entry.id`), the column of a NOT NULL (`entry.text`), the name
        /// of a CHECK, the name of a unique index over expressions, or `foreign key`.
        name: String,
    },
    /// The target of a backup exists already.
    #[error("{} exists already", path.display())]
    TargetExists {
        /// The file that would have been overwritten.
        path: PathBuf,
    },
    /// A write operation panicked; it was rolled back.
    #[error("a write was abandoned half way and rolled back")]
    Panicked,
    /// A statement is wrong, or a row is not what the code expects: a fault of ours.
    #[error("the database refused a statement")]
    Statement {
        /// What the driver said.
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
}

impl StoreError {
    pub(crate) fn unavailable(source: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Self {
        Self::Unavailable { source: source.into() }
    }

    pub(crate) fn in_use(path: &Path) -> Self {
        Self::InUse { path: path.to_owned() }
    }

    /// The same for one more caller whose write was lost with it. The driver's own error can be told once only.
    pub(crate) fn for_another(&self) -> Self {
        match self {
            Self::Full => Self::Full,
            Self::Closed => Self::Closed,
            other => Self::unavailable(format!(
                "the commit that the write was part of failed: {}",
                error_chain(other)
            )),
        }
    }

    /// Whether this is the violation of the constraint `name` (see [`StoreError::Constraint`]).
    pub fn violates(&self, name: &str) -> bool {
        matches!(self, Self::Constraint { name: violated } if violated == name)
    }
}

impl From<sqlx::Error> for StoreError {
    fn from(error: sqlx::Error) -> Self {
        match &error {
            sqlx::Error::PoolClosed => Self::Closed,
            sqlx::Error::PoolTimedOut | sqlx::Error::WorkerCrashed | sqlx::Error::Io(_) => Self::unavailable(error),
            sqlx::Error::Database(said) => {
                let code = result_code(&error).unwrap_or_default();
                let constraint = constraint_name(code, said.message());
                Self::from_code(code, constraint, error)
            }
            _ => Self::Statement { source: error.into() },
        }
    }
}

impl From<rusqlite::Error> for StoreError {
    fn from(error: rusqlite::Error) -> Self {
        let Some(said) = error.sqlite_error() else {
            return Self::Statement { source: error.into() };
        };
        let code = said.extended_code;
        let message = match &error {
            rusqlite::Error::SqliteFailure(_, message) => message.as_deref(),
            _ => None,
        };
        let constraint = constraint_name(code, message.unwrap_or_default());
        Self::from_code(code, constraint, error)
    }
}

impl From<MigrateError> for StoreError {
    fn from(error: MigrateError) -> Self {
        match error {
            MigrateError::Execute(source) if result_code(&source).map(Class::of).is_some_and(Class::is_known) => {
                Self::from(source)
            }
            other => Self::Migration {
                source: Box::new(other),
            },
        }
    }
}

/// What a result code speaks of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Class {
    Full,
    Damaged,
    Unavailable,
    Constraint,
    Statement,
}

impl Class {
    fn of(code: i32) -> Self {
        match code & 0xff {
            libsqlite3_sys::SQLITE_FULL => Self::Full,
            libsqlite3_sys::SQLITE_CORRUPT | libsqlite3_sys::SQLITE_NOTADB => Self::Damaged,
            libsqlite3_sys::SQLITE_BUSY
            | libsqlite3_sys::SQLITE_LOCKED
            | libsqlite3_sys::SQLITE_IOERR
            | libsqlite3_sys::SQLITE_CANTOPEN
            | libsqlite3_sys::SQLITE_PERM
            | libsqlite3_sys::SQLITE_NOMEM
            | libsqlite3_sys::SQLITE_INTERRUPT => Self::Unavailable,
            libsqlite3_sys::SQLITE_CONSTRAINT => Self::Constraint,
            _ => Self::Statement,
        }
    }

    /// Whether it says more than that a statement failed.
    fn is_known(self) -> bool {
        self != Self::Statement
    }
}

impl StoreError {
    fn from_code(
        code: i32,
        constraint: Option<String>,
        source: impl Into<Box<dyn std::error::Error + Send + Sync>>,
    ) -> Self {
        match (Class::of(code), constraint) {
            (Class::Full, _) => Self::Full,
            (Class::Damaged, _) => Self::Damaged { source: source.into() },
            (Class::Unavailable, _) => Self::unavailable(source),
            (Class::Constraint, Some(name)) => Self::Constraint { name },
            (Class::Constraint, None) | (Class::Statement, _) => Self::Statement { source: source.into() },
        }
    }
}

/// SQLite's extended result code, if this is an error of the database.
pub(crate) fn result_code(error: &sqlx::Error) -> Option<i32> {
    error.as_database_error()?.code()?.parse().ok()
}

/// What a violated constraint is called; `None` if the error is no such violation. SQLite says it in its message only.
fn constraint_name(code: i32, message: &str) -> Option<String> {
    if Class::of(code) != Class::Constraint {
        return None;
    }
    if code == libsqlite3_sys::SQLITE_CONSTRAINT_FOREIGNKEY {
        return Some("foreign key".to_owned());
    }
    let subject = message.split_once("failed: ").map_or(message, |(_, subject)| subject);
    let named = subject.strip_prefix("index '").and_then(|rest| rest.strip_suffix('\''));
    Some(named.unwrap_or(subject).to_owned())
}

impl Fault for StoreError {
    fn kind(&self) -> ErrorKind {
        match self {
            Self::Unavailable { .. } | Self::Closed => ErrorKind::Unavailable,
            Self::Full => ErrorKind::Exhausted,
            Self::Damaged { .. } => ErrorKind::DataLoss,
            Self::InUse { .. } | Self::NewerSchema { .. } => ErrorKind::Precondition,
            Self::TargetExists { .. } => ErrorKind::AlreadyExists,
            Self::Migration { .. } | Self::Constraint { .. } | Self::Panicked | Self::Statement { .. } => {
                ErrorKind::Internal
            }
        }
    }

    fn reason(&self) -> &'static str {
        match self {
            Self::Unavailable { .. } | Self::Closed => "STORE_UNAVAILABLE",
            Self::Full => "STORE_FULL",
            Self::Damaged { .. } => "STORE_DAMAGED",
            Self::InUse { .. } => "STORE_IN_USE",
            Self::NewerSchema { .. } => "STORE_SCHEMA_NEWER",
            Self::TargetExists { .. } => "BACKUP_EXISTS",
            Self::Migration { .. } | Self::Constraint { .. } | Self::Panicked | Self::Statement { .. } => {
                "STORE_FAILED"
            }
        }
    }

    fn metadata(&self) -> Vec<(&'static str, String)> {
        match self {
            Self::NewerSchema { found, known } => vec![("found", found.to_string()), ("known", known.to_string())],
            Self::InUse { path } | Self::TargetExists { path } => vec![("path", path.display().to_string())],
            Self::Constraint { name } => vec![("constraint", name.clone())],
            Self::Unavailable { .. }
            | Self::Closed
            | Self::Full
            | Self::Damaged { .. }
            | Self::Migration { .. }
            | Self::Panicked
            | Self::Statement { .. } => Vec::new(),
        }
    }
}
