//! What a session keeps for its provider beside the neutral conversation: the exact blocks of assistant messages, and where
//! the stable part of the system prompt ends.
//!
//! The conversation itself stays neutral on purpose. Opaque blocks are of use to the provider that made them and to nobody
//! else; kept apart, they reach no review, no digest and no other vendor by accident, and taking a message out of the
//! conversation takes its blocks out too.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// An assistant message in the form in which its provider wants it back, reasoning and signatures included. Only there when
/// the neutral message would not give the same bytes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NativeBlocks {
    /// Who can read the blocks: the `vendor` of the provider that received them.
    pub provider: String,
    /// The model that wrote them, as it was asked for.
    pub model: String,
    /// A JSON array of content blocks. Stored and sent as this very text.
    pub blocks: String,
}

/// What goes with a request beside the conversation. The default is right for a provider that needs nothing of it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Continuation {
    /// Length in bytes of the stable tier at the beginning of the system prompt (`P-1`, `P-5`). It is as fixed as the system
    /// prompt itself. Ignored when it is not inside the prompt or cuts a character.
    pub stable_len: Option<usize>,
    /// Native blocks by the position of their assistant message in the request. Blocks of another provider or of another
    /// model, and blocks that do not say what the message says, are left out of the request.
    pub natives: BTreeMap<usize, NativeBlocks>,
}

impl Continuation {
    /// The blocks of the message at `index`, if `model` of `provider` wrote them.
    pub(crate) fn blocks_for(&self, index: usize, provider: &str, model: &str) -> Option<&str> {
        let native = self.natives.get(&index)?;
        (native.provider == provider && native.model == model).then_some(native.blocks.as_str())
    }
}
