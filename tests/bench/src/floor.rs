//! The raw floor: the same durable work done with SQLite alone, by one connection, with nothing of ours in between.

use std::path::{Path, PathBuf};

use anyhow::Context as _;
use rusqlite::{Connection, Params};

use crate::corpus::is_han;

/// A bare database with durable commits: write-ahead log, `synchronous=FULL`. Everything is done where the caller is.
#[derive(Debug)]
pub(crate) struct Bare {
    connection: Connection,
    path: PathBuf,
}

/// Name of the database file.
const FILE: &str = "floor.db";

impl Bare {
    /// A fresh database in `folder` with these tables.
    pub(crate) fn open(folder: &Path, schema: &str) -> anyhow::Result<Self> {
        let path = folder.join(FILE);
        let connection = Connection::open(&path).context("open the bare database")?;
        connection.pragma_update_and_check(None, "journal_mode", "WAL", |_| Ok(()))?;
        connection.pragma_update(None, "synchronous", "FULL")?;
        connection.execute_batch(schema)?;
        Ok(Self { connection, path })
    }

    /// One statement in a durable transaction of its own.
    pub(crate) fn commit(&self, sql: &str, values: impl Params) -> anyhow::Result<()> {
        self.connection.prepare_cached(sql)?.execute(values)?;
        Ok(())
    }

    /// The connection, for reads and for loading.
    pub(crate) fn connection(&self) -> &Connection {
        &self.connection
    }

    /// Writes the log back and tells how many bytes the database has.
    pub(crate) fn close(self) -> anyhow::Result<u64> {
        self.connection.close().map_err(|(_, error)| error)?;
        let folder = self.path.parent().context("a database lies in a folder")?;
        crate::machine::bytes_of(folder, FILE)
    }
}

/// Each run of Han as its characters and its pairs of neighbours, which SQLite's own tokenizer would take for one word.
pub(crate) fn written_out(text: &str) -> String {
    let mut out = String::with_capacity(text.len() * 2);
    let mut run: Vec<char> = Vec::new();
    for character in text.chars().chain(std::iter::once(' ')) {
        if is_han(character) {
            run.push(character);
            continue;
        }
        for one in &run {
            out.push(' ');
            out.push(*one);
        }
        for pair in run.windows(2) {
            out.push(' ');
            out.extend(pair);
        }
        if !run.is_empty() {
            out.push(' ');
            run.clear();
        }
        out.push(character);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn han_is_written_out_for_a_tokenizer_that_does_not_know_it() {
        assert_eq!(
            written_out("a完成了b").split_whitespace().collect::<Vec<_>>(),
            ["a", "完", "成", "了", "完成", "成了", "b"]
        );
    }
}
