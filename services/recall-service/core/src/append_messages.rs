//! The one write of a conversation: messages, counters, prefix, turn, open calls and the due review, all or nothing.
//!
//! [`decide`] is pure: a store loads what is there inside its transaction, asks, and writes what it is told. So the
//! rules are the same for every store, and a store only has to be a transaction.

#[cfg(test)]
mod tests;

use std::time::Duration;

use serde::{Deserialize, Serialize};
use steward_base::names::{SessionId, TeamId};
use steward_base::{FieldViolations, Timestamp};

use crate::create_session::MAX_TITLE;
use crate::error::Error;
use crate::lease::{Lease, LeaseRequest};
use crate::message::{MAX_NATIVE, Message, Native, NewMessage, Role};
use crate::session::{Counters, Exposure, OpenCall, PrefixState, Session, Usage};
use crate::sessions::Sessions;
use crate::turn::{DueReview, NewDueReview, Turn, TurnUpdate};

/// How long a call waits for the client where the caller gives no time (`T-8`).
pub const OPEN_CALL_TTL: Duration = Duration::from_hours(24);
/// How long the first answer to a request is kept for its retries (`T-9`). A retry that comes later is met by the check of
/// the session's last message.
pub const ANSWER_RETENTION: Duration = Duration::from_hours(30 * 24);
/// Most messages of one append.
pub const MAX_MESSAGES: usize = 500;

/// What a retry is recognised by (`T-9`).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RequestKey {
    /// The caller's request id.
    pub id: String,
    /// SHA-256 of the rest of the request.
    pub hash: String,
}

/// Calls that begin to wait for the client.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum OpenCallsChange {
    /// Instead of those that waited.
    Replace(Vec<OpenCall>),
    /// Beside those that wait.
    Add(Vec<OpenCall>),
}

impl OpenCallsChange {
    /// Whether any call begins to wait.
    pub const fn has_any(&self) -> bool {
        match self {
            Self::Replace(calls) | Self::Add(calls) => !calls.is_empty(),
        }
    }
}

/// An append. What is absent stays as it is.
#[derive(Debug, Clone, PartialEq)]
pub struct Append {
    /// The tenant.
    pub team: TeamId,
    /// The session.
    pub session: SessionId,
    /// Fence of the caller's turn lease; 0 with `acquire`.
    pub fence: u64,
    /// Takes the turn lease in the same transaction, before anything else is checked.
    pub acquire: Option<LeaseRequest>,
    /// Whether the lease is given up with this append.
    pub release: bool,
    /// Number of the last message as the caller knows it.
    pub expected_seq: u64,
    /// The session's state as the caller read it; empty: any.
    pub expected_etag: String,
    /// Recognises a retry.
    pub request: RequestKey,
    /// What to append, in order.
    pub messages: Vec<NewMessage>,
    /// New state of the turn.
    pub turn: Option<TurnUpdate>,
    /// New counters.
    pub counters: Option<Counters>,
    /// New prefix state.
    pub prefix: Option<PrefixState>,
    /// Added to the session's sums.
    pub usage: Option<Usage>,
    /// Calls that wait for the client; a zero expiry means [`OPEN_CALL_TTL`] from now.
    pub open_calls: OpenCallsChange,
    /// A review that the turn made due.
    pub due_review: Option<NewDueReview>,
    /// New title.
    pub title: Option<String>,
    /// Learned artefacts that the session was shown.
    pub exposures: Vec<Exposure>,
}

impl Append {
    /// The turn that the append belongs to.
    pub fn turn_id(&self) -> Option<&str> {
        let update = self.turn.as_ref().map(|turn| turn.id.as_str());
        update.or_else(|| {
            self.messages
                .iter()
                .map(|message| message.turn.as_str())
                .find(|turn| !turn.is_empty())
        })
    }
}

/// The answer, kept beside the request id.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Appended {
    /// Number of the session's last message now.
    pub last_seq: u64,
    /// Resource name of the due review that was kept.
    pub due_review: Option<String>,
    /// Fence under which the append was made.
    #[serde(default)]
    pub fence: u64,
}

/// What a store found in the transaction.
#[derive(Debug, Clone)]
pub struct Found {
    /// The session.
    pub session: Session,
    /// The turn that the append belongs to, if it is known.
    pub turn: Option<Turn>,
    /// Another turn that the session still has open.
    pub other_open_turn: Option<Turn>,
}

/// What a store has to write.
#[derive(Debug, Clone)]
pub struct Effects {
    /// The session as it is to be.
    pub session: Session,
    /// New messages, numbered.
    pub messages: Vec<Message>,
    /// Turns as they are to be.
    pub turns: Vec<Turn>,
    /// A new row of the outbox.
    pub due_review: Option<DueReview>,
    /// The answer.
    pub appended: Appended,
}

