//! Statements that are sent to the database in one piece, since each piece costs two changes of thread.

use sqlx::sqlite::{SqliteArguments, SqliteConnection, SqliteRow};
use sqlx::{Arguments as _, AssertSqlSafe, Encode, Sqlite, Type};

use crate::StoreError;

/// Longest text of statements that is kept prepared, in bytes: the shapes of ordinary writes.
const KEPT_PREPARED: usize = 2_048;

/// Statements that are run in order, with their values. The first that fails leaves the rest undone.
#[derive(Default)]
pub struct Batch {
    sql: String,
    arguments: SqliteArguments,
    problem: Option<sqlx::error::BoxDynError>,
}

impl std::fmt::Debug for Batch {
    /// Never the values.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Batch").field("sql", &self.sql).finish_non_exhaustive()
    }
}

impl Batch {
    /// Adds a statement whose values are given by [`Batch::with`], one for each `?` in order. Numbered ones (`?1`) count from
    /// the batch's first value: either all statements use them, and may share values, or only the first that has values.
    pub fn statement(&mut self, sql: &'static str) -> &mut Self {
        if !self.sql.is_empty() {
            self.sql.push_str(";\n");
        }
        self.sql.push_str(sql);
        self
    }

    /// Gives the next value.
    pub fn with<'v, T>(&mut self, value: T) -> &mut Self
    where
        T: Encode<'v, Sqlite> + Type<Sqlite> + 'v,
    {
        if let Err(problem) = self.arguments.add(value) {
            self.problem.get_or_insert(problem);
        }
        self
    }

    /// Whether there is nothing to run.
    pub fn is_empty(&self) -> bool {
        self.sql.is_empty()
    }

    /// Puts a statement without values before the others.
    pub(crate) fn after(mut self, sql: &'static str) -> Self {
        if self.sql.is_empty() {
            sql.clone_into(&mut self.sql);
        } else {
            self.sql.insert_str(0, ";\n");
            self.sql.insert_str(0, sql);
        }
        self
    }

    /// Runs them.
    pub async fn run(self, connection: &mut SqliteConnection) -> Result<(), StoreError> {
        if let Some(query) = self.query()? {
            query.execute(connection).await?;
        }
        Ok(())
    }

    /// Runs them and gives the rows of all, in order.
    pub async fn rows(self, connection: &mut SqliteConnection) -> Result<Vec<SqliteRow>, StoreError> {
        match self.query()? {
            Some(query) => Ok(query.fetch_all(connection).await?),
            None => Ok(Vec::new()),
        }
    }

    fn query(self) -> Result<Option<sqlx::query::Query<'static, Sqlite, SqliteArguments>>, StoreError> {
        if let Some(problem) = self.problem {
            return Err(sqlx::Error::Encode(problem).into());
        }
        if self.sql.is_empty() {
            return Ok(None);
        }
        let keep = self.sql.len() <= KEPT_PREPARED;
        // Put together from constants only; every value is bound.
        Ok(Some(
            sqlx::query_with(AssertSqlSafe(self.sql), self.arguments).persistent(keep),
        ))
    }
}
