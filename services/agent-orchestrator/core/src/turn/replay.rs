//! The events of a turn whose process is gone, as far as its stored messages show them (`T-8`, `T-9`).

use super::event::{Completed, Event, PendingCall, PrefixReport};
use crate::session::{ClientTool, Message, Said, Session, Turn, TurnState, Usage};

/// What the store tells of a turn.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Replayed {
    /// The events, numbered by their position from 1.
    pub events: Vec<Event>,
    /// Position of the first event of each segment.
    pub segments: Vec<usize>,
}

/// Rebuilds the events of `turn` from the session's history. Text comes in one piece; a turn that ran when its process was
/// lost has no end.
pub fn replay(session: &Session, turn: &Turn, history: &[Message]) -> Replayed {
    let mut replayed = Replayed {
        events: Vec::new(),
        segments: Vec::new(),
    };
    let own: Vec<&Message> = history.iter().filter(|message| message.body.turn == turn.id).collect();
    let is_client = |tool: &str| {
        session
            .client_tools
            .iter()
            .any(|client: &ClientTool| client.name == tool)
    };
    let mut usage = Usage::default();
    let mut said_by_person = false;
    let mut results_of_client = false;
    for message in &own {
        match &message.body.said {
            Said::User if !said_by_person => {
                said_by_person = true;
                replayed.begin_segment();
            }
            Said::User => replayed.events.push(Event::Steered(message.body.text.clone())),
            Said::Assistant { calls } => {
                results_of_client = false;
                usage = usage.plus(message.body.usage.unwrap_or_default());
                if !message.body.text.is_empty() {
                    replayed.events.push(Event::Text(message.body.text.clone()));
                }
                let started = calls
                    .iter()
                    .filter(|call| !is_client(&call.name))
                    .map(|call| Event::ToolStarted {
                        call_id: call.id.clone(),
                        tool: call.name.clone(),
                    });
                replayed.events.extend(started);
            }
            Said::Tool { tool, .. } if is_client(tool) => {
                if !results_of_client {
                    results_of_client = true;
                    replayed.begin_segment();
                }
            }
            Said::Tool {
                call_id,
                tool,
                is_error,
            } => replayed.events.push(Event::ToolFinished {
                call_id: call_id.clone(),
                tool: tool.clone(),
                is_error: *is_error,
                summary: String::new(),
            }),
        }
    }
    replayed.events.extend(end(session, turn, own.last().copied(), usage));
    replayed
}

impl Replayed {
    fn begin_segment(&mut self) {
        self.segments.push(self.events.len());
        let segment = u32::try_from(self.segments.len()).unwrap_or(u32::MAX);
        self.events.push(Event::Started { segment });
    }
}

