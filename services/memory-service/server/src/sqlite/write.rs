//! One write: fence, first answer, load, decide, keep. All inside the transaction that the caller began.

use std::time::Duration;

use serde::Serialize;
use sqlx::sqlite::SqliteConnection;
use steward_base::JobRef;
use steward_base::names::{SessionId, TeamId, UserId};
use steward_memory_core::{Basis, Decide, Decision, Entry, Error, Frame, Loaded, RequestKey, Revision, StoreName};

use super::{Failure, damaged, proposals, read};

/// How long first answers are kept: longer than any turn waits, any job is retried or any client repeats.
const ANSWERS_KEPT: Duration = Duration::from_hours(30 * 24);

const PUT_REVISION: &str = "\
INSERT INTO revisions (team, owner, target, entry, revision, action, content, written_at, author, origin, session, turn,
                       job, evidence_session, evidence_spans, basis, integrity, reason, approved_by)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)";

const PUT_ENTRY: &str = "\
INSERT INTO entries (team, owner, target, entry, revision, created_at) VALUES (?, ?, ?, ?, ?, ?)
ON CONFLICT (team, owner, target, entry) DO UPDATE SET revision = excluded.revision";

pub(super) async fn transact(
    connection: &mut SqliteConnection,
    frame: Frame,
    decide: Decide,
) -> Result<String, Failure> {
    let team = &frame.store.team;
    if let Some(job) = &frame.job {
        see_fence(connection, team, job).await?;
    }
    if let Some(request) = &frame.request
        && let Some(answer) = first_answer(connection, team, request).await?
    {
        return Ok(answer);
    }
    let loaded = load(connection, &frame).await?;
    let decision = decide(&loaded).map_err(Failure::Rule)?;
    keep(connection, &frame.store, &decision).await?;
    if let Some(request) = &frame.request {
        remember(connection, &frame, request, &decision.answer).await?;
    }
    Ok(decision.answer)
}

/// Refuses a fence lower than the highest seen of the job, and remembers a higher one.
async fn see_fence(connection: &mut SqliteConnection, team: &TeamId, job: &JobRef) -> Result<(), Failure> {
    let seen: Option<i64> = sqlx::query_scalar("SELECT fence FROM job_fences WHERE team = ? AND job = ?")
        .bind(team.as_str())
        .bind(&job.id)
        .fetch_optional(&mut *connection)
        .await?;
    let current = u64::try_from(seen.unwrap_or(0)).map_err(|_| damaged("fence of job", &job.id))?;
    if job.fence < current {
        return Err(Failure::Rule(Error::StaleFence {
            job: job.id.clone(),
            fence: job.fence,
            current,
        }));
    }
    let fence = i64::try_from(job.fence).map_err(|_| Failure::Rule(Error::invalid("job.fence", "is out of range")))?;
    sqlx::query(
        "INSERT INTO job_fences (team, job, fence) VALUES (?, ?, ?) ON CONFLICT DO UPDATE SET fence = excluded.fence",
    )
    .bind(team.as_str())
    .bind(&job.id)
    .bind(fence)
    .execute(connection)
    .await?;
    Ok(())
}

async fn first_answer(
    connection: &mut SqliteConnection,
    team: &TeamId,
    request: &RequestKey,
) -> Result<Option<String>, Failure> {
    let known: Option<(String, String)> =
        sqlx::query_as("SELECT hash, answer FROM requests WHERE team = ? AND scope = ? AND request_id = ?")
            .bind(team.as_str())
            .bind(&request.scope)
            .bind(&request.id)
            .fetch_optional(connection)
            .await?;
    match known {
        None => Ok(None),
        Some((hash, answer)) if hash == request.hash => Ok(Some(answer)),
        Some(_) => Err(Failure::Rule(Error::RequestIdReused {
            request_id: request.id.clone(),
        })),
    }
}

async fn load(connection: &mut SqliteConnection, frame: &Frame) -> Result<Loaded, Failure> {
    let store = &frame.store;
    let history = match &frame.entry {
        None => Vec::new(),
        Some(entry) => read::history(connection, store, entry).await?,
    };
    let proposal = match &frame.proposal {
        None => None,
        Some(id) => proposals::get(connection, &store.team, id).await?,
    };
    let pending = proposals::pending(connection, &store.team, &store.owner).await?;
    Ok(Loaded {
        book: read::book(connection, store).await?,
        history,
        proposal,
        pending,
    })
}

