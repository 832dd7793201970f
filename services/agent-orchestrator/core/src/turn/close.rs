//! Closing what a turn leaves open: every call gets exactly one result, also when nobody will ever run it (`T-8`,
//! `T-11`).

use steward_base::{Integrity, Span, SpanOrigin};

use crate::session::{Message, NewMessage, Said, ToolCall, TurnState};

/// Why a turn is closed from outside.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Closing {
    /// The person wrote something new instead of running the calls.
    NewMessage,
    /// The person stopped the turn.
    Stopped,
    /// The client did not answer in time.
    Expired,
    /// The process that ran the turn is gone.
    Lost,
}

impl Closing {
    /// What the turn becomes.
    pub const fn state(self) -> TurnState {
        match self {
            Self::Expired => TurnState::Expired,
            Self::NewMessage | Self::Stopped | Self::Lost => TurnState::Interrupted,
        }
    }

    /// What the model reads in place of a result.
    const fn words(self) -> &'static str {
        match self {
            Self::NewMessage => "Cancelled: the person went on with another message before this call was run.",
            Self::Stopped => "Cancelled: the person stopped the turn. This call was not run to its end.",
            Self::Expired => "Cancelled: nobody ran this call in time.",
            Self::Lost => "Interrupted: the service stopped while this call was under way. Its outcome is unknown.",
        }
    }
}

/// The calls at the end of a history that have no result, in the model's order.
pub fn unanswered(history: &[Message]) -> Vec<ToolCall> {
    let mut answered = Vec::new();
    for message in history.iter().rev() {
        match &message.body.said {
            Said::Tool { call_id, .. } => answered.push(call_id.as_str()),
            Said::Assistant { calls } => {
                let open = calls.iter().filter(|call| !answered.contains(&call.id.as_str()));
                return open.cloned().collect();
            }
            Said::User => return Vec::new(),
        }
    }
    Vec::new()
}

/// A result for each call that nobody will run, in the model's order.
pub fn closing_results(calls: &[ToolCall], closing: Closing, turn: &str) -> Vec<NewMessage> {
    let result = |call: &ToolCall| {
        let text = closing.words().to_owned();
        let end = u32::try_from(text.len()).unwrap_or(u32::MAX);
        NewMessage {
            said: Said::Tool {
                call_id: call.id.clone(),
                tool: call.name.clone(),
                is_error: true,
            },
            text,
            sent_text: None,
            spans: vec![Span {
                start: 0,
                end,
                origin: SpanOrigin::System,
                integrity: Integrity::Workspace,
            }],
            usage: None,
            turn: turn.to_owned(),
            native: None,
        }
    };
    calls.iter().map(result).collect()
}

/// Position of the turn's first message in the history; its length when the turn has none.
pub fn turn_start(history: &[Message], turn: &str) -> usize {
    history
        .iter()
        .position(|message| message.body.turn == turn)
        .unwrap_or(history.len())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::turn::replay::tests::{calling, result, said};

    #[test]
    fn only_the_last_answer_can_have_open_calls() {
        let history = [said(1, "x"), calling(2, &["a", "b", "c"]), result(3, "b")];
        let open = unanswered(&history);
        assert_eq!(open.iter().map(|call| call.id.as_str()).collect::<Vec<_>>(), ["a", "c"]);
        assert!(unanswered(&history[..1]).is_empty());
        assert!(unanswered(&[calling(1, &["a"]), result(2, "a"), said(3, "y")]).is_empty());
    }

    #[test]
    fn every_open_call_gets_one_result_that_says_why() {
        let open = unanswered(&[calling(1, &["a", "b"])]);
        for (closing, state) in [
            (Closing::NewMessage, TurnState::Interrupted),
            (Closing::Stopped, TurnState::Interrupted),
            (Closing::Expired, TurnState::Expired),
            (Closing::Lost, TurnState::Interrupted),
        ] {
            let results = closing_results(&open, closing, "t1");
            assert_eq!(results.len(), 2);
            assert!(
                results
                    .iter()
                    .all(|one| one.turn == "t1" && one.text == closing.words())
            );
            assert_eq!(closing.state(), state);
        }
    }
}
