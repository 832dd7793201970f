//! The row of a review, and back.

use serde::Serialize;
use serde::de::DeserializeOwned;
use sqlx::sqlite::SqliteRow;
use sqlx::{Row as _, SqliteConnection};
use steward_base::names::{ReviewId, SessionId, TeamId, UserId};
use steward_base::{Integrity, Timestamp, error_chain};
use steward_curator_core::Error;
use steward_curator_core::review::{Kinds, Mode, Problem, Report, Review, ReviewState};
use steward_model::Usage;

use super::Failure;

/// One row.
pub(super) async fn get(connection: &mut SqliteConnection, team: &TeamId, id: &str) -> Result<Option<Review>, Failure> {
    let row = sqlx::query("SELECT * FROM review WHERE team = ? AND id = ?")
        .bind(team.as_str())
        .bind(id)
        .fetch_optional(connection)
        .await?;
    row.as_ref().map(read).transpose()
}

/// One row, or none if there is none that can be read; that is logged.
pub(super) async fn readable(
    connection: &mut SqliteConnection,
    team: &TeamId,
    id: &str,
) -> Result<Option<Review>, Failure> {
    match get(connection, team, id).await {
        Err(Failure(error @ Error::Unreadable { .. })) => {
            tracing::error!(review.id = id, %team, error = error_chain(&error), "a review cannot be read");
            Ok(None)
        }
        other => other,
    }
}

/// A review of the same session that waits and sees at least as much.
pub(super) async fn newer_waiting(
    connection: &mut SqliteConnection,
    review: &Review,
) -> Result<Option<Review>, Failure> {
    let row = sqlx::query(
        "SELECT * FROM review WHERE team = ? AND session = ? AND state = 'queued' AND id <> ? AND to_seq >= ?
         ORDER BY to_seq DESC LIMIT 1",
    )
    .bind(review.team.as_str())
    .bind(review.session.as_str())
    .bind(review.id.as_str())
    .bind(signed(review.to_seq))
    .fetch_optional(connection)
    .await?;
    row.as_ref().map(read).transpose()
}

/// Keeps a row as a change that people are shown.
pub(super) async fn save_changed(connection: &mut SqliteConnection, review: &Review) -> Result<(), Failure> {
    let last: i64 = sqlx::query_scalar("SELECT coalesce(max(change_seq), 0) FROM review WHERE team = ?")
        .bind(review.team.as_str())
        .fetch_one(&mut *connection)
        .await?;
    save(connection, review, Some(last + 1)).await
}

/// Keeps a row that is there without telling anyone.
pub(super) async fn save_quietly(connection: &mut SqliteConnection, review: &Review) -> Result<(), Failure> {
    save(connection, review, None).await
}

async fn save(connection: &mut SqliteConnection, review: &Review, change: Option<i64>) -> Result<(), Failure> {
    let report = &review.report;
    let usage = &report.usage;
    sqlx::query(
        "INSERT INTO review (
             team, id, user_id, session, turn, to_seq, memory, skills, state, summary, problem_reason, problem_message,
             attempts, iterations, input_tokens, cached_input_tokens, cache_write_tokens, output_tokens,
             reasoning_tokens, mode, rubric, integrity, writes, rejected, used_skills, absorbed_by, created_at,
             ended_at, traceparent, change_seq, cost_picodollars, unpriced_calls
         ) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18, ?19, ?20, ?21, ?22,
             ?23, ?24, ?25, ?26, ?27, ?28, ?29,
             coalesce(?30, (SELECT change_seq FROM review WHERE team = ?1 AND id = ?2)), ?31, ?32)
         ON CONFLICT (team, id) DO UPDATE SET
             to_seq = excluded.to_seq, memory = excluded.memory, skills = excluded.skills, state = excluded.state,
             summary = excluded.summary, problem_reason = excluded.problem_reason,
             problem_message = excluded.problem_message, attempts = excluded.attempts,
             iterations = excluded.iterations, input_tokens = excluded.input_tokens,
             cached_input_tokens = excluded.cached_input_tokens, cache_write_tokens = excluded.cache_write_tokens,
             output_tokens = excluded.output_tokens, reasoning_tokens = excluded.reasoning_tokens,
             mode = excluded.mode, rubric = excluded.rubric, integrity = excluded.integrity,
             writes = excluded.writes, rejected = excluded.rejected, used_skills = excluded.used_skills,
             absorbed_by = excluded.absorbed_by, ended_at = excluded.ended_at, change_seq = excluded.change_seq,
             cost_picodollars = excluded.cost_picodollars, unpriced_calls = excluded.unpriced_calls",
    )
    .bind(review.team.as_str())
    .bind(review.id.as_str())
    .bind(review.user.as_str())
    .bind(review.session.as_str())
    .bind(&review.turn)
    .bind(signed(review.to_seq))
    .bind(review.kinds.memory)
    .bind(review.kinds.skills)
    .bind(review.state.as_str())
    .bind(&review.summary)
    .bind(review.problem.as_ref().map(|problem| problem.reason.as_str()))
    .bind(review.problem.as_ref().map(|problem| problem.message.as_str()))
    .bind(review.attempts)
    .bind(report.iterations)
    .bind(usage.input.map(signed))
    .bind(usage.cached_input.map(signed))
    .bind(usage.cache_write.map(signed))
    .bind(usage.output.map(signed))
    .bind(usage.reasoning.map(signed))
    .bind(report.mode.map(Mode::as_str))
    .bind(&report.rubric)
    .bind(report.integrity.map(Integrity::level))
    .bind(json(&report.writes)?)
    .bind(json(&report.rejected)?)
    .bind(json(&report.used_skills)?)
    .bind(review.absorbed_by.as_ref().map(ReviewId::as_str))
    .bind(review.created_at.as_micros())
    .bind(review.ended_at.map(Timestamp::as_micros))
    .bind(&review.traceparent)
    .bind(change)
    .bind(signed(report.cost))
    .bind(report.unpriced)
    .execute(connection)
    .await?;
    Ok(())
}

