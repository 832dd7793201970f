//! Reads one session from a message on.

use steward_base::names::SessionId;

use super::bounds::Budget;
use super::{Answer, Asker, MESSAGE_CHARS, Search};
use crate::error::Error;
use crate::store::{MessageRange, Taken, Visibility};

/// Which part of which session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Read {
    /// The session.
    pub session: SessionId,
    /// First number; 0 means the first message.
    pub from_seq: u64,
    /// At most this many messages.
    pub limit: u32,
}

impl Search {
    /// Reads messages in order. Of the current session only what compression took out of the context can be read
    /// (`Q-5`).
    pub async fn read(&self, asker: &Asker, read: &Read) -> Result<Answer, Error> {
        let session = self.readable(asker, &read.session).await?;
        let is_current = asker.current.as_ref() == Some(&session.id);
        let range = MessageRange {
            from: read.from_seq,
            to: u64::MAX,
            visibility: Visibility::Searchable,
            roles: Vec::new(),
            taken: Taken::First,
            limit: read.limit.saturating_add(1),
        };
        let mut messages = self.store.messages(&asker.team, &session.id, &range).await?;
        if is_current {
            messages.retain(|message| message.compacted);
            if messages.is_empty() {
                return Err(Error::InContext {
                    session: session.name(),
                });
            }
        }
        let mut budget = Budget::new();
        let mut answer = Answer::default();
        for message in &messages {
            if answer.messages.len() == read.limit as usize || budget.is_spent() {
                answer.next_seq = message.seq;
                break;
            }
            answer.messages.push(budget.show(message, MESSAGE_CHARS));
        }
        answer.truncated = budget.is_truncated();
        Ok(answer)
    }
}
