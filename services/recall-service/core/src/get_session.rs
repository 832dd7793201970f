//! Reading a session, with one of its turns and its first page of messages, all as they were at one moment.

use std::ops::ControlFlow;

use steward_base::names::{SessionId, TeamId};

use crate::error::Error;
use crate::message::Message;
use crate::session::Session;
use crate::sessions::{Sessions, not_found};
use crate::store::MessageRange;
use crate::turn::Turn;

/// A page of messages ends when it has this many bytes.
pub const PAGE_BYTES: usize = 8 * 1024 * 1024;
/// What to read with a session.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SessionRead {
    /// Id of a turn; empty: none.
    pub turn: String,
    /// Which messages; `None`: none.
    pub messages: Option<MessageRange>,
}

/// A session and what was asked for with it.
#[derive(Debug, Clone, PartialEq)]
pub struct SessionView {
    /// The session.
    pub session: Session,
    /// The turn, if the session has it.
    pub turn: Option<Turn>,
    /// The messages.
    pub messages: MessagePage,
}

/// A page of messages: as many as were asked for, or [`PAGE_BYTES`] of them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct MessagePage {
    /// In order.
    pub messages: Vec<Message>,
    /// Number to go on from; `None` at the end.
    pub next: Option<u64>,
    bytes: usize,
}

impl MessagePage {
    /// Bytes of its messages.
    pub const fn bytes(&self) -> usize {
        self.bytes
    }

    /// Takes the next message of `range`, unless the page is full: then another one begins with it.
    pub fn offer(&mut self, range: &MessageRange, message: Message) -> ControlFlow<()> {
        if self.messages.len() >= range.limit as usize || self.bytes >= PAGE_BYTES {
            self.next = Some(range.position(&message));
            return ControlFlow::Break(());
        }
        self.bytes += message.body.whole_size();
        self.messages.push(message);
        ControlFlow::Continue(())
    }
}

impl Sessions {
    /// The session.
    pub async fn get_session(&self, team: &TeamId, session: &SessionId) -> Result<Session, Error> {
        self.store
            .session(team, session)
            .await?
            .ok_or_else(|| not_found(team, session))
    }

    /// The session with what is asked for.
    pub async fn view_session(
        &self,
        team: &TeamId,
        session: &SessionId,
        read: &SessionRead,
    ) -> Result<SessionView, Error> {
        let view = self.store.view(team, session, read).await?;
        view.ok_or_else(|| not_found(team, session))
    }
}