async fn keep(connection: &mut SqliteConnection, store: &StoreName, decision: &Decision) -> Result<(), Failure> {
    if let Some((revision, refusals)) = &decision.head {
        let number = i64::try_from(*revision).map_err(|_| damaged("book revision", &revision.to_string()))?;
        sqlx::query(
            "INSERT INTO books (team, owner, target, revision, refusals) VALUES (?, ?, ?, ?, ?) \
             ON CONFLICT DO UPDATE SET revision = excluded.revision, refusals = excluded.refusals",
        )
        .bind(store.team.as_str())
        .bind(store.owner.key())
        .bind(store.target.as_str())
        .bind(number)
        .bind(json(refusals)?)
        .execute(&mut *connection)
        .await?;
    }
    for revision in &decision.revisions {
        put_revision(connection, store, revision).await?;
    }
    for entry in &decision.put {
        put_entry(connection, store, entry).await?;
    }
    for entry in &decision.gone {
        sqlx::query("DELETE FROM entries WHERE team = ? AND owner = ? AND target = ? AND entry = ?")
            .bind(store.team.as_str())
            .bind(store.owner.key())
            .bind(store.target.as_str())
            .bind(entry.as_str())
            .execute(&mut *connection)
            .await?;
    }
    match &decision.proposal {
        None => Ok(()),
        Some(proposal) => proposals::put(connection, &store.team, proposal).await,
    }
}

async fn put_revision(
    connection: &mut SqliteConnection,
    store: &StoreName,
    revision: &Revision,
) -> Result<(), Failure> {
    let from = &revision.provenance;
    let evidence = from.evidence.as_ref();
    let spans = evidence.map(|evidence| json(&evidence.spans)).transpose()?;
    let integrity = evidence.and_then(|evidence| evidence.integrity);
    sqlx::query(PUT_REVISION)
        .bind(store.team.as_str())
        .bind(store.owner.key())
        .bind(store.target.as_str())
        .bind(revision.entry.as_str())
        .bind(i64::from(revision.number))
        .bind(revision.action.as_str())
        .bind(revision.content.as_deref())
        .bind(revision.at.as_micros())
        .bind(from.author.as_ref().map(UserId::as_str))
        .bind(from.origin.as_str())
        .bind(from.session.as_ref().map(SessionId::as_str))
        .bind(from.turn.as_deref())
        .bind(from.job.as_deref())
        .bind(evidence.map(|evidence| evidence.session.as_str()))
        .bind(spans)
        .bind(evidence.and_then(|evidence| evidence.basis).map(Basis::as_str))
        .bind(integrity.map(|integrity| i64::from(integrity.level())))
        .bind(&from.reason)
        .bind(from.approved_by.as_ref().map(UserId::as_str))
        .execute(connection)
        .await?;
    Ok(())
}

async fn put_entry(connection: &mut SqliteConnection, store: &StoreName, entry: &Entry) -> Result<(), Failure> {
    sqlx::query(PUT_ENTRY)
        .bind(store.team.as_str())
        .bind(store.owner.key())
        .bind(store.target.as_str())
        .bind(entry.id.as_str())
        .bind(i64::from(entry.revision))
        .bind(entry.created.as_micros())
        .execute(connection)
        .await?;
    Ok(())
}

/// Keeps the answer, and lets go of the team's oldest ones.
async fn remember(
    connection: &mut SqliteConnection,
    frame: &Frame,
    request: &RequestKey,
    answer: &str,
) -> Result<(), Failure> {
    let team = frame.store.team.as_str();
    sqlx::query("DELETE FROM requests WHERE team = ? AND written_at < ?")
        .bind(team)
        .bind(frame.at.minus(ANSWERS_KEPT).as_micros())
        .execute(&mut *connection)
        .await?;
    sqlx::query("INSERT INTO requests (team, scope, request_id, hash, answer, written_at) VALUES (?, ?, ?, ?, ?, ?)")
        .bind(team)
        .bind(&request.scope)
        .bind(&request.id)
        .bind(&request.hash)
        .bind(answer)
        .bind(frame.at.as_micros())
        .execute(connection)
        .await?;
    Ok(())
}

pub(super) fn json(value: &impl Serialize) -> Result<String, Failure> {
    serde_json::to_string(value).map_err(|source| {
        Failure::Rule(Error::Internal {
            operation: "writing a value",
            source: Box::new(source),
        })
    })
}
