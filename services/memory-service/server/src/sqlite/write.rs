//! One write: fence, first answer, load, decide, keep. All in one transaction, whose statements run where the rules do.

use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use serde::Serialize;
use steward_base::names::{SessionId, UserId};
use steward_base::{JobRef, Timestamp};
use steward_memory_core::{
    Basis, Book, Decide, Decision, Error, Frame, Loaded, Rejection, RequestKey, Revision, StoreName,
};
use steward_store::{Db, params};

use super::known::KnownBooks;
use super::{Failure, damaged, proposals, read};

/// How long first answers are kept: longer than any turn waits, any job is retried or any client repeats.
const ANSWERS_KEPT: Duration = Duration::from_hours(30 * 24);
/// How often old ones are let go of.
const SWEEP: Duration = Duration::from_hours(1);

const PUT_HEAD: &str = "\
INSERT INTO books (team, owner, target, revision, refusals) VALUES (?, ?, ?, ?, ?)
ON CONFLICT DO UPDATE SET revision = excluded.revision, refusals = excluded.refusals";

const PUT_ENTRY: &str = "\
INSERT INTO entries (team, owner, target, entry, revision, created_at) VALUES (?, ?, ?, ?, ?, ?)
ON CONFLICT (team, owner, target, entry) DO UPDATE SET revision = excluded.revision";

const PUT_REVISION: &str = "\
INSERT INTO revisions (team, owner, target, entry, revision, action, content, written_at, author, origin, session,
                       turn, job, evidence_session, evidence_spans, basis, integrity, reason, approved_by, holds_until,
                       checks)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)";

/// What writes share beside the database.
#[derive(Debug, Default)]
pub(super) struct Shared {
    pub(super) known: KnownBooks,
    /// When old answers were last let go of, in microseconds.
    swept: AtomicI64,
}

/// Gives the answer: the decision's, or the first one of the same request.
pub(super) fn transact(db: Db<'_>, shared: &Shared, frame: &Frame, decide: Decide) -> Result<String, Failure> {
    if let Some(job) = &frame.job {
        see_fence(db, frame, job)?;
    }
    if let Some(request) = &frame.request
        && let Some(answer) = first_answer(db, frame, request)?
    {
        return Ok(answer);
    }
    let loaded = load(db, shared, frame)?;
    let decision = decide(&loaded).map_err(Failure::Rule)?;
    keep(db, &frame.store, &decision)?;
    if let Some(request) = &frame.request {
        remember(db, frame, request, &decision.answer)?;
    }
    sweep(db, shared, frame)?;
    // A report on checks changes no revision, by which a lost commit would show.
    if decision.checked.is_empty() {
        shared.known.put(&frame.store, after(loaded.book, &decision));
    }
    Ok(decision.answer)
}

/// Refuses a fence lower than the highest seen of the job, and remembers a higher one.
fn see_fence(db: Db<'_>, frame: &Frame, job: &JobRef) -> Result<(), Failure> {
    let key = (frame.store.team.as_str(), job.id.as_str());
    let seen: Option<i64> = db.optional("SELECT fence FROM job_fences WHERE team = ? AND job = ?", key)?;
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
        db.execute(
            "INSERT INTO job_fences (team, job, fence) VALUES (?, ?, ?) \
             ON CONFLICT DO UPDATE SET fence = excluded.fence",
            (frame.store.team.as_str(), job.id.as_str(), fence),
        )?;
    }
    Ok(())
}

/// The first answer to a request, if it was made before; refuses its id with another content.
fn first_answer(db: Db<'_>, frame: &Frame, request: &RequestKey) -> Result<Option<String>, Failure> {
    let key = (frame.store.team.as_str(), request.scope.as_str(), request.id.as_str());
    db.first(
        "SELECT hash, answer FROM requests WHERE team = ? AND scope = ? AND request_id = ?",
        key,
        |row| {
            let hash: String = row.get(0)?;
            if hash != request.hash {
                return Err(Failure::Rule(Error::RequestIdReused {
                    request_id: request.id.clone(),
                }));
            }
            Ok(row.get(1)?)
        },
    )
}

fn load(db: Db<'_>, shared: &Shared, frame: &Frame) -> Result<Loaded, Failure> {
    let store = &frame.store;
    let mut loaded = Loaded::default();
    if let Some(entry) = &frame.entry {
        loaded.history = read::history(db, store, entry)?;
    }
    if let Some(id) = &frame.proposal {
        loaded.proposal = proposals::get(db, &store.team, id)?;
    }
    if let Some(print) = &frame.fingerprint {
        loaded.pending = proposals::pending(db, store, frame.at)?;
        loaded.same = proposals::same(db, store, print, frame.at)?;
        loaded.rejected = rejection(db, store, print)?;
    }
    loaded.book = book(db, shared, store)?;
    Ok(loaded)
}

fn book(db: Db<'_>, shared: &Shared, store: &StoreName) -> Result<Book, Failure> {
    let Some(head) = read::head(db, store)? else {
        return Ok(Book::default());
    };
    let entries = match shared.known.take(store, head.0) {
        Some(book) => book,
        None => read::entries(db, store)?,
    };
    Ok(read::headed(entries, head))
}

