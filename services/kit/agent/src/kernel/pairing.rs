//! Calls and results belong together (`T-11`). Pure judgements over a history.

use std::collections::BTreeSet;

use steward_model::{Message, ToolCall};

use super::ports::{ResultKind, ToolResult};

/// What stands alone in a history.
#[derive(Debug, Clone, PartialEq, Eq, Default, thiserror::Error)]
#[error("calls without a result: [{}]; results without a call: [{}]", calls.join(", "), results.join(", "))]
pub struct Orphans {
    /// Ids of calls without a result right after their message.
    pub calls: Vec<String>,
    /// Ids of results without a call right before, or with a second result for the same call.
    pub results: Vec<String>,
}

/// Whether each call is answered exactly once, directly after the message that made it, and nothing else answers.
///
/// # Errors
/// All orphans of the history.
pub fn pairing(history: &[Message]) -> Result<(), Orphans> {
    let mut orphans = Orphans::default();
    let mut open: Vec<&str> = Vec::new();
    for message in history {
        match message {
            Message::Tool { call_id, .. } => match open.iter().position(|id| id == call_id) {
                Some(at) => {
                    open.remove(at);
                }
                None => orphans.results.push(call_id.clone()),
            },
            Message::User { .. } => orphans.calls.extend(open.drain(..).map(str::to_owned)),
            Message::Assistant { tool_calls, .. } => {
                orphans.calls.extend(open.drain(..).map(str::to_owned));
                open = tool_calls.iter().map(|call| call.id.as_str()).collect();
            }
        }
    }
    orphans.calls.extend(open.drain(..).map(str::to_owned));
    if orphans == Orphans::default() {
        Ok(())
    } else {
        Err(orphans)
    }
}

/// The calls at the end of a history that have no result yet, with their positions in their message.
pub fn open_calls(history: &[Message]) -> Vec<(usize, ToolCall)> {
    let mut answered = BTreeSet::new();
    for message in history.iter().rev() {
        match message {
            Message::Tool { call_id, .. } => {
                answered.insert(call_id.as_str());
            }
            Message::Assistant { tool_calls, .. } => {
                let open = tool_calls
                    .iter()
                    .enumerate()
                    .filter(|(_, call)| !answered.contains(call.id.as_str()));
                return open.map(|(index, call)| (index, call.clone())).collect();
            }
            Message::User { .. } => return Vec::new(),
        }
    }
    Vec::new()
}

/// Results that close every open call at the end of a history without running it (`T-8`); `why` tells the model.
pub fn close_open_calls(history: &[Message], why: &str) -> Vec<ToolResult> {
    open_calls(history)
        .iter()
        .map(|(_, call)| ToolResult::ours(call, ResultKind::Cancelled, why))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn calling(ids: &[&str]) -> Message {
        let call = |id: &&str| ToolCall {
            id: (*id).to_owned(),
            name: "t".to_owned(),
            arguments: "{}".to_owned(),
        };
        Message::Assistant {
            content: String::new(),
            tool_calls: ids.iter().map(call).collect(),
        }
    }

    fn result(id: &str) -> Message {
        Message::Tool {
            call_id: id.to_owned(),
            name: "t".to_owned(),
            content: "ok".to_owned(),
        }
    }

    #[test]
    fn a_paired_history_passes_and_orphans_are_named() {
        let good = [
            Message::user("x"),
            calling(&["a", "b"]),
            result("a"),
            result("b"),
            Message::assistant("done"),
        ];
        assert_eq!(pairing(&good), Ok(()));
        let bad = [
            calling(&["a", "b"]),
            result("a"),
            result("a"),
            Message::user("y"),
            result("z"),
            calling(&["c"]),
        ];
        let orphans = pairing(&bad).expect_err("orphans");
        assert_eq!(orphans.calls, ["b", "c"]);
        assert_eq!(orphans.results, ["a", "z"]);
        assert_eq!(
            orphans.to_string(),
            "calls without a result: [b, c]; results without a call: [a, z]"
        );
    }

    #[test]
    fn open_calls_are_those_at_the_end_only() {
        let history = [Message::user("x"), calling(&["a", "b", "c"]), result("b")];
        let open: Vec<(usize, String)> = open_calls(&history)
            .into_iter()
            .map(|(at, call)| (at, call.id))
            .collect();
        assert_eq!(open, [(0, "a".to_owned()), (2, "c".to_owned())]);
        assert_eq!(close_open_calls(&history, "expired").len(), 2);
        assert!(open_calls(&[calling(&["a"]), result("a"), Message::user("y")]).is_empty());
    }
}
