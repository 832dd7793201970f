//! What the assemblers of all protocols share: limits on what a server may send, and call ids that can be relied upon.

use std::collections::HashSet;

use crate::error::ModelError;
use crate::message::{Message, ModelRequest};
use crate::provider::Delta;
use crate::sse::SseEvent;

pub(crate) const TEXT_LIMIT: usize = 8 << 20;
pub(crate) const ARGUMENTS_LIMIT: usize = 1 << 20;
pub(crate) const CALLS_LIMIT: usize = 64;

/// From the events of one answer to deltas.
pub(crate) trait Assemble: Send + 'static {
    /// Takes one event and appends what follows from it to `out`.
    fn event(&mut self, event: &SseEvent, out: &mut Vec<Delta>) -> Result<(), ModelError>;

    /// Whether the server said that nothing more comes.
    fn is_done(&self) -> bool;

    /// Whether the answer itself is complete, details perhaps missing.
    fn has_finish(&self) -> bool;

    /// Ends the answer: all calls, then the finish.
    fn finish(self) -> Result<Vec<Delta>, ModelError>;

    /// Takes an answer that came as one document.
    fn whole(self, document: &[u8]) -> Result<Vec<Delta>, ModelError>;
}

/// Makes ids that are not empty and not used before in the conversation, whatever the server sends.
pub(crate) struct CallIds {
    taken: HashSet<String>,
    ordinal: usize,
}

impl CallIds {
    /// Ids for the answer to `request`; missing ones are made from the number of its messages.
    pub(crate) fn of(request: &ModelRequest) -> Self {
        let mut taken = HashSet::new();
        for message in &request.messages {
            if let Message::Assistant { tool_calls, .. } = message {
                taken.extend(tool_calls.iter().map(|call| call.id.clone()));
            }
        }
        Self::new(taken, request.messages.len())
    }

    pub(crate) fn new(taken: HashSet<String>, ordinal: usize) -> Self {
        Self { taken, ordinal }
    }

    /// The id of the call at `position`: `given` if it can be.
    pub(crate) fn unused(&mut self, given: &str, position: usize) -> String {
        let base = if given.is_empty() {
            format!("call_{}_{position}", self.ordinal)
        } else {
            given.to_owned()
        };
        let mut id = base.clone();
        let mut suffix = self.ordinal;
        while !self.taken.insert(id.clone()) {
            id = format!("{base}_{suffix}");
            suffix += 1;
        }
        id
    }
}

/// Adds `more` bytes to a count with a limit.
pub(crate) fn grow(len: &mut usize, more: usize, what: &'static str, limit: usize) -> Result<(), ModelError> {
    *len += more;
    if *len > limit {
        return Err(ModelError::TooLarge { what, limit });
    }
    Ok(())
}

pub(crate) fn unreadable(what: &str) -> ModelError {
    ModelError::Unreadable { what: what.to_owned() }
}
