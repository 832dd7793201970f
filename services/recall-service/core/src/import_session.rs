//! Taking in a session that was handed out here or elsewhere, with everything in it as it was.
//!
//! Whoever imports says how far its words may be trusted; nobody says of words that they are the operator's.

use steward_base::names::{SessionId, TeamId};
use steward_base::{FieldViolations, Integrity};

use crate::append_messages::within;
use crate::create_session::MAX_TITLE;
use crate::error::Error;
use crate::message::{MAX_NATIVE, Message, Native, NewMessage};
use crate::session::Session;
use crate::sessions::Sessions;
use crate::turn::Turn;

/// A session with everything that belongs to it.
#[derive(Debug, Clone, PartialEq)]
pub struct WholeSession {
    /// The session.
    pub session: Session,
    /// Its turns, by their first messages.
    pub turns: Vec<Turn>,
    /// All its messages, in order.
    pub messages: Vec<Message>,
}

impl WholeSession {
    /// Records everything that cannot be.
    pub fn check(&self) -> FieldViolations {
        let mut violations = FieldViolations::new();
        let session = &self.session;
        if session.source.is_hidden() {
            violations.add("source", "must be chat, schedule or import");
        }
        if session.title.chars().count() > MAX_TITLE {
            violations.add("title", format!("must have at most {MAX_TITLE} characters"));
        }
        session.frozen.check(&mut violations);
        if session.last_seq != self.messages.len() as u64 {
            violations.add("messages", "must be as many as the last number says");
        }
        for (at, message) in self.messages.iter().enumerate() {
            let field = format!("messages[{at}]");
            if message.seq != at as u64 + 1 {
                violations.add(format!("{field}.seq"), "must follow the one before, from 1");
            }
            if message.body.spans.iter().any(|span| span.integrity > Integrity::Person) {
                violations.add(format!("{field}.spans"), "must not claim to be the operator's words");
            }
            if let Some(replaced) = message.replaces
                && (replaced.from == 0 || replaced.to < replaced.from || replaced.to >= message.seq)
            {
                violations.add(format!("{field}.replaces"), "must be messages before it");
            }
            message.body.check(&field, &mut violations);
        }
        let is_open = |id: &String| self.turns.iter().any(|turn| turn.id == *id && turn.state.is_open());
        if session.open_turn.as_ref().is_some_and(|open| !is_open(open)) {
            violations.add("open_turn", "must be one of the turns, and open");
        }
        violations
    }
}

impl Sessions {
    /// Takes the session in, unless it is there; whether it was taken in. One that was deleted is there again.
    pub async fn import_session(&self, whole: WholeSession) -> Result<bool, Error> {
        whole.check().into_result()?;
        let bodies = || whole.messages.iter().map(|message| &message.body);
        within(bodies().map(NewMessage::size), self.limits.message_bytes)?;
        within(
            bodies().filter_map(|body| body.native.as_ref()).map(Native::size),
            MAX_NATIVE as u64,
        )?;
        self.store.import_session(whole).await
    }

    /// Turns of a session, by their first messages.
    pub async fn turns(&self, team: &TeamId, session: &SessionId) -> Result<Vec<Turn>, Error> {
        self.store.turns(team, session).await
    }

    /// Why searches of the team may miss messages that are stored; `None` when they do not.
    pub fn index_trouble(&self, team: &TeamId) -> Option<String> {
        self.store.index_trouble(team)
    }
}
