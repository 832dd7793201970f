//! What the provider wants back of its own answers, kept beside the conversation (`P-4`): the loop and everything else that
//! reads messages knows nothing of it.

use std::collections::BTreeMap;

use steward_model::NativeBlocks;
use steward_orchestrator_core::session::{Message, Native};

/// The native forms of a session's assistant messages.
#[derive(Debug, Default)]
pub(super) struct Natives {
    /// By the position of their message in the request.
    known: BTreeMap<usize, NativeBlocks>,
    /// That of the last answer, until it is stored with its message.
    answer: Option<NativeBlocks>,
}

impl Natives {
    /// What is stored with a history.
    pub(super) fn of(history: &[Message]) -> Self {
        let stored = history.iter().enumerate().filter_map(|(position, message)| {
            let native = message.body.native.as_ref()?;
            Some((position, as_blocks(native)))
        });
        Self {
            known: stored.collect(),
            answer: None,
        }
    }

    /// A request with `length` messages is made: its answer will stand behind them. What an answer was that came to nothing
    /// (an empty one is asked for again) is forgotten.
    pub(super) fn for_request(&mut self, length: usize) -> BTreeMap<usize, NativeBlocks> {
        self.answer = None;
        self.known.split_off(&length);
        self.known.clone()
    }

    /// The answer to a request with `length` messages is there.
    pub(super) fn answered(&mut self, length: usize, native: Option<NativeBlocks>) {
        if let Some(native) = &native {
            self.known.insert(length, native.clone());
        }
        self.answer = native;
    }

    /// The native form of the last answer, to be stored with its message.
    pub(super) fn take_answer(&mut self) -> Option<Native> {
        let NativeBlocks {
            provider,
            model,
            blocks,
        } = self.answer.take()?;
        Some(Native {
            provider,
            model,
            blocks,
        })
    }
}

fn as_blocks(native: &Native) -> NativeBlocks {
    let Native {
        provider,
        model,
        blocks,
    } = native.clone();
    NativeBlocks {
        provider,
        model,
        blocks,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn native(blocks: &str) -> NativeBlocks {
        NativeBlocks {
            provider: "anthropic".to_owned(),
            model: "m".to_owned(),
            blocks: blocks.to_owned(),
        }
    }

    #[test]
    fn an_answer_that_came_to_nothing_leaves_nothing() {
        let mut natives = Natives::default();
        natives.answered(1, Some(native("[1]")));
        assert_eq!(natives.take_answer().unwrap().blocks, "[1]");
        assert!(natives.take_answer().is_none(), "it is stored once");
        assert_eq!(natives.for_request(3).len(), 1);
        natives.answered(3, Some(native("[3]")));
        assert_eq!(natives.for_request(3).into_keys().collect::<Vec<_>>(), [1]);
        assert!(natives.take_answer().is_none());
    }
}
