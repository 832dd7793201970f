//! Going on from a message of a session in a session of its own. The history up to there is taken along as it is, with its
//! times and labels, so that the requests of both begin alike; search shows the two as one conversation (`Q-5`).

use steward_base::names::{SessionId, TeamId};
use steward_base::{FieldViolations, Timestamp};

use crate::append_messages::{RequestKey, check_request_id};
use crate::create_session::MAX_TITLE;
use crate::error::Error;
use crate::lease::Lease;
use crate::message::{Message, Role};
use crate::session::{Counters, Lineage, LineageReason, PrefixState, Session, Usage};
use crate::sessions::Sessions;

/// A session to go on from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fork {
    /// The tenant.
    pub team: TeamId,
    /// The session to go on from.
    pub parent: SessionId,
    /// Id of the new session.
    pub id: SessionId,
    /// The last message that is taken along; 0: all.
    pub through: u64,
    /// Title; empty: that of the parent.
    pub title: String,
    /// Recognises a retry.
    pub request: RequestKey,
}

/// The new session and its messages, from the parent and what is in its context, in order.
pub fn decide(
    parent: &Session,
    context: Vec<Message>,
    fork: Fork,
    now: Timestamp,
) -> Result<(Session, Vec<Message>), Error> {
    let messages = taken_along(parent, context, fork.through)?;
    if has_unanswered(&messages) {
        return Err(Error::field("through_seq", "must not part a call from its result"));
    }
    let user_turns = messages
        .iter()
        .filter(|message| message.body.role == Role::User)
        .count();
    let session = Session {
        team: fork.team,
        id: fork.id,
        title: if fork.title.is_empty() {
            parent.title.clone()
        } else {
            fork.title
        },
        lineage: Some(Lineage {
            parent: parent.id.clone(),
            reason: LineageReason::Branch,
        }),
        counters: Counters {
            user_turns: u32::try_from(user_turns).unwrap_or(u32::MAX),
            ..Counters::default()
        },
        prefix: PrefixState::default(),
        usage: Usage::default(),
        last_seq: messages.len() as u64,
        open_calls: Vec::new(),
        open_turn: None,
        lease: Lease::default(),
        created: now,
        last_active: now,
        revision: 1,
        ..parent.clone()
    };
    Ok((session, messages))
}

/// Numbered anew without gaps. A summary is an ordinary message where what it replaces does not come along.
fn taken_along(parent: &Session, mut context: Vec<Message>, through: u64) -> Result<Vec<Message>, Error> {
    if through != 0 {
        let at = context.iter().position(|message| message.seq == through);
        let at = at.ok_or_else(|| Error::MessageNotFound {
            session: parent.name(),
            seq: through,
        })?;
        context.truncate(at + 1);
    }
    let numbered = (1..).zip(context).map(|(seq, message)| Message {
        seq,
        replaces: None,
        ..message
    });
    Ok(numbered.collect())
}

/// Whether a call among these messages has no result among them.
pub(crate) fn has_unanswered(messages: &[Message]) -> bool {
    let results = || messages.iter().filter_map(|message| message.body.result.as_ref());
    let mut calls = messages.iter().flat_map(|message| &message.body.tool_calls);
    calls.any(|call| !results().any(|result| result.call_id == call.id))
}

impl Sessions {
    /// Begins a session that goes on from a message of another; the same request again returns it (`T-9`).
    pub async fn fork_session(&self, fork: Fork) -> Result<Session, Error> {
        let mut violations = FieldViolations::new();
        check_request_id(&fork.request.id, &mut violations);
        if fork.title.chars().count() > MAX_TITLE {
            violations.add("title", format!("must have at most {MAX_TITLE} characters"));
        }
        violations.into_result()?;
        self.store.fork_session(fork, self.clock.now()).await
    }
}
