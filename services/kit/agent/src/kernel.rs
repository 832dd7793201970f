//! The loop: ask the model, run what it calls, ask again, until it is done or something stops it (`T-1`).
//!
//! The kernel knows no store, no transport and no tool. It works through ports and keeps three promises. A message with
//! calls is durable before any of its calls runs. Every call gets exactly one result, in the model's order, whatever
//! happens (`T-11`). And a run that was cut off anywhere can be started again from the stored history: calls without results
//! are dispatched first, with the same keys as before, so that a store that has seen a key does nothing twice (`T-9`).
//!
//! The orchestrator runs it with all tools, the review with a narrower dispatch table; it is the same loop.

mod arguments;
mod dispatching;
mod outcome;
mod pairing;
mod ports;
mod run;
mod table;

pub use outcome::{Budget, Conversation, Ended, KernelError, Outcome, PortError, Progress, Settings, Spent};
pub use pairing::{Orphans, close_open_calls, open_calls, pairing};
pub use ports::{
    AnswerEnd, CallRequest, CallingMessage, DeltaSink, Dispatch, Dispatched, Event, Events, FinalMessage, ModelPort,
    Ports, ProviderPort, ResultKind, Steering, StepRef, ToolOutput, ToolResult, Transcript,
};
pub use run::run;

/// Rough size in tokens of text that no tokenizer has seen: four ASCII characters to a token, one of any other script.
pub fn estimate_tokens(text: &str) -> u64 {
    let ascii = text.bytes().filter(u8::is_ascii).count() as u64;
    let other = text.chars().filter(|character| !character.is_ascii()).count() as u64;
    ascii.div_ceil(4) + other
}

#[cfg(test)]
mod tests;
