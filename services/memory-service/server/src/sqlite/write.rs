//! One write: fence, first answer, load, decide, keep. All in one transaction and in two pieces: one that asks for all that the
//! decision needs, which begins it, and one that keeps all that it says, which commits it.

use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use serde::Serialize;
use sqlx::FromRow;
use sqlx::sqlite::{SqliteConnection, SqliteRow};
use steward_base::names::{SessionId, UserId};
use steward_base::{JobRef, Timestamp};
use steward_memory_core::{
    Basis, Book, Decide, Decision, Error, Frame, Loaded, Rejection, RequestKey, Revision, StoreName,
};
use steward_store::Batch;

use super::known::KnownBooks;
use super::{Failure, damaged, proposals, read};

/// How long first answers are kept: longer than any turn waits, any job is retried or any client repeats.
const ANSWERS_KEPT: Duration = Duration::from_hours(30 * 24);
/// How often old ones are let go of.
const SWEEP: Duration = Duration::from_hours(1);

const STATE: &str = "\
SELECT (SELECT revision FROM books WHERE team = ?1 AND owner = ?2 AND target = ?3) AS revision,
       (SELECT refusals FROM books WHERE team = ?1 AND owner = ?2 AND target = ?3) AS refusals,
       (SELECT count(*) FROM proposals
        WHERE team = ?1 AND state = 'pending' AND owner = ?2 AND expires_at > ?4) AS pending,
       (SELECT fence FROM job_fences WHERE team = ?1 AND job = ?5) AS fence,
       (SELECT hash FROM requests WHERE team = ?1 AND scope = ?6 AND request_id = ?7) AS hash,
       (SELECT answer FROM requests WHERE team = ?1 AND scope = ?6 AND request_id = ?7) AS answer,
       (SELECT rejected_at FROM rejections
        WHERE team = ?1 AND owner = ?2 AND target = ?3 AND fingerprint = ?8) AS rejected_at,
       (SELECT reason FROM rejections
        WHERE team = ?1 AND owner = ?2 AND target = ?3 AND fingerprint = ?8) AS rejection_reason";

/// What stands in the database before a decision.
#[derive(Debug, FromRow)]
struct State {
    revision: Option<i64>,
    refusals: Option<String>,
    pending: i64,
    fence: Option<i64>,
    hash: Option<String>,
    answer: Option<String>,
    rejected_at: Option<i64>,
    rejection_reason: Option<String>,
}

/// What writes share beside the database.
#[derive(Debug, Default)]
pub(super) struct Shared {
    pub(super) known: KnownBooks,
    /// When old answers were last let go of, in microseconds.
    swept: AtomicI64,
}

/// Goes on from the answer to [`ask`]; gives the answer and what is still to be written.
pub(super) async fn transact(
    connection: &mut SqliteConnection,
    rows: Vec<SqliteRow>,
    shared: &Shared,
    frame: Frame,
    decide: Decide,
) -> Result<(String, Batch), Failure> {
    let row = rows.first().ok_or(sqlx::Error::RowNotFound)?;
    let state = State::from_row(row)?;
    let mut batch = Batch::default();
    if let Some(job) = &frame.job {
        see_fence(&mut batch, &frame, job, state.fence)?;
    }
    if let Some(request) = &frame.request
        && let (Some(hash), Some(answer)) = (&state.hash, &state.answer)
    {
        if *hash != request.hash {
            return Err(Failure::Rule(Error::RequestIdReused {
                request_id: request.id.clone(),
            }));
        }
        return Ok((answer.clone(), batch));
    }
    let loaded = load(connection, shared, &frame, state).await?;
    let decision = decide(&loaded).map_err(Failure::Rule)?;
    keep(&mut batch, &frame.store, &decision)?;
    if let Some(request) = &frame.request {
        remember(&mut batch, &frame, request, &decision.answer);
    }
    sweep(&mut batch, shared, &frame);
    // A report on checks changes no revision, by which a lost commit would show.
    if decision.checked.is_empty() {
        shared.known.put(&frame.store, after(loaded.book, &decision));
    }
    Ok((decision.answer, batch))
}

/// Asks for all that a decision needs.
pub(super) fn ask(frame: &Frame) -> Batch {
    let store = &frame.store;
    let request = frame.request.as_ref();
    let mut batch = Batch::default();
    batch
        .statement(STATE)
        .with(store.team.as_str())
        .with(store.owner.key())
        .with(store.target.as_str())
        .with(frame.at.as_micros())
        .with(frame.job.as_ref().map(|job| job.id.as_str()))
        .with(request.map(|request| request.scope.as_str()))
        .with(request.map(|request| request.id.as_str()))
        .with(frame.fingerprint.as_deref());
    batch
}

