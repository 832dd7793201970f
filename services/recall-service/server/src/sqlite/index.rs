//! The full-text index: kept in the transaction of the rows, checked against them, rebuilt from them.

use sqlx::SqliteConnection;
use steward_recall_core::message::{Message, Role};
use steward_recall_core::store::IntegrityReport;
use steward_recall_core::tokenizer;
use steward_store::Sqlite;

use super::failure::Failure;

const TOKENIZER_VERSION: &str = "tokenizer_version";

/// Adds a message; `doc` is that of its row.
pub(super) async fn add(connection: &mut SqliteConnection, doc: i64, message: &Message) -> Result<(), Failure> {
    sqlx::query("INSERT INTO message_index (rowid, said, tool) VALUES (?, ?, ?)")
        .bind(doc)
        .bind(message.said_text())
        .bind(message.tool_text())
        .execute(connection)
        .await?;
    Ok(())
}

/// Takes the messages `from..=to` of a session out, which must happen before their rows change: an index without a copy
/// of the text needs to be told what it held.
pub(super) async fn remove(
    connection: &mut SqliteConnection,
    team: &str,
    session: &str,
    from: i64,
    to: i64,
) -> Result<(), Failure> {
    sqlx::query(
        "INSERT INTO message_index (message_index, rowid, said, tool)
         SELECT 'delete', m.doc, CASE m.role WHEN ? THEN '' ELSE m.said END, m.tool_text
         FROM message m WHERE m.team = ? AND m.session = ? AND m.seq BETWEEN ? AND ? AND m.rewound = 0",
    )
    .bind(Role::Tool.as_str())
    .bind(team)
    .bind(session)
    .bind(from)
    .bind(to)
    .execute(connection)
    .await?;
    Ok(())
}

/// Rebuilds the index of a database that another version of the tokenizer built.
pub(super) async fn bring_up_to_date(sqlite: &Sqlite) -> Result<(), Failure> {
    let mut reader = sqlite.read().await?;
    let built_with = built_with(&mut reader).await?;
    drop(reader);
    if built_with == Some(tokenizer::VERSION) {
        return Ok(());
    }
    tracing::info!(path = %sqlite.path().display(), from = built_with, to = tokenizer::VERSION, "rebuilding the index");
    rebuild(sqlite).await
}

/// Builds the index anew from the rows.
pub(super) async fn rebuild(sqlite: &Sqlite) -> Result<(), Failure> {
    sqlite
        .write(|connection| {
            Box::pin(async move {
                // Anew from nothing, so that even a damaged index is no obstacle.
                sqlx::query("DROP TABLE IF EXISTS message_index")
                    .execute(&mut *connection)
                    .await?;
                sqlx::query(
                    "CREATE VIRTUAL TABLE message_index USING fts5 (
                         said, tool, content = 'message_text', content_rowid = 'doc', tokenize = 'steward')",
                )
                .execute(&mut *connection)
                .await?;
                sqlx::query("INSERT INTO message_index (message_index) VALUES ('rebuild')")
                    .execute(&mut *connection)
                    .await?;
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

/// Compares rows, file and index.
pub(super) async fn check(sqlite: &Sqlite) -> Result<IntegrityReport, Failure> {
    let mut problems = sqlite.integrity_check().await?;
    let mut reader = sqlite.read().await?;
    let messages: i64 = sqlx::query_scalar("SELECT count(*) FROM message")
        .fetch_one(&mut *reader)
        .await?;
    let gaps: Vec<(String, i64, i64)> = sqlx::query_as(
        "SELECT s.id, s.last_seq, count(m.seq) FROM session s
         LEFT JOIN message m ON m.team = s.team AND m.session = s.id
         GROUP BY s.team, s.id HAVING count(m.seq) <> s.last_seq OR coalesce(max(m.seq), 0) <> s.last_seq",
    )
    .fetch_all(&mut *reader)
    .await?;
    let version = built_with(&mut reader).await?.unwrap_or(0);
    drop(reader);
    problems
        .extend(gaps.into_iter().map(|(session, last, count)| {
            format!("session {session} ends at message {last} but has {count} messages")
        }));
    problems.extend(check_index(sqlite).await?);
    Ok(IntegrityReport {
        problems,
        messages: u64::try_from(messages).unwrap_or(0),
        tokenizer_version: version,
    })
}

/// FTS5's own comparison of the index with the rows. It is written as an insert, hence needs the writer.
async fn check_index(sqlite: &Sqlite) -> Result<Option<String>, Failure> {
    let checked = sqlite
        .write(|connection| {
            Box::pin(async move {
                sqlx::query("INSERT INTO message_index (message_index, rank) VALUES ('integrity-check', 1)")
                    .execute(connection)
                    .await?;
                Ok::<_, steward_store::StoreError>(())
            })
        })
        .await;
    match checked {
        Ok(()) => Ok(None),
        Err(steward_store::StoreError::Damaged { .. } | steward_store::StoreError::Statement { .. }) => Ok(Some(
            "the index does not agree with the messages; rebuild it".to_owned(),
        )),
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
