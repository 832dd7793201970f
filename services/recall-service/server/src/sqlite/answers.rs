//! First answers by request id (`T-9`). They live in the transaction of the write that they answer.

use sqlx::SqliteConnection;
use steward_base::Timestamp;
use steward_base::names::{SessionId, TeamId};
use steward_recall_core::Error;
use steward_recall_core::append_messages::RequestKey;

use super::failure::Failure;

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
) -> Result<Option<String>, Failure> {
    let known: Option<(String, String)> =
        sqlx::query_as("SELECT request_hash, answer FROM answered WHERE team = ? AND scope = ? AND request_id = ?")
            .bind(team.as_str())
            .bind(scope.key())
            .bind(&request.id)
            .fetch_optional(connection)
            .await?;
    match known {
        Some((hash, _)) if hash != request.hash => Err(Error::request_id_reused(&request.id).into()),
        known => Ok(known.map(|(_, answer)| answer)),
    }
}

/// Keeps an answer for retries.
pub(super) async fn keep(
    connection: &mut SqliteConnection,
    team: &TeamId,
    scope: &Scope<'_>,
    request: &RequestKey,
    answer: &str,
    now: Timestamp,
) -> Result<(), Failure> {
    sqlx::query("INSERT INTO answered VALUES (?, ?, ?, ?, ?, ?)")
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