fn rejection(db: Db<'_>, store: &StoreName, fingerprint: &str) -> Result<Option<Rejection>, Failure> {
    let key = (
        store.team.as_str(),
        store.owner.key(),
        store.target.as_str(),
        fingerprint,
    );
    db.first(
        "SELECT rejected_at, reason FROM rejections WHERE team = ? AND owner = ? AND target = ? AND fingerprint = ?",
        key,
        |row| {
            Ok(Rejection {
                fingerprint: fingerprint.to_owned(),
                at: Timestamp::from_micros(row.get(0)?),
                reason: row.get(1)?,
            })
        },
    )
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

/// The first three values of nearly every statement.
struct Key<'s> {
    team: &'s str,
    owner: String,
    target: &'static str,
}

fn keep(db: Db<'_>, store: &StoreName, decision: &Decision) -> Result<(), Failure> {
    let key = Key {
        team: store.team.as_str(),
        owner: store.owner.key(),
        target: store.target.as_str(),
    };
    let Key { team, owner, target } = &key;
    if let Some((revision, refusals)) = &decision.head {
        let number = i64::try_from(*revision).map_err(|_| damaged("book revision", &revision.to_string()))?;
        db.execute(PUT_HEAD, (team, owner, target, number, json(refusals)?))?;
    }
    for revision in &decision.revisions {
        put_revision(db, &key, revision)?;
    }
    for entry in &decision.put {
        let (id, created) = (entry.id.as_str(), entry.created.as_micros());
        db.execute(PUT_ENTRY, (team, owner, target, id, entry.revision, created))?;
    }
    for entry in &decision.gone {
        db.execute(
            "DELETE FROM entries WHERE team = ? AND owner = ? AND target = ? AND entry = ?",
            (team, owner, target, entry.as_str()),
        )?;
    }
    for proposal in &decision.proposals {
        proposals::put(db, &store.team, proposal)?;
    }
    keep_the_rest(db, &key, decision)
}

fn keep_the_rest(db: Db<'_>, key: &Key<'_>, decision: &Decision) -> Result<(), Failure> {
    let Key { team, owner, target } = key;
    for (entry, revision, failed) in &decision.checked {
        match failed {
            None => db.execute(
                "DELETE FROM doubts WHERE team = ? AND owner = ? AND target = ? AND entry = ?",
                (team, owner, target, entry.as_str()),
            )?,
            Some(check) => db.execute(
                "INSERT OR REPLACE INTO doubts (team, owner, target, entry, revision, failed_check) \
                 VALUES (?, ?, ?, ?, ?, ?)",
                (team, owner, target, entry.as_str(), revision, check),
            )?,
        };
    }
    if let Some(rejection) = &decision.rejection {
        let (print, at) = (&rejection.fingerprint, rejection.at.as_micros());
        db.execute(
            "INSERT OR REPLACE INTO rejections (team, owner, target, fingerprint, rejected_at, reason) \
             VALUES (?, ?, ?, ?, ?, ?)",
            (team, owner, target, print, at, &rejection.reason),
        )?;
    }
    for held in &decision.held {
        db.execute(
            "INSERT INTO held (team, owner, target, held, bytes, came_at) VALUES (?, ?, ?, ?, ?, ?)",
            (team, owner, target, held.id.as_str(), &held.bytes, held.at.as_micros()),
        )?;
    }
    for held in &decision.let_go {
        db.execute(
            "DELETE FROM held WHERE team = ? AND owner = ? AND target = ? AND held = ?",
            (team, owner, target, held.as_str()),
        )?;
    }
    Ok(())
}

fn put_revision(db: Db<'_>, key: &Key<'_>, revision: &Revision) -> Result<(), Failure> {
    let from = &revision.provenance;
    let evidence = from.evidence.as_ref();
    let spans = evidence.map(|evidence| json(&evidence.spans)).transpose()?;
    let checks = (!from.holds.checks.is_empty())
        .then(|| json(&from.holds.checks))
        .transpose()?;
    let integrity = evidence.and_then(|evidence| evidence.integrity);
    let values = params![
        key.team,
        key.owner,
        key.target,
        revision.entry.as_str(),
        revision.number,
        revision.action.as_str(),
        revision.content,
        revision.at.as_micros(),
        from.author.as_ref().map(UserId::as_str),
        from.origin.as_str(),
        from.session.as_ref().map(SessionId::as_str),
        from.turn,
        from.job,
        evidence.map(|evidence| evidence.session.as_str()),
        spans,
        evidence.and_then(|evidence| evidence.basis).map(Basis::as_str),
        integrity.map(|integrity| i64::from(integrity.level())),
        from.reason,
        from.approved_by.as_ref().map(UserId::as_str),
        from.holds.until.map(Timestamp::as_micros),
        checks,
    ];
    db.execute(PUT_REVISION, values)?;
    Ok(())
}

fn remember(db: Db<'_>, frame: &Frame, request: &RequestKey, answer: &str) -> Result<(), Failure> {
    let team = frame.store.team.as_str();
    db.execute(
        "INSERT INTO requests (team, scope, request_id, hash, answer, written_at) VALUES (?, ?, ?, ?, ?, ?)",
        (
            team,
            &request.scope,
            &request.id,
            &request.hash,
            answer,
            frame.at.as_micros(),
        ),
    )?;
    Ok(())
}

/// Lets go of old first answers, now and then.
fn sweep(db: Db<'_>, shared: &Shared, frame: &Frame) -> Result<(), Failure> {
    let last = Timestamp::from_micros(shared.swept.load(Ordering::Relaxed));
    if frame.at.since(last) >= SWEEP {
        shared.swept.store(frame.at.as_micros(), Ordering::Relaxed);
        let outdated = frame.at.minus(ANSWERS_KEPT).as_micros();
        db.execute("DELETE FROM requests WHERE written_at < ?", [outdated])?;
    }
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