/// Answers a retry. One that begins a turn needs its lease: it is taken or renewed as if it was asked for alone, since the
/// first holder may be gone by now. Whether `lease` has changed is whether it has to be written.
pub fn answer_again(first: Appended, append: &Append, lease: &mut Lease, now: Timestamp) -> Result<Appended, Error> {
    match &append.acquire {
        Some(acquire) if !append.release => {
            lease.acquire(acquire, now)?;
            Ok(Appended {
                fence: lease.fence,
                ..first
            })
        }
        Some(_) | None => Ok(first),
    }
}

/// Checks the append against what is stored and says what to write. Retries are recognised before, by the store.
pub fn decide(found: Found, append: Append, now: Timestamp) -> Result<Effects, Error> {
    let Found {
        mut session,
        turn,
        other_open_turn,
    } = found;
    match &append.acquire {
        Some(acquire) => {
            session.lease.acquire(acquire, now)?;
        }
        None => session.lease.check(append.fence)?,
    }
    let fence = session.lease.fence;
    if append.expected_seq != session.last_seq {
        return Err(Error::SequenceMismatch {
            expected: append.expected_seq,
            current: session.last_seq,
        });
    }
    check_etag(&append.expected_etag, &session)?;
    let turn_id = append.turn_id().map(str::to_owned);
    let first_new = session.last_seq + 1;
    let messages = number(append.messages, &mut session, turn_id.as_deref(), now);

    let mut turns = Vec::new();
    if let Some(turn) = move_turn(turn, append.turn, first_new, session.last_seq, now)? {
        if turn.state.is_open() {
            turns.extend(other_open_turn.map(|other| close_left_open(other, now)));
            session.open_turn = Some(turn.id.clone());
        } else if session.open_turn.as_deref() == Some(turn.id.as_str()) {
            session.open_turn = None;
        }
        turns.push(turn);
    }
    session.counters = append.counters.unwrap_or(session.counters);
    session.prefix = append.prefix.unwrap_or(session.prefix);
    session.title = append.title.unwrap_or(session.title);
    session.usage = session.usage.plus(append.usage.unwrap_or_default());
    session.exposures.extend(append.exposures);
    change_open_calls(&mut session.open_calls, append.open_calls, now)?;
    if !messages.is_empty() {
        session.last_active = now;
    }
    if append.release {
        session.lease.release(fence);
    }
    session.revision += 1;
    let due_review = append.due_review.and_then(|review| make_due(&session, review, now));
    let appended = Appended {
        last_seq: session.last_seq,
        due_review: due_review.as_ref().map(DueReview::name),
        fence,
    };
    Ok(Effects {
        session,
        messages,
        turns,
        due_review,
        appended,
    })
}

/// Nothing is built on a session that is not as the caller read it.
pub(crate) fn check_etag(expected: &str, session: &Session) -> Result<(), Error> {
    let current = session.etag();
    if expected.is_empty() || expected == current {
        return Ok(());
    }
    Err(Error::EtagMismatch {
        expected: expected.to_owned(),
        current,
    })
}

/// A review never makes a review due, and a session may be exempt (`T-5`, `R-5`). Dropping it here rather than refusing
/// the append keeps the person's answer safe.
fn make_due(session: &Session, review: NewDueReview, now: Timestamp) -> Option<DueReview> {
    let makes_due = !session.skip_review && !session.source.is_hidden() && !session.source.is_demoted();
    makes_due.then(|| DueReview {
        team: session.team.clone(),
        session: session.id.clone(),
        user: session.user.clone(),
        to_seq: session.last_seq,
        created: now,
        review,
    })
}

/// Numbers the messages and moves the session's end and lowest integrity with them. What was rewound counts on: the model
/// may have said something under its influence.
pub(crate) fn number(
    messages: Vec<NewMessage>,
    session: &mut Session,
    turn: Option<&str>,
    now: Timestamp,
) -> Vec<Message> {
    let mut numbered = Vec::with_capacity(messages.len());
    for mut body in messages {
        if body.turn.is_empty() {
            turn.unwrap_or_default().clone_into(&mut body.turn);
        }
        let own = body.own_integrity();
        session.lowest_integrity = session.lowest_integrity.min(own);
        let integrity = if body.role == Role::Assistant {
            session.lowest_integrity
        } else {
            own
        };
        session.last_seq += 1;
        let model = session.frozen.model.clone();
        let (seq, created) = (session.last_seq, now);
        numbered.push(Message {
            seq,
            body,
            model,
            integrity,
            rewound: false,
            compacted: false,
            replaces: None,
            created,
        });
    }
    numbered
}