/// Refuses a fence lower than the highest seen of the job, and remembers a higher one.
fn see_fence(batch: &mut Batch, frame: &Frame, job: &JobRef, seen: Option<i64>) -> Result<(), Failure> {
    let current = u64::try_from(seen.unwrap_or(0)).map_err(|_| damaged("fence of job", &job.id))?;
    if job.fence < current {
        return Err(Failure::Rule(Error::StaleFence {
            job: job.id.clone(),
            fence: job.fence,
            current,
        }));
    }
    let fence = i64::try_from(job.fence).map_err(|_| Failure::Rule(Error::invalid("job.fence", "is out of range")))?;
    if Some(fence) != seen {
        batch
            .statement(
                "INSERT INTO job_fences (team, job, fence) VALUES (?, ?, ?) \
                 ON CONFLICT DO UPDATE SET fence = excluded.fence",
            )
            .with(frame.store.team.as_str())
            .with(job.id.as_str())
            .with(fence);
    }
    Ok(())
}

async fn load(
    connection: &mut SqliteConnection,
    shared: &Shared,
    frame: &Frame,
    state: State,
) -> Result<Loaded, Failure> {
    let store = &frame.store;
    let history = match &frame.entry {
        None => Vec::new(),
        Some(entry) => read::history(connection, store, entry).await?,
    };
    let proposal = match &frame.proposal {
        None => None,
        Some(id) => proposals::get(connection, &store.team, id).await?,
    };
    let same = match &frame.fingerprint {
        None => None,
        Some(print) => proposals::same(connection, store, print, frame.at).await?,
    };
    let rejected = frame
        .fingerprint
        .as_ref()
        .zip(state.rejected_at)
        .map(|(print, at)| Rejection {
            fingerprint: print.clone(),
            at: Timestamp::from_micros(at),
            reason: state.rejection_reason.unwrap_or_default(),
        });
    Ok(Loaded {
        book: book(connection, shared, store, state.revision, state.refusals).await?,
        history,
        proposal,
        pending: usize::try_from(state.pending).unwrap_or(usize::MAX),
        rejected,
        same,
    })
}

async fn book(
    connection: &mut SqliteConnection,
    shared: &Shared,
    store: &StoreName,
    revision: Option<i64>,
    refusals: Option<String>,
) -> Result<Book, Failure> {
    let Some(number) = revision else {
        return Ok(Book::default());
    };
    let number = u64::try_from(number).map_err(|_| damaged("book revision", &number.to_string()))?;
    let known = shared.known.take(store, number);
    let mut book = match known {
        Some(book) => book,
        None => read::entries(connection, store).await?,
    };
    book.revision = number;
    book.refusals = refusals
        .and_then(|text| serde_json::from_str(&text).ok())
        .unwrap_or_default();
    Ok(book)
}

/// The book as the decision leaves it.
fn after(mut book: Book, decision: &Decision) -> Book {
    if let Some((revision, refusals)) = &decision.head {
        book.revision = *revision;
        book.refusals.clone_from(refusals);
    }
    book.entries.retain(|entry| !decision.gone.contains(&entry.id));
    for entry in &decision.put {
        book.entries.retain(|present| present.id != entry.id);
        book.insert(entry.clone());
    }
    book
}

fn keep(batch: &mut Batch, store: &StoreName, decision: &Decision) -> Result<(), Failure> {
    if let Some((revision, refusals)) = &decision.head {
        let number = i64::try_from(*revision).map_err(|_| damaged("book revision", &revision.to_string()))?;
        let refusals = json(refusals)?;
        batch.statement(
            "INSERT INTO books (team, owner, target, revision, refusals) VALUES (?, ?, ?, ?, ?) \
             ON CONFLICT DO UPDATE SET revision = excluded.revision, refusals = excluded.refusals",
        );
        name(batch, store).with(number).with(refusals);
    }
    for revision in &decision.revisions {
        put_revision(batch, store, revision)?;
    }
    for entry in &decision.put {
        batch.statement(
            "INSERT INTO entries (team, owner, target, entry, revision, created_at) VALUES (?, ?, ?, ?, ?, ?) \
             ON CONFLICT (team, owner, target, entry) DO UPDATE SET revision = excluded.revision",
        );
        name(batch, store)
            .with(entry.id.as_str())
            .with(i64::from(entry.revision))
            .with(entry.created.as_micros());
    }
    for entry in &decision.gone {
        batch.statement("DELETE FROM entries WHERE team = ? AND owner = ? AND target = ? AND entry = ?");
        name(batch, store).with(entry.as_str());
    }
    for proposal in &decision.proposals {
        proposals::put(batch, &store.team, proposal)?;
    }
    keep_the_rest(batch, store, decision);
    Ok(())
}

