//! The full-text index: taken out with the rows, checked against them, rebuilt from them. How it gets what is new is
//! `catch_up`'s affair.

use sqlx::SqliteConnection;
use steward_recall_core::Error;
use steward_recall_core::store::IntegrityReport;
use steward_recall_core::tokenizer::{self, Purpose};
use steward_store::{Sqlite, StoreError};

use super::catch_up::{self, Progress};
use super::failure::Failure;

const TOKENIZER_VERSION: &str = "tokenizer_version";

/// Takes the messages `from..=to` of a session out, which must happen before their rows change: an index without a copy
/// of the text needs to be told what it held. Of rows that it does not have yet nothing is taken out: the view ends where it
/// does.
pub(super) async fn remove(connection: &mut SqliteConnection, session: i64, from: i64, to: i64) -> Result<(), Failure> {
    sqlx::query(
        "INSERT INTO message_index (message_index, rowid, said, tool, day)
         SELECT 'delete', t.doc, t.said, t.tool, t.day
         FROM message m CROSS JOIN message_text t ON t.doc = m.doc
         WHERE m.session = ? AND m.seq BETWEEN ? AND ? AND m.rewound = 0",
    )
    .bind(session)
    .bind(from)
    .bind(to)
    .execute(connection)
    .await?;
    Ok(())
}

/// The number after which the next message is numbered: beyond all that are there, and all that were in the index.
pub(super) const LAST_DOC: &str = "SELECT max(coalesce((SELECT max(doc) FROM message), 0),
     coalesce((SELECT covered FROM index_state), 0))";

/// Rebuilds the index of a database that another version of the tokenizer built, and one that is plainly not whole. Whether
/// messages wait for it.
pub(super) async fn bring_up_to_date(sqlite: &Sqlite) -> Result<bool, Failure> {
    let mut reader = sqlite.read().await?;
    let built_with = built_with(&mut reader).await?;
    let is_whole = looks_whole(&mut reader).await?;
    let is_unset = if is_whole { is_unset(&mut reader).await? } else { false };
    let is_behind = is_behind(&mut reader).await?;
    drop(reader);
    if built_with == Some(tokenizer::VERSION) && is_whole {
        if is_unset {
            sqlite.write(|connection| Box::pin(set(connection))).await?;
        }
        return Ok(is_behind);
    }
    tracing::info!(
        path = %sqlite.path().display(), from = built_with, to = tokenizer::VERSION, is_whole, "rebuilding the index"
    );
    rebuild(sqlite).await?;
    Ok(false)
}

async fn is_behind(connection: &mut SqliteConnection) -> Result<bool, Failure> {
    let waiting: Option<bool> =
        sqlx::query_scalar("SELECT (SELECT max(doc) FROM message) > (SELECT covered FROM index_state)")
            .fetch_one(connection)
            .await?;
    Ok(waiting.unwrap_or(false))
}

/// How FTS5 is told to work. Merging is ours, since by itself it merges within whichever write comes by. What is deleted leaves
/// no words behind: by itself it only notes that they are gone, until some later merge (`M-14`).
const OPTIONS: [(&str, i64); 2] = [("automerge", 0), ("secure-delete", 1)];

/// Whether FTS5 has yet to be told.
async fn is_unset(connection: &mut SqliteConnection) -> Result<bool, Failure> {
    for (option, value) in OPTIONS {
        let set: Option<i64> = sqlx::query_scalar("SELECT v FROM message_index_config WHERE k = ?")
            .bind(option)
            .fetch_optional(&mut *connection)
            .await?;
        if set != Some(value) {
            return Ok(true);
        }
    }
    Ok(false)
}

async fn set(connection: &mut SqliteConnection) -> Result<(), Failure> {
    for (option, value) in OPTIONS {
        sqlx::query("INSERT INTO message_index (message_index, rank) VALUES (?, ?)")
            .bind(option)
            .bind(value)
            .execute(&mut *connection)
            .await?;
    }
    Ok(())
}

