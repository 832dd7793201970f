//! What is read to show a conversation that was found: the messages around its hit and those at its ends, in one look.

use std::ops::RangeInclusive;

use steward_base::names::SessionId;

use crate::message::Message;
use crate::session::Session;
use crate::store::Visibility;

/// What to read of one session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Look {
    /// The session.
    pub session: SessionId,
    /// Which messages.
    pub visibility: Visibility,
    /// The message that was found, whose text is read whole.
    pub hit: u64,
    /// The numbers around it.
    pub around: RangeInclusive<u64>,
    /// How many messages of each end.
    pub ends: u32,
    /// Characters of text that are read of each message but the hit.
    pub chars: u32,
}

/// What was read: each message once, in ascending order.
#[derive(Debug, Clone, PartialEq)]
pub struct Surroundings {
    /// The session, without what its requests begin with.
    pub session: Session,
    /// The messages.
    pub messages: Vec<Glimpse>,
}

/// A message whose text may be cut.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Glimpse {
    /// The message.
    pub message: Message,
    /// Characters of its whole text.
    pub text_chars: u64,
}

impl Glimpse {
    /// All of a message, or the first `chars` of its text.
    pub fn of(mut message: Message, chars: Option<u32>) -> Self {
        let text_chars = message.body.text.chars().count() as u64;
        let cut = chars.and_then(|chars| message.body.text.char_indices().nth(chars as usize));
        if let Some((at, _)) = cut {
            message.body.text.truncate(at);
        }
        Self { message, text_chars }
    }
}
