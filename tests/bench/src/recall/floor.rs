//! The floor of search: one FTS5 table with SQLite's own tokenizer, nothing stored beside the index, one statement that
//! takes the ten best row numbers. No access check, no filter, no conversation to show.
//!
//! SQLite's tokenizer knows no Chinese, so each run of Han is written out as its characters and its pairs of neighbours.

use std::path::Path;

use sqlx::Connection as _;

use crate::corpus::{Class, Corpus, Query};
use crate::floor::{Bare, written_out};

const TABLE: &str = "CREATE VIRTUAL TABLE bare USING fts5 (said, content = '', tokenize = 'unicode61')";
const TOP: &str = "SELECT rowid FROM bare WHERE bare MATCH ? ORDER BY rank LIMIT 10";

/// The table.
#[derive(Debug)]
pub(super) struct Floor(Bare);

impl Floor {
    /// With every text of the history.
    pub(super) async fn load(folder: &Path, corpus: &Corpus) -> anyhow::Result<Self> {
        let mut bare = Bare::open(folder, TABLE).await?;
        let mut transaction = bare.connection().begin().await?;
        let messages = corpus.sessions.iter().flat_map(|session| &session.messages);
        for (number, message) in (1_i64..).zip(messages) {
            sqlx::query("INSERT INTO bare (rowid, said) VALUES (?, ?)")
                .bind(number)
                .bind(written_out(&message.searchable()))
                .execute(&mut *transaction)
                .await?;
        }
        transaction.commit().await?;
        Ok(Self(bare))
    }

    /// The ten best rows.
    pub(super) async fn top(&mut self, query: &Query) -> anyhow::Result<Vec<i64>> {
        let rows = sqlx::query_scalar(TOP).bind(expression(query));
        Ok(rows.fetch_all(self.0.connection()).await?)
    }

    pub(super) async fn close(self) -> anyhow::Result<u64> {
        self.0.close().await
    }
}

fn expression(query: &Query) -> String {
    let quoted = |word: &str| format!("\"{word}\"");
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
        let query = |class, text: &str| {
            expression(&Query {
                class,
                text: text.to_owned(),
            })
        };
        assert_eq!(query(Class::Cjk3, "完成了"), r#""完成" AND "成了""#);
        assert_eq!(query(Class::En3, "one two"), r#""one" AND "two""#);
        assert_eq!(query(Class::Cjk1, "完"), r#""完""#);
    }
}
