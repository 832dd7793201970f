//! First answers by request id (`T-9`). They live in the transaction of the write that they answer.

use sqlx::SqliteConnection;
use steward_base::Timestamp;
use steward_base::names::{SessionId, TeamId};
use steward_recall_core::Error;
use steward_recall_core::append_messages::{ANSWER_RETENTION, RequestKey};

use super::failure::Failure;

/// Each write adds one answer, so that any larger number catches up.
const REMOVED_AT_ONCE: i64 = 16;

/// Within what a request id is unique.
#[derive(Debug)]
pub(super) enum Scope<'a> {
    /// Creations of sessions in the team.
    Creation,
    /// Writes to one session.
    Session(&'a SessionId),
}

impl Scope<'_> {
    fn key(&self) -> String {
        match self {
            Self::Creation => "sessions".to_owned(),
            Self::Session(session) => format!("sessions/{session}"),
        }
    }
}

/// The answer that was given to this request before, as JSON. The same id with another request is refused.
pub(super) async fn first(
    connection: &mut SqliteConnection,
    team: &TeamId,
    scope: &Scope<'_>,
    request: &RequestKey,
    now: Timestamp,
) -> Result<Option<String>, Failure> {
    let known: Option<(String, String)> = sqlx::query_as(
        "SELECT request_hash, answer FROM answered WHERE team = ? AND scope = ? AND request_id = ? AND created > ?",
    )
    .bind(team.as_str())
    .bind(scope.key())
    .bind(&request.id)
    .bind(now.minus(ANSWER_RETENTION).as_micros())
    .fetch_optional(connection)
    .await?;
    match known {
        Some((hash, _)) if hash != request.hash => Err(Error::request_id_reused(&request.id).into()),
        known => Ok(known.map(|(_, answer)| answer)),
    }
}

/// Runs at every append, so it must find the oldest answers by their age and never read the others.
pub(super) const REMOVE_OLD: &str = "DELETE FROM answered WHERE (team, scope, request_id) IN
     (SELECT team, scope, request_id FROM answered INDEXED BY answered_by_age
      WHERE team = ? AND created <= ? ORDER BY created LIMIT ?)";

/// Removes the oldest answers that are past their time, a few at a time, so that no append waits for it.
async fn remove_old(connection: &mut SqliteConnection, team: &TeamId, now: Timestamp) -> Result<(), Failure> {
    sqlx::query(REMOVE_OLD)
        .bind(team.as_str())
        .bind(now.minus(ANSWER_RETENTION).as_micros())
        .bind(REMOVED_AT_ONCE)
        .execute(connection)
        .await?;
    Ok(())
}

/// Keeps an answer for retries, and lets go of old ones.
pub(super) async fn keep(
    connection: &mut SqliteConnection,
    team: &TeamId,
    scope: &Scope<'_>,
    request: &RequestKey,
    answer: &str,
    now: Timestamp,
) -> Result<(), Failure> {
    remove_old(connection, team, now).await?;
    sqlx::query("INSERT OR REPLACE INTO answered VALUES (?, ?, ?, ?, ?, ?)")
        .bind(team.as_str())
        .bind(scope.key())
        .bind(&request.id)
        .bind(&request.hash)
        .bind(answer)
        .bind(now.as_micros())
        .execute(connection)
        .await?;
    Ok(())
}
