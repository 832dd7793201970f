//! Several statements in one: a write is sent to the database in a single piece, since each piece costs two changes of
//! thread.

use sqlx::sqlite::{SqliteArguments, SqliteConnection};
use sqlx::{Arguments as _, AssertSqlSafe, Encode, Sqlite, Type};

use super::Failure;

/// Longest text of statements that is kept prepared, in bytes: the shapes of ordinary writes.
const KEPT_PREPARED: usize = 2_048;

/// Statements that are run in order, with their values.
#[derive(Default)]
pub(super) struct Batch {
    sql: String,
    arguments: SqliteArguments,
    problem: Option<sqlx::error::BoxDynError>,
}

impl Batch {
    /// Adds a statement whose values are given by [`Batch::with`], one for each `?` in order.
    pub(super) fn statement(&mut self, sql: &'static str) -> &mut Self {
        if !self.sql.is_empty() {
            self.sql.push_str(";\n");
        }
        self.sql.push_str(sql);
        self
    }

    /// Gives the next value.
    pub(super) fn with<'v, T>(&mut self, value: T) -> &mut Self
    where
        T: Encode<'v, Sqlite> + Type<Sqlite> + 'v,
    {
        if let Err(problem) = self.arguments.add(value) {
            self.problem.get_or_insert(problem);
        }
        self
    }

    /// Runs them; none is left out, and an error leaves the rest undone.
    pub(super) async fn run(self, connection: &mut SqliteConnection) -> Result<(), Failure> {
        if let Some(problem) = self.problem {
            return Err(sqlx::Error::Encode(problem).into());
        }
        if self.sql.is_empty() {
            return Ok(());
        }
        let keep = self.sql.len() <= KEPT_PREPARED;
        // Put together from constants only; every value is bound.
        sqlx::query_with(AssertSqlSafe(self.sql), self.arguments)
            .persistent(keep)
            .execute(connection)
            .await?;
        Ok(())
    }
}