/// Reads a row of `SELECT * FROM review`.
pub(super) fn read(row: &SqliteRow) -> Result<Review, Failure> {
    let state: &str = row.try_get("state")?;
    let problem = row.try_get::<Option<String>, _>("problem_reason")?;
    let problem_message: Option<String> = row.try_get("problem_message")?;
    Ok(Review {
        team: team(row.try_get("team")?)?,
        id: ReviewId::parse(row.try_get::<&str, _>("id")?).map_err(unreadable)?,
        user: UserId::parse(row.try_get::<&str, _>("user_id")?).map_err(unreadable)?,
        session: SessionId::parse(row.try_get::<&str, _>("session")?).map_err(unreadable)?,
        turn: row.try_get("turn")?,
        to_seq: unsigned(row.try_get("to_seq")?),
        kinds: Kinds {
            memory: row.try_get("memory")?,
            skills: row.try_get("skills")?,
        },
        state: ReviewState::parse(state).ok_or_else(|| unreadable(format!("state {state}")))?,
        summary: row.try_get("summary")?,
        problem: problem.map(|reason| Problem::new(reason, problem_message.unwrap_or_default())),
        attempts: row.try_get("attempts")?,
        report: report(row)?,
        absorbed_by: row
            .try_get::<Option<String>, _>("absorbed_by")?
            .map(|id| ReviewId::parse(id).map_err(unreadable))
            .transpose()?,
        created_at: Timestamp::from_micros(row.try_get("created_at")?),
        ended_at: row.try_get::<Option<i64>, _>("ended_at")?.map(Timestamp::from_micros),
        traceparent: row.try_get("traceparent")?,
    })
}

fn report(row: &SqliteRow) -> Result<Report, Failure> {
    let tokens =
        |column: &str| -> Result<Option<u64>, Failure> { Ok(row.try_get::<Option<i64>, _>(column)?.map(unsigned)) };
    let mode: Option<String> = row.try_get("mode")?;
    let integrity: Option<u8> = row.try_get("integrity")?;
    Ok(Report {
        mode: mode.as_deref().and_then(Mode::parse),
        rubric: row.try_get("rubric")?,
        integrity: integrity.and_then(Integrity::from_level),
        iterations: row.try_get("iterations")?,
        usage: Usage {
            input: tokens("input_tokens")?,
            cached_input: tokens("cached_input_tokens")?,
            cache_write: tokens("cache_write_tokens")?,
            output: tokens("output_tokens")?,
            reasoning: tokens("reasoning_tokens")?,
        },
        cost: unsigned(row.try_get("cost_picodollars")?),
        unpriced: row.try_get("unpriced_calls")?,
        writes: parse(row.try_get("writes")?)?,
        rejected: parse(row.try_get("rejected")?)?,
        used_skills: parse(row.try_get("used_skills")?)?,
    })
}

pub(super) fn team(text: &str) -> Result<TeamId, Failure> {
    TeamId::parse(text).map_err(unreadable)
}

fn json(value: &impl Serialize) -> Result<String, Failure> {
    serde_json::to_string(value).map_err(unreadable)
}

fn parse<T: DeserializeOwned>(text: &str) -> Result<T, Failure> {
    serde_json::from_str(text).map_err(unreadable)
}

fn unreadable(source: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Failure {
    Failure(Error::unreadable("a row of the ledger", source))
}

fn signed(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

fn unsigned(number: i64) -> u64 {
    u64::try_from(number).unwrap_or(0)
}
