//! What a piece of work sees of the database.

use std::borrow::Cow;
use std::fmt;

use rusqlite::{CachedStatement, Connection, OptionalExtension, Params, Row};

use crate::StoreError;

/// The text of one statement: a constant, or put together from constants. Values are bound, never written into it.
#[derive(Debug, Clone)]
pub struct Sql(Cow<'static, str>);

impl Sql {
    /// A statement that was put together. The caller stands for it that no value is part of it.
    pub fn built(text: String) -> Self {
        Self(Cow::Owned(text))
    }
}

impl From<&'static str> for Sql {
    fn from(text: &'static str) -> Self {
        Self(Cow::Borrowed(text))
    }
}

/// A database with a transaction open on it. Statements stay prepared from one piece of work to the next.
#[derive(Clone, Copy)]
pub struct Db<'c> {
    connection: &'c Connection,
}

impl fmt::Debug for Db<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Db").finish_non_exhaustive()
    }
}

impl<'c> Db<'c> {
    pub(in crate::sqlite) fn new(connection: &'c Connection) -> Self {
        Self { connection }
    }

    /// For what a test does to a connection.
    #[cfg(test)]
    pub(crate) fn connection(self) -> &'c Connection {
        self.connection
    }

    /// Runs a statement that gives no rows, and tells how many rows it changed.
    pub fn execute(&self, sql: impl Into<Sql>, values: impl Params) -> Result<usize, StoreError> {
        Ok(self.prepare(sql)?.execute(values)?)
    }

    /// The first row, if there is one.
    pub fn first<T, E: From<StoreError>>(
        &self,
        sql: impl Into<Sql>,
        values: impl Params,
        read: impl FnOnce(&Row<'_>) -> Result<T, E>,
    ) -> Result<Option<T>, E> {
        let mut statement = self.prepare(sql)?;
        let mut rows = statement.query(values).map_err(StoreError::from)?;
        rows.next().map_err(StoreError::from)?.map(read).transpose()
    }

    /// All rows, in order. The first that cannot be read ends it.
    pub fn all<T, E: From<StoreError>>(
        &self,
        sql: impl Into<Sql>,
        values: impl Params,
        mut read: impl FnMut(&Row<'_>) -> Result<T, E>,
    ) -> Result<Vec<T>, E> {
        let mut statement = self.prepare(sql)?;
        let mut rows = statement.query(values).map_err(StoreError::from)?;
        let mut all = Vec::new();
        while let Some(row) = rows.next().map_err(StoreError::from)? {
            all.push(read(row)?);
        }
        Ok(all)
    }

    /// The one value of a statement that gives one row of one column, a count for example.
    pub fn value<T: rusqlite::types::FromSql>(
        &self,
        sql: impl Into<Sql>,
        values: impl Params,
    ) -> Result<T, StoreError> {
        Ok(self.prepare(sql)?.query_row(values, |row| row.get(0))?)
    }

    /// The first column of the first row, if there is one.
    pub fn optional<T: rusqlite::types::FromSql>(
        &self,
        sql: impl Into<Sql>,
        values: impl Params,
    ) -> Result<Option<T>, StoreError> {
        Ok(self.prepare(sql)?.query_row(values, |row| row.get(0)).optional()?)
    }

    /// Whether there is a row.
    pub fn exists(&self, sql: impl Into<Sql>, values: impl Params) -> Result<bool, StoreError> {
        Ok(self.prepare(sql)?.exists(values)?)
    }

    /// The number of the row that was inserted last.
    pub fn last_insert_rowid(&self) -> i64 {
        self.connection.last_insert_rowid()
    }

    /// A statement for work that the others do not fit, one whose rows are not all read for example.
    pub fn prepare(&self, sql: impl Into<Sql>) -> Result<CachedStatement<'c>, StoreError> {
        Ok(self.connection.prepare_cached(&sql.into().0)?)
    }
}