fn keep_the_rest(batch: &mut Batch, store: &StoreName, decision: &Decision) {
    for (entry, revision, failed) in &decision.checked {
        match failed {
            None => {
                batch.statement("DELETE FROM doubts WHERE team = ? AND owner = ? AND target = ? AND entry = ?");
                name(batch, store).with(entry.as_str());
            }
            Some(check) => {
                batch.statement(
                    "INSERT OR REPLACE INTO doubts (team, owner, target, entry, revision, failed_check) \
                     VALUES (?, ?, ?, ?, ?, ?)",
                );
                name(batch, store)
                    .with(entry.as_str())
                    .with(i64::from(*revision))
                    .with(check.as_str());
            }
        }
    }
    if let Some(rejection) = &decision.rejection {
        batch.statement(
            "INSERT OR REPLACE INTO rejections (team, owner, target, fingerprint, rejected_at, reason) \
             VALUES (?, ?, ?, ?, ?, ?)",
        );
        name(batch, store)
            .with(rejection.fingerprint.as_str())
            .with(rejection.at.as_micros())
            .with(rejection.reason.as_str());
    }
    for held in &decision.held {
        batch.statement("INSERT INTO held (team, owner, target, held, bytes, came_at) VALUES (?, ?, ?, ?, ?, ?)");
        name(batch, store)
            .with(held.id.as_str())
            .with(held.bytes.as_slice())
            .with(held.at.as_micros());
    }
    for held in &decision.let_go {
        batch.statement("DELETE FROM held WHERE team = ? AND owner = ? AND target = ? AND held = ?");
        name(batch, store).with(held.as_str());
    }
}

/// The first three values of nearly every statement.
fn name<'b>(batch: &'b mut Batch, store: &StoreName) -> &'b mut Batch {
    batch
        .with(store.team.as_str())
        .with(store.owner.key())
        .with(store.target.as_str())
}

fn put_revision(batch: &mut Batch, store: &StoreName, revision: &Revision) -> Result<(), Failure> {
    let from = &revision.provenance;
    let evidence = from.evidence.as_ref();
    let spans = evidence.map(|evidence| json(&evidence.spans)).transpose()?;
    let checks = (!from.holds.checks.is_empty())
        .then(|| json(&from.holds.checks))
        .transpose()?;
    let integrity = evidence.and_then(|evidence| evidence.integrity);
    batch.statement(
        "INSERT INTO revisions (team, owner, target, entry, revision, action, content, written_at, author, origin, session, \
         turn, job, evidence_session, evidence_spans, basis, integrity, reason, approved_by, holds_until, checks) \
         VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
    );
    name(batch, store)
        .with(revision.entry.as_str())
        .with(i64::from(revision.number))
        .with(revision.action.as_str())
        .with(revision.content.as_deref())
        .with(revision.at.as_micros())
        .with(from.author.as_ref().map(UserId::as_str))
        .with(from.origin.as_str())
        .with(from.session.as_ref().map(SessionId::as_str))
        .with(from.turn.as_deref())
        .with(from.job.as_deref())
        .with(evidence.map(|evidence| evidence.session.as_str()))
        .with(spans)
        .with(evidence.and_then(|evidence| evidence.basis).map(Basis::as_str))
        .with(integrity.map(|integrity| i64::from(integrity.level())))
        .with(from.reason.as_str())
        .with(from.approved_by.as_ref().map(UserId::as_str))
        .with(from.holds.until.map(Timestamp::as_micros))
        .with(checks);
    Ok(())
}

fn remember(batch: &mut Batch, frame: &Frame, request: &RequestKey, answer: &str) {
    batch
        .statement("INSERT INTO requests (team, scope, request_id, hash, answer, written_at) VALUES (?, ?, ?, ?, ?, ?)")
        .with(frame.store.team.as_str())
        .with(request.scope.as_str())
        .with(request.id.as_str())
        .with(request.hash.as_str())
        .with(answer)
        .with(frame.at.as_micros());
}

/// Lets go of old first answers, now and then.
fn sweep(batch: &mut Batch, shared: &Shared, frame: &Frame) {
    let last = Timestamp::from_micros(shared.swept.load(Ordering::Relaxed));
    if frame.at.since(last) >= SWEEP {
        shared.swept.store(frame.at.as_micros(), Ordering::Relaxed);
        batch
            .statement("DELETE FROM requests WHERE written_at < ?")
            .with(frame.at.minus(ANSWERS_KEPT).as_micros());
    }
}

pub(super) fn json(value: &impl Serialize) -> Result<String, Failure> {
    serde_json::to_string(value).map_err(|source| {
        Failure::Rule(Error::Internal {
            operation: "writing a value",
            source: Box::new(source),
        })
    })
}