fn end(session: &Session, turn: &Turn, last: Option<&Message>, usage: Usage) -> Option<Event> {
    let last_text = || last.map(|message| message.body.text.clone()).unwrap_or_default();
    Some(match turn.state {
        TurnState::Running => return None,
        TurnState::RequiresAction => {
            let own = session.open_calls.iter().filter(|open| open.turn == turn.id);
            Event::RequiresAction(own.map(PendingCall::from).collect())
        }
        TurnState::Completed => Event::Completed(Box::new(Completed {
            text: last_text(),
            seq: turn.last_seq,
            iterations: turn.iterations,
            usage,
            review_due: (false, false),
            prefix: PrefixReport::from(&session.prefix),
            // Prices are the model's, and known where turns run.
            cost: None,
        })),
        TurnState::Failed => Event::Failed {
            reason: turn.error_reason.clone(),
            message: turn.error_message.clone(),
            retryable: false,
        },
        TurnState::Interrupted | TurnState::Expired => {
            let unfinished = last.is_some_and(|message| message.body.calls().is_empty())
                && last.is_some_and(|message| matches!(message.body.said, Said::Assistant { .. }));
            let partial_text = if unfinished { last_text() } else { String::new() };
            Event::Interrupted { partial_text }
        }
    })
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::session::{Counters, NewMessage, Prefix, SessionKey, ToolCall};
    use steward_base::names::{SessionId, TeamId, UserId};
    use steward_base::{Integrity, Timestamp};

    fn stored(seq: u64, said: Said, text: &str) -> Message {
        Message {
            seq,
            body: NewMessage {
                said,
                text: text.to_owned(),
                sent_text: None,
                spans: Vec::new(),
                usage: None,
                turn: "t1".to_owned(),
                native: None,
            },
            created: Timestamp::from_secs(0),
        }
    }

    pub(in crate::turn) fn said(seq: u64, text: &str) -> Message {
        stored(seq, Said::User, text)
    }

    pub(in crate::turn) fn calling(seq: u64, ids: &[&str]) -> Message {
        let call = |id: &&str| ToolCall {
            id: (*id).to_owned(),
            name: if id.starts_with('m') { "memory" } else { "shell" }.to_owned(),
            arguments: "{}".to_owned(),
        };
        let calls = ids.iter().map(call).collect();
        stored(seq, Said::Assistant { calls }, "")
    }

    pub(in crate::turn) fn result(seq: u64, id: &str) -> Message {
        let said = Said::Tool {
            call_id: id.to_owned(),
            tool: if id.starts_with('m') { "memory" } else { "shell" }.to_owned(),
            is_error: false,
        };
        stored(seq, said, "ok")
    }

    fn session() -> Session {
        let (team, id) = (TeamId::parse("red").unwrap(), SessionId::parse("s1").unwrap());
        Session {
            key: SessionKey { team, id },
            user: UserId::parse("ann").unwrap(),
            foreground: true,
            title: String::new(),
            project: String::new(),
            model: "m".to_owned(),
            system_prompt: "".into(),
            stable_prompt_bytes: 0,
            tools_json: "".into(),
            client_tools: vec![ClientTool {
                name: "shell".to_owned(),
                integrity: Integrity::Workspace,
            }],
            skip_review: false,
            counters: Counters::default(),
            prefix: Prefix::default(),
            usage: Usage::default(),
            last_seq: 0,
            open_calls: Vec::new(),
            exposures: Vec::new(),
            created: Timestamp::from_secs(0),
            last_active: Timestamp::from_secs(0),
            open_turn: None,
            setup: Vec::new(),
            external_memory: false,
            etag: String::new(),
        }
    }

    fn turn(state: TurnState) -> Turn {
        Turn {
            id: "t1".to_owned(),
            state,
            first_seq: 1,
            last_seq: 6,
            iterations: 3,
            segments: 2,
            error_reason: "MODEL_QUOTA".to_owned(),
            error_message: "used up".to_owned(),
        }
    }

    #[test]
    fn the_stored_messages_tell_the_turn_by_segment() {
        let done = stored(6, Said::Assistant { calls: Vec::new() }, "done");
        let history = [
            said(1, "x"),
            calling(2, &["m1"]),
            result(3, "m1"),
            calling(4, &["c"]),
            result(5, "c"),
            done,
        ];
        let replayed = replay(&session(), &turn(TurnState::Completed), &history);
        assert_eq!(replayed.segments, [0, 3]);
        assert!(matches!(replayed.events[1], Event::ToolStarted { .. }));
        assert!(matches!(replayed.events[2], Event::ToolFinished { .. }));
        assert_eq!(replayed.events[3], Event::Started { segment: 2 });
        assert_eq!(replayed.events[4], Event::Text("done".to_owned()));
        assert!(matches!(&replayed.events[5], Event::Completed(end) if end.text == "done" && end.seq == 6));
    }

    #[test]
    fn a_turn_whose_process_is_gone_has_no_end() {
        let history = [said(1, "x"), calling(2, &["m1"])];
        let running = replay(&session(), &turn(TurnState::Running), &history);
        assert!(!running.events.iter().any(Event::ends_segment));
        let failed = replay(&session(), &turn(TurnState::Failed), &history);
        assert!(matches!(failed.events.last(), Some(Event::Failed { reason, .. }) if reason == "MODEL_QUOTA"));
    }
}