fn move_turn(
    stored: Option<Turn>,
    update: Option<TurnUpdate>,
    first_new: u64,
    last_seq: u64,
    now: Timestamp,
) -> Result<Option<Turn>, Error> {
    let Some(update) = update else {
        return Ok(stored.map(|turn| Turn { last_seq, ..turn }));
    };
    if stored
        .as_ref()
        .is_some_and(|turn| !turn.state.is_open() && turn.state != update.state)
    {
        return Err(Error::field(
            "turn.state",
            "the turn has ended; its state cannot change any more",
        ));
    }
    let (first_seq, created) = stored
        .as_ref()
        .map_or((first_new, now), |turn| (turn.first_seq, turn.created));
    Ok(Some(Turn {
        id: update.id,
        state: update.state,
        first_seq,
        last_seq,
        iterations: update.iterations,
        segments: update.segments,
        error_reason: update.error_reason,
        error_message: update.error_message,
        created,
        ended: (!update.state.is_open()).then(|| stored.and_then(|turn| turn.ended).unwrap_or(now)),
    }))
}

/// At most one turn of a session is open: one that was left open when another begins was interrupted.
fn close_left_open(turn: Turn, now: Timestamp) -> Turn {
    Turn {
        state: crate::turn::TurnState::Interrupted,
        ended: Some(now),
        ..turn
    }
}

/// Results name a call by its id alone, so that no two that wait may have the same.
fn change_open_calls(open: &mut Vec<OpenCall>, change: OpenCallsChange, now: Timestamp) -> Result<(), Error> {
    let added = match change {
        OpenCallsChange::Replace(calls) => {
            open.clear();
            calls
        }
        OpenCallsChange::Add(calls) => calls,
    };
    for (at, call) in added.into_iter().enumerate() {
        if open.iter().any(|known| known.call.id == call.call.id) {
            return Err(Error::field(
                format!("open_calls[{at}].call.id"),
                "a call with this id waits already",
            ));
        }
        let unset = call.expires == Timestamp::default();
        open.push(OpenCall {
            expires: if unset { now.plus(OPEN_CALL_TTL) } else { call.expires },
            ..call
        });
    }
    Ok(())
}

impl Sessions {
    /// Appends under the caller's fence; the same request again returns the first answer (`T-9`).
    pub async fn append_messages(&self, append: Append) -> Result<Appended, Error> {
        self.check(&append)?;
        self.store.append(append, self.clock.now()).await
    }

    fn check(&self, append: &Append) -> Result<(), Error> {
        let mut violations = FieldViolations::new();
        check_request_id(&append.request.id, &mut violations);
        if append.messages.len() > MAX_MESSAGES {
            violations.add("messages", format!("must not be more than {MAX_MESSAGES}"));
        }
        if let Some(acquire) = &append.acquire {
            acquire.check("acquire_lease.", &mut violations);
            if append.fence != 0 {
                violations.add("fence", "is not given with acquire_lease");
            }
        }
        for (index, message) in append.messages.iter().enumerate() {
            message.check(&format!("messages[{index}]"), &mut violations);
        }
        if let Some(turn) = &append.turn
            && !(1..=MAX_REQUEST_ID).contains(&turn.id.chars().count())
        {
            violations.add("turn.id", format!("must have 1 to {MAX_REQUEST_ID} characters"));
        }
        if append
            .title
            .as_ref()
            .is_some_and(|title| title.chars().count() > MAX_TITLE)
        {
            violations.add("title", format!("must have at most {MAX_TITLE} characters"));
        }
        if append
            .due_review
            .as_ref()
            .is_some_and(|review| !review.memory && !review.skills)
        {
            violations.add("due_review", "must ask for memory, skills or both");
        }
        violations.into_result()?;
        let natives = append.messages.iter().filter_map(|message| message.native.as_ref());
        within(append.messages.iter().map(NewMessage::size), self.limits.message_bytes)?;
        within(natives.map(Native::size), MAX_NATIVE as u64)
    }
}

pub(crate) fn within(sizes: impl Iterator<Item = usize>, limit: u64) -> Result<(), Error> {
    let actual = sizes.max().unwrap_or(0) as u64;
    if actual > limit {
        return Err(Error::MessageTooLarge { limit, actual });
    }
    Ok(())
}

/// A request id, and with it the id of a turn, has 1 to this many characters.
const MAX_REQUEST_ID: usize = 128;

pub(crate) fn check_request_id(id: &str, violations: &mut FieldViolations) {
    if !(1..=MAX_REQUEST_ID).contains(&id.chars().count()) {
        violations.add("request_id", format!("must have 1 to {MAX_REQUEST_ID} characters"));
    }
}
