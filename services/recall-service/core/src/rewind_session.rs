//! Taking back the end of a session. What is cut is kept and marked, so that numbers stay gapless and a review sees what
//! it looks back at; nobody else does (`Q-9`).

use steward_base::names::{SessionId, TeamId};
use steward_base::{FieldViolations, Timestamp};

use crate::append_messages::{RequestKey, check_etag, check_request_id};
use crate::error::Error;
use crate::message::{Message, Role};
use crate::session::Session;
use crate::sessions::Sessions;
use crate::update_session::check_idle;

/// Reason of the planned break (`P-3`).
const REASON: &str = "rewind";

/// A cut.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rewind {
    /// The tenant.
    pub team: TeamId,
    /// The session.
    pub session: SessionId,
    /// The last message that stays; 0 for none.
    pub to: u64,
    /// The state that the caller read; empty: any.
    pub etag: String,
    /// Recognises a retry.
    pub request: RequestKey,
}

/// The session as it is to be. `first_cut` is the first message behind the cut that is not taken back already; without one
/// nothing changes. Retries are recognised before, by the store.
pub fn decide(
    mut session: Session,
    rewind: &Rewind,
    first_cut: Option<&Message>,
    now: Timestamp,
) -> Result<Session, Error> {
    check_idle(&session, now)?;
    check_etag(&rewind.etag, &session)?;
    if rewind.to > session.last_seq {
        return Err(Error::field("to_seq", "is past the end of the session"));
    }
    let Some(first_cut) = first_cut else {
        return Ok(session);
    };
    if first_cut.body.role != Role::User {
        return Err(Error::field(
            "to_seq",
            "must be followed by a message of the person: a turn is taken back whole",
        ));
    }
    session.prefix = session.prefix.begun_anew(REASON);
    // Of a process that is gone, in the part that is cut: there is nothing to resume.
    session.open_turn = None;
    session.revision += 1;
    Ok(session)
}

/// Whether a message that compression took out of the context is back in it: a summary that covered it is cut, and none
/// that stays does. `messages` are all of the session, as they were before the cut.
pub fn is_restored(message: &Message, to: u64, messages: &[Message]) -> bool {
    let covers = |summary: &Message| {
        summary
            .replaces
            .is_some_and(|replaced| replaced.covers(message.place()))
    };
    let is_cut = |summary: &&Message| summary.seq > to && covers(summary);
    let stays =
        |summary: &&Message| summary.seq <= to && summary.seq > message.seq && !summary.rewound && covers(summary);
    message.compacted
        && message.seq <= to
        && messages.iter().any(|summary| is_cut(&summary))
        && !messages.iter().any(|summary| stays(&summary))
}

impl Sessions {
    /// Takes back what was said after a message; the same request again returns the session (`T-9`).
    pub async fn rewind_session(&self, rewind: Rewind) -> Result<Session, Error> {
        let mut violations = FieldViolations::new();
        check_request_id(&rewind.request.id, &mut violations);
        violations.into_result()?;
        self.store.rewind_session(rewind, self.clock.now()).await
    }
}
