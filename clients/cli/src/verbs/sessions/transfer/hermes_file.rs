//! Reading a `state.db`: opened read-only, so that nothing of it changes, whatever its version. Columns that a version does
//! not have are empty; a value of another kind than expected is, too.

use std::path::Path;

use anyhow::{Context as _, ensure};
use sqlx::sqlite::{SqliteConnectOptions, SqliteConnection, SqliteRow};
use sqlx::{Connection as _, Row as _};
use steward_recall_exchange::Converted;
use steward_recall_exchange::hermes::{self, MessageRow, SessionRow};

pub(super) async fn convert(owner: &str, path: &Path) -> anyhow::Result<Converted> {
    ensure!(path.is_file(), "{} is no file", path.display());
    let read = || format!("cannot read {} as a state.db", path.display());
    let options = SqliteConnectOptions::new()
        .filename(path)
        .create_if_missing(false)
        .read_only(true);
    let mut connection = SqliteConnection::connect_with(&options).await.with_context(read)?;
    let sessions = sqlx::query("SELECT * FROM sessions ORDER BY started_at, id")
        .fetch_all(&mut connection)
        .await
        .with_context(read)?;
    let messages = sqlx::query("SELECT * FROM messages ORDER BY id")
        .fetch_all(&mut connection)
        .await
        .with_context(read)?;
    // It was only read.
    let _ = connection.close().await;
    let sessions: Vec<SessionRow> = sessions.iter().map(session).collect();
    let messages: Vec<MessageRow> = messages.iter().map(message).collect();
    Ok(hermes::convert(owner, &sessions, &messages))
}

fn session(row: &SqliteRow) -> SessionRow {
    SessionRow {
        id: text(row, "id"),
        source: text(row, "source"),
        model: text(row, "model"),
        system_prompt: text(row, "system_prompt"),
        title: text(row, "title"),
        parent: text(row, "parent_session_id"),
        end_reason: text(row, "end_reason"),
        started_at: number(row, "started_at"),
        input_tokens: whole(row, "input_tokens"),
        output_tokens: whole(row, "output_tokens"),
    }
}

fn message(row: &SqliteRow) -> MessageRow {
    MessageRow {
        id: whole(row, "id").unwrap_or_default(),
        session: text(row, "session_id"),
        role: text(row, "role"),
        content: text(row, "content"),
        tool_call_id: text(row, "tool_call_id"),
        tool_calls: text(row, "tool_calls"),
        tool_name: text(row, "tool_name"),
        timestamp: number(row, "timestamp"),
        // Versions that cannot take messages back have no such column.
        is_active: whole(row, "active").unwrap_or(1) != 0,
        is_compacted: whole(row, "compacted").unwrap_or(0) != 0,
    }
}

/// Bytes that are no text become signs that say so.
fn text(row: &SqliteRow, column: &str) -> String {
    let bytes: Option<Vec<u8>> = row.try_get(column).unwrap_or_default();
    bytes.map_or_else(String::new, |bytes| String::from_utf8_lossy(&bytes).into_owned())
}

fn whole(row: &SqliteRow, column: &str) -> Option<i64> {
    row.try_get(column).unwrap_or_default()
}

#[expect(clippy::cast_precision_loss, reason = "seconds are far below what is exact")]
fn number(row: &SqliteRow, column: &str) -> f64 {
    let real: Option<f64> = row.try_get(column).unwrap_or_default();
    real.or_else(|| whole(row, column).map(|whole| whole as f64))
        .unwrap_or_default()
}
