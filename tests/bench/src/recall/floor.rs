//! The floors of search: one statement that takes the ten best row numbers, with no access check, no filter, and no conversation
//! to show. Once on the very index that our search uses, and once on the least that an index of the same texts can be.

use std::path::Path;

use anyhow::Context as _;
use rusqlite::{Connection, OpenFlags};

use crate::corpus::{Class, Corpus, Query};
use crate::floor::{Bare, written_out};

const SAME: &str = "SELECT rowid FROM message_index WHERE message_index MATCH ? ORDER BY rank LIMIT 10";

/// The index of recall-service, beside the service that writes it.
#[derive(Debug)]
pub(super) struct Same(Connection);

impl Same {
    /// The index in this file of a team.
    pub(super) fn open(file: &Path) -> anyhow::Result<Self> {
        let connection = Connection::open_with_flags(file, OpenFlags::SQLITE_OPEN_READ_ONLY)
            .context("open the index that the service made")?;
        steward_recall::register_tokenizer(&connection).map_err(|error| anyhow::anyhow!(error))?;
        Ok(Self(connection))
    }

    /// The ten best rows.
    pub(super) fn top(&self, query: &Query) -> anyhow::Result<Vec<i64>> {
        let words: Vec<String> = query.text.split(' ').map(quoted).collect();
        top(&self.0, SAME, &words.join(" AND "))
    }
}

const TABLE: &str = "CREATE VIRTUAL TABLE bare USING fts5 (said, content = '', tokenize = 'unicode61')";
const LEAST: &str = "SELECT rowid FROM bare WHERE bare MATCH ? ORDER BY rank LIMIT 10";

/// An FTS5 table with SQLite's own tokenizer and nothing stored beside the index. That tokenizer knows no Chinese, so each run of
/// Han is written out as its characters and its pairs of neighbours.
#[derive(Debug)]
pub(super) struct Least(Bare);

impl Least {
    /// With every text of the history.
    pub(super) fn load(folder: &Path, corpus: &Corpus) -> anyhow::Result<Self> {
        let bare = Bare::open(folder, TABLE)?;
        let transaction = bare.connection().unchecked_transaction()?;
        let messages = corpus.sessions.iter().flat_map(|session| &session.messages);
        for (number, message) in (1_i64..).zip(messages) {
            let row = (number, written_out(&message.searchable()));
            bare.commit("INSERT INTO bare (rowid, said) VALUES (?, ?)", row)?;
        }
        transaction.commit()?;
        Ok(Self(bare))
    }

    /// The ten best rows.
    pub(super) fn top(&self, query: &Query) -> anyhow::Result<Vec<i64>> {
        top(self.0.connection(), LEAST, &written_out_words(query))
    }

    pub(super) fn close(self) -> anyhow::Result<u64> {
        self.0.close()
    }
}

fn top(connection: &Connection, sql: &str, expression: &str) -> anyhow::Result<Vec<i64>> {
    let mut best = connection.prepare_cached(sql)?;
    let rows = best.query_map((expression,), |row| row.get(0))?;
    Ok(rows.collect::<Result<_, _>>()?)
}

fn quoted(word: &str) -> String {
    format!("\"{word}\"")
}

fn written_out_words(query: &Query) -> String {
    match query.class {
        Class::En1 | Class::En3 => query.text.split(' ').map(quoted).collect::<Vec<_>>().join(" AND "),
        Class::Cjk1 => quoted(&query.text),
        Class::Cjk2 | Class::Cjk3 => {
            let characters: Vec<char> = query.text.chars().collect();
            let pairs = characters
                .windows(2)
                .map(|pair| quoted(&pair.iter().collect::<String>()));
            pairs.collect::<Vec<_>>().join(" AND ")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_query_of_han_is_asked_for_by_its_pairs() {
        let words = |class, text: &str| {
            written_out_words(&Query {
                class,
                text: text.to_owned(),
            })
        };
        assert_eq!(words(Class::Cjk3, "完成了"), r#""完成" AND "成了""#);
        assert_eq!(words(Class::En3, "one two"), r#""one" AND "two""#);
        assert_eq!(words(Class::Cjk1, "完"), r#""完""#);
    }
}
