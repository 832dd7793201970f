//! Opening a SQLite database the one way Steward opens them: one writer, many read-only readers, durable before
//! acknowledged, migrated, and in one process only.
//!
//! ```no_run
//! # static MIGRATIONS: sqlx::migrate::Migrator = sqlx::migrate::Migrator::DEFAULT;
//! # async fn example() -> Result<(), steward_store::StoreError> {
//! use steward_store::{Sqlite, SqliteOptions, StoreError};
//!
//! let options = SqliteOptions { migrator: &MIGRATIONS, readers: 4, on_connect: None };
//! let sqlite = Sqlite::open("data/memory/memory.db", options).await?;
//! let id = "e1".to_owned();
//! sqlite
//!     .write(move |connection| {
//!         Box::pin(async move {
//!             sqlx::query("INSERT INTO entry (id) VALUES (?)").bind(id).execute(connection).await?;
//!             Ok::<_, StoreError>(())
//!         })
//!     })
//!     .await?;
//! let mut reader = sqlite.read().await?;
//! let entries: i64 = sqlx::query_scalar("SELECT count(*) FROM entry").fetch_one(&mut *reader).await?;
//! # let _ = entries;
//! # Ok(())
//! # }
//! ```
//!
//! Not here: tables, queries, domain errors. Those belong to the service that owns the database.
#![warn(missing_docs)]

mod batch;
mod error;
mod sqlite;

pub use batch::Batch;
pub use error::{StoreError, constraint_name, result_code};
pub use futures::future::BoxFuture;
pub use sqlite::{Checkpoint, OnConnect, Reader, Sqlite, SqliteOptions};