/// A look at the index that costs little: whether it has as many entries as there are messages to find, and finds the first
/// and the last of them.
async fn looks_whole(connection: &mut SqliteConnection) -> Result<bool, Failure> {
    match look(connection).await.map_err(StoreError::from) {
        Ok(is_whole) => Ok(is_whole),
        Err(StoreError::Damaged { .. } | StoreError::Statement { .. }) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

async fn look(connection: &mut SqliteConnection) -> Result<bool, sqlx::Error> {
    let counts_agree: bool = sqlx::query_scalar(
        "SELECT (SELECT count(*) FROM message_index_docsize)
                = (SELECT count(doc) FROM message) - (SELECT count(doc) FROM message WHERE doc > covered)
                  - (SELECT count(doc) FROM message WHERE rewound = 1 AND doc <= covered)
         FROM index_state",
    )
    .fetch_one(&mut *connection)
    .await?;
    let ends: Vec<(i64, String)> = sqlx::query_as(
        "SELECT doc, substr(said || ' ' || tool, 1, 500) FROM message_text
         WHERE doc IN ((SELECT min(doc) FROM message_text), (SELECT max(doc) FROM message_text))",
    )
    .fetch_all(&mut *connection)
    .await?;
    for (doc, text) in ends {
        let Some(word) = tokenizer::positions(&text, Purpose::Query).into_iter().next() else {
            continue;
        };
        let found: Option<i64> =
            sqlx::query_scalar("SELECT rowid FROM message_index WHERE message_index MATCH ? AND rowid = ?")
                .bind(format!("\"{}\"", &text[word.start..word.end]))
                .bind(doc)
                .fetch_optional(&mut *connection)
                .await?;
        if found.is_none() {
            return Ok(false);
        }
    }
    Ok(counts_agree)
}

/// Builds the index anew from the rows.
pub(super) async fn rebuild(sqlite: &Sqlite) -> Result<(), Failure> {
    sqlite
        .write(|connection| {
            Box::pin(async move {
                recreate(connection).await?;
                for step in [
                    "INSERT OR REPLACE INTO index_state SELECT 1, coalesce(max(doc), 0) FROM message",
                    "INSERT INTO message_index (message_index) VALUES ('rebuild')",
                ] {
                    sqlx::query(step).execute(&mut *connection).await?;
                }
                set(connection).await?;
                sqlx::query("INSERT OR REPLACE INTO meta (key, value) VALUES (?, ?)")
                    .bind(TOKENIZER_VERSION)
                    .bind(tokenizer::VERSION.to_string())
                    .execute(&mut *connection)
                    .await?;
                Ok(())
            })
        })
        .await
}

/// Makes the index anew and empty, so that even a damaged one is no obstacle. FTS5 refuses to drop an index of which it
/// lacks a table; such a table is made first.
async fn recreate(connection: &mut SqliteConnection) -> Result<(), Failure> {
    const DROP: &str = "DROP TABLE IF EXISTS message_index";
    const TABLES: [&str; 5] = [
        "CREATE TABLE IF NOT EXISTS message_index_data (id INTEGER PRIMARY KEY, block BLOB)",
        "CREATE TABLE IF NOT EXISTS message_index_idx (segid, term, pgno, PRIMARY KEY (segid, term)) WITHOUT ROWID",
        "CREATE TABLE IF NOT EXISTS message_index_docsize (id INTEGER PRIMARY KEY, sz BLOB)",
        "CREATE TABLE IF NOT EXISTS message_index_config (k PRIMARY KEY, v) WITHOUT ROWID",
        "INSERT OR REPLACE INTO message_index_config VALUES ('version', 4)",
    ];
    if sqlx::query(DROP).execute(&mut *connection).await.is_err() {
        for table in TABLES {
            sqlx::query(table).execute(&mut *connection).await?;
        }
        sqlx::query(DROP).execute(&mut *connection).await?;
    }
    // Left over where somebody dropped the index but not what belongs to it.
    for table in [
        "DROP TABLE IF EXISTS message_index_data",
        "DROP TABLE IF EXISTS message_index_idx",
        "DROP TABLE IF EXISTS message_index_docsize",
        "DROP TABLE IF EXISTS message_index_config",
    ] {
        sqlx::query(table).execute(&mut *connection).await?;
    }
    sqlx::query(
        "CREATE VIRTUAL TABLE message_index USING fts5 (
             said, tool, day, content = 'message_text', content_rowid = 'doc', tokenize = 'steward')",
    )
    .execute(connection)
    .await?;
    Ok(())
}

/// Compares rows, file and index, once what waits is in the index.
pub(super) async fn check(sqlite: &Sqlite, progress: &Progress) -> Result<IntegrityReport, Failure> {
    match catch_up::bring(sqlite, progress).await {
        // Of damage the comparison tells.
        Ok(()) | Err(Failure(Error::Damaged { .. } | Error::Internal { .. })) => {}
        Err(error) => return Err(error),
    }
    let mut problems = sqlite.integrity_check().await?;
    let mut reader = sqlite.read().await?;
    let messages: i64 = sqlx::query_scalar("SELECT count(*) FROM message")
        .fetch_one(&mut *reader)
        .await?;
    let gaps: Vec<(String, i64, i64)> = sqlx::query_as(
        "SELECT s.id, s.last_seq, count(m.seq) FROM session s
         LEFT JOIN message m ON m.session = s.number
         GROUP BY s.number HAVING count(m.seq) <> s.last_seq OR coalesce(max(m.seq), 0) <> s.last_seq",
    )
    .fetch_all(&mut *reader)
    .await?;
    let version = built_with(&mut reader).await?.unwrap_or(0);
    // By a reader, since the writer may remember what the index was before it was damaged.
    let is_whole = looks_whole(&mut reader).await?;
    drop(reader);
    problems
        .extend(gaps.into_iter().map(|(session, last, count)| {
            format!("session {session} ends at message {last} but has {count} messages")
        }));
    if !is_whole || !index_agrees(sqlite).await? {
        problems.push("the index does not agree with the messages; rebuild it".to_owned());
    }
    Ok(IntegrityReport {
        problems,
        messages: u64::try_from(messages).unwrap_or(0),
        tokenizer_version: version,
    })
}

/// FTS5's own comparison of the index with the rows. It is written as an insert, hence needs the writer.
async fn index_agrees(sqlite: &Sqlite) -> Result<bool, Failure> {
    let checked = sqlite
        .write(|connection| {
            Box::pin(async move {
                sqlx::query("INSERT INTO message_index (message_index, rank) VALUES ('integrity-check', 1)")
                    .execute(connection)
                    .await?;
                Ok::<_, StoreError>(())
            })
        })
        .await;
    match checked {
        Ok(()) => Ok(true),
        Err(StoreError::Damaged { .. } | StoreError::Statement { .. }) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

async fn built_with(connection: &mut SqliteConnection) -> Result<Option<u32>, Failure> {
    let value: Option<String> = sqlx::query_scalar("SELECT value FROM meta WHERE key = ?")
        .bind(TOKENIZER_VERSION)
        .fetch_optional(connection)
        .await?;
    Ok(value.and_then(|value| value.parse().ok()))
}
