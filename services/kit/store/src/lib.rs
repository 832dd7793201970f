//! Opening a SQLite database the one way Steward opens them: one writer, many read-only readers, durable before
//! acknowledged, migrated, and in one process only.
//!
//! ```no_run
//! # static MIGRATIONS: sqlx::migrate::Migrator = sqlx::migrate::Migrator::DEFAULT;
//! # async fn example() -> Result<(), steward_store::StoreError> {
//! use steward_store::{Sqlite, SqliteOptions, StoreError};
//!
//! let options = SqliteOptions { migrator: &MIGRATIONS, readers: 4, on_open: None, on_migrate: None };
//! let sqlite = Sqlite::open("data/memory/memory.db", options).await?;
//! let id = "e1".to_owned();
//! sqlite.update(move |db| db.execute("INSERT INTO entry (id) VALUES (?)", [id])).await?;
//! let entries: i64 = sqlite.view(|db| db.value("SELECT count(*) FROM entry", ())).await?;
//! # let _ = entries;
//! # Ok(())
//! # }
//! ```
//!
//! Not here: tables, queries, domain errors. Those belong to the service that owns the database.
#![warn(missing_docs)]

mod error;
mod sqlite;

pub use error::StoreError;
pub use futures::future::BoxFuture;
pub use rusqlite::{Error as SqlError, Row, ToSql, params};
pub use sqlite::{Checkpoint, Db, OnMigrate, OnOpen, Sql, Sqlite, SqliteOptions};
