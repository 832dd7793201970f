//! The row of a review, and back.

use serde::Serialize;
use serde::de::DeserializeOwned;
use steward_base::names::{ReviewId, SessionId, TeamId, UserId};
use steward_base::{Integrity, Timestamp, error_chain};
use steward_curator_core::Error;
use steward_curator_core::review::{Kinds, Mode, Problem, Report, Review, ReviewState};
use steward_model::Usage;
use steward_store::{Db, Row, params};

use super::Failure;

const SAVE: &str = "\
INSERT INTO review (
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
    cost_picodollars = excluded.cost_picodollars, unpriced_calls = excluded.unpriced_calls";

/// One row.
pub(super) fn get(db: Db<'_>, team: &TeamId, id: &str) -> Result<Option<Review>, Failure> {
    let sql = "SELECT * FROM review WHERE team = ? AND id = ?";
    db.first(sql, (team.as_str(), id), read)
}

/// One row, or none if there is none that can be read; that is logged.
pub(super) fn readable(db: Db<'_>, team: &TeamId, id: &str) -> Result<Option<Review>, Failure> {
    match get(db, team, id) {
        Err(Failure(error @ Error::Unreadable { .. })) => {
            tracing::error!(review.id = id, %team, error = error_chain(&error), "a review cannot be read");
            Ok(None)
        }
        other => other,
    }
}

/// A review of the same session that waits and sees at least as much.
pub(super) fn newer_waiting(db: Db<'_>, review: &Review) -> Result<Option<Review>, Failure> {
    let sql = "SELECT * FROM review WHERE team = ? AND session = ? AND state = 'queued' AND id <> ? AND to_seq >= ?
         ORDER BY to_seq DESC LIMIT 1";
    let (team, session, id) = (review.team.as_str(), review.session.as_str(), review.id.as_str());
    db.first(sql, (team, session, id, signed(review.to_seq)), read)
}

/// The number of the team's last change that people were shown.
pub(super) fn last_change(db: Db<'_>, team: &TeamId) -> Result<i64, Failure> {
    let sql = "SELECT coalesce(max(change_seq), 0) FROM review WHERE team = ?";
    Ok(db.value(sql, [team.as_str()])?)
}

/// Keeps a row as a change that people are shown.
pub(super) fn save_changed(db: Db<'_>, review: &Review) -> Result<(), Failure> {
    let last = last_change(db, &review.team)?;
    save(db, review, Some(last + 1))
}

/// Keeps a row that is there without telling anyone.
pub(super) fn save_quietly(db: Db<'_>, review: &Review) -> Result<(), Failure> {
    save(db, review, None)
}

fn save(db: Db<'_>, review: &Review, change: Option<i64>) -> Result<(), Failure> {
    let report = &review.report;
    let usage = &report.usage;
    db.execute(
        SAVE,
        params![
            review.team.as_str(),
            review.id.as_str(),
            review.user.as_str(),
            review.session.as_str(),
            &review.turn,
            signed(review.to_seq),
            review.kinds.memory,
            review.kinds.skills,
            review.state.as_str(),
            &review.summary,
            review.problem.as_ref().map(|problem| problem.reason.as_str()),
            review.problem.as_ref().map(|problem| problem.message.as_str()),
            review.attempts,
            report.iterations,
            usage.input.map(signed),
            usage.cached_input.map(signed),
            usage.cache_write.map(signed),
            usage.output.map(signed),
            usage.reasoning.map(signed),
            report.mode.map(Mode::as_str),
            &report.rubric,
            report.integrity.map(Integrity::level),
            json(&report.writes)?,
            json(&report.rejected)?,
            json(&report.used_skills)?,
            review.absorbed_by.as_ref().map(ReviewId::as_str),
            review.created_at.as_micros(),
            review.ended_at.map(Timestamp::as_micros),
            &review.traceparent,
            change,
            signed(report.cost),
            report.unpriced,
        ],
    )?;
    Ok(())
}

/// Reads a row of `SELECT * FROM review`.
pub(super) fn read(row: &Row<'_>) -> Result<Review, Failure> {
    let state: String = row.get("state")?;
    let problem = row.get::<_, Option<String>>("problem_reason")?;
    let problem_message: Option<String> = row.get("problem_message")?;
    Ok(Review {
        team: team(row.get("team")?)?,
        id: ReviewId::parse(row.get::<_, String>("id")?).map_err(unreadable)?,
        user: UserId::parse(row.get::<_, String>("user_id")?).map_err(unreadable)?,
        session: SessionId::parse(row.get::<_, String>("session")?).map_err(unreadable)?,
        turn: row.get("turn")?,
        to_seq: unsigned(row.get("to_seq")?),
        kinds: Kinds {
            memory: row.get("memory")?,
            skills: row.get("skills")?,
        },
        state: ReviewState::parse(&state).ok_or_else(|| unreadable(format!("state {state}")))?,
        summary: row.get("summary")?,
        problem: problem.map(|reason| Problem::new(reason, problem_message.unwrap_or_default())),
        attempts: row.get("attempts")?,
        report: report(row)?,
        absorbed_by: row
            .get::<_, Option<String>>("absorbed_by")?
            .map(|id| ReviewId::parse(id).map_err(unreadable))
            .transpose()?,
        created_at: Timestamp::from_micros(row.get("created_at")?),
        ended_at: row.get::<_, Option<i64>>("ended_at")?.map(Timestamp::from_micros),
        traceparent: row.get("traceparent")?,
    })
}

fn report(row: &Row<'_>) -> Result<Report, Failure> {
    let tokens =
        |column: &str| -> Result<Option<u64>, Failure> { Ok(row.get::<_, Option<i64>>(column)?.map(unsigned)) };
    let mode: Option<String> = row.get("mode")?;
    let integrity: Option<u8> = row.get("integrity")?;
    Ok(Report {
        mode: mode.as_deref().and_then(Mode::parse),
        rubric: row.get("rubric")?,
        integrity: integrity.and_then(Integrity::from_level),
        iterations: row.get("iterations")?,
        usage: Usage {
            input: tokens("input_tokens")?,
            cached_input: tokens("cached_input_tokens")?,
            cache_write: tokens("cache_write_tokens")?,
            output: tokens("output_tokens")?,
            reasoning: tokens("reasoning_tokens")?,
        },
        cost: unsigned(row.get("cost_picodollars")?),
        unpriced: row.get("unpriced_calls")?,
        writes: parse(&row.get::<_, String>("writes")?)?,
        rejected: parse(&row.get::<_, String>("rejected")?)?,
        used_skills: parse(&row.get::<_, String>("used_skills")?)?,
    })
}

pub(super) fn team(text: String) -> Result<TeamId, Failure> {
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
