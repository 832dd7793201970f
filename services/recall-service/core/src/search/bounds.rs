//! Keeps answers small: each message is cut to a number of characters, the whole to a number of bytes, and the true
//! length of what was cut is always said.

use super::{ANSWER_BYTES, Glimpse, RecalledMessage};
use crate::message::Message;

/// Longest name of a tool that is shown, in characters.
const TOOL_CHARS: usize = 64;
/// Most tools that are named beside one message.
const MAX_TOOLS: usize = 32;

/// What is left of an answer's bound.
#[derive(Debug)]
pub(super) struct Budget {
    left: usize,
    truncated: bool,
}

impl Budget {
    pub(super) fn new() -> Self {
        Self {
            left: ANSWER_BYTES,
            truncated: false,
        }
    }

    /// Whether the whole answer was cut.
    pub(super) fn is_truncated(&self) -> bool {
        self.truncated
    }

    /// Whether there is no room for another text.
    pub(super) fn is_spent(&self) -> bool {
        self.left == 0
    }

    /// What was seen of messages, each cut alike.
    pub(super) fn show_glimpses<'a>(
        &mut self,
        glimpses: impl IntoIterator<Item = &'a Glimpse>,
        chars: usize,
    ) -> Vec<RecalledMessage> {
        let each = glimpses.into_iter().map(|glimpse| RecalledMessage {
            text_chars: glimpse.text_chars,
            ..self.show(&glimpse.message, chars)
        });
        each.collect()
    }

    /// The message, with at most `chars` characters of text and no more than what is left.
    pub(super) fn show(&mut self, message: &Message, chars: usize) -> RecalledMessage {
        let whole = &message.body.text;
        let by_chars = whole.char_indices().nth(chars).map_or(whole.len(), |(at, _)| at);
        let end = if by_chars > self.left {
            whole.floor_char_boundary(self.left)
        } else {
            by_chars
        };
        if end < by_chars {
            self.truncated = true;
            self.left = 0;
        } else {
            self.left -= end;
        }
        RecalledMessage {
            seq: message.seq,
            role: message.body.role,
            text: whole[..end].to_owned(),
            text_chars: whole.chars().count() as u64,
            tools: message
                .tools()
                .take(MAX_TOOLS)
                .map(|name| name.chars().take(TOOL_CHARS).collect())
                .collect(),
            created: message.created,
            integrity: message.integrity,
        }
    }

    /// All of them, each cut alike.
    pub(super) fn show_all(&mut self, messages: &[Message], chars: usize) -> Vec<RecalledMessage> {
        messages.iter().map(|message| self.show(message, chars)).collect()
    }
}
