//! Reads one session from a message on.

use steward_base::names::SessionId;

use super::bounds::Budget;
use super::{Answer, Asker, MESSAGE_CHARS, Search};
use crate::error::Error;
use crate::store::{MessageRange, Taken, Visibility};

/// Messages fetched at a time, so that a page of large ones never stands in memory as a whole.
const BATCH: u32 = 8;

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
        let mut batch = MessageRange {
            from: read.from_seq,
            to: u64::MAX,
            visibility: if is_current {
                Visibility::OutOfContext
            } else {
                Visibility::Searchable
            },
            roles: Vec::new(),
            taken: Taken::First,
            limit: BATCH,
        };
        let mut budget = Budget::new();
        let mut answer = Answer::default();
        'page: loop {
            let messages = self.store.messages(&asker.team, &session.id, &batch).await?;
            for message in &messages {
                if answer.messages.len() == read.limit as usize || budget.is_spent() {
                    answer.next_seq = message.seq;
                    break 'page;
                }
                answer.messages.push(budget.show(message, MESSAGE_CHARS));
                batch.from = message.seq.saturating_add(1);
            }
            if messages.len() < BATCH as usize {
                break;
            }
        }
        if is_current && answer.messages.is_empty() {
            return Err(Error::InContext {
                session: session.name(),
            });
        }
        answer.truncated = budget.is_truncated();
        Ok(answer)
    }
}
