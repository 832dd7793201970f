//! Matching the client's results with the calls that wait for them.

use steward_base::{FieldViolations, Integrity, Span, SpanOrigin};

use super::input::ClientResult;
use crate::error::Error;
use crate::session::{ClientTool, Message, NewMessage, OpenCall, Said};

/// The results as messages, in the model's order, if they answer exactly the open calls; else every result too many and
/// every one that is missing is named.
pub fn client_results(
    open: &[OpenCall],
    results: &[ClientResult],
    tools: &[ClientTool],
    turn: &str,
) -> Result<Vec<NewMessage>, Error> {
    let mut violations = FieldViolations::new();
    for (index, result) in results.iter().enumerate() {
        let field = format!("tool_results.results[{index}].call_id");
        if !open.iter().any(|waiting| waiting.call.id == result.call_id) {
            violations.add(&field, format!("no call {} is waiting", result.call_id));
        } else if results[..index].iter().any(|other| other.call_id == result.call_id) {
            violations.add(&field, format!("call {} is answered twice", result.call_id));
        }
    }
    let mut messages = Vec::with_capacity(open.len());
    for waiting in open {
        match results.iter().find(|result| result.call_id == waiting.call.id) {
            Some(result) => messages.push(message(waiting, result, tools, turn)),
            None => violations.add(
                "tool_results.results",
                format!("the result of call {} is missing", waiting.call.id),
            ),
        }
    }
    if violations.is_empty() {
        return Ok(messages);
    }
    Err(Error::CallsMismatch {
        turn: turn.to_owned(),
        violations,
    })
}

fn message(waiting: &OpenCall, result: &ClientResult, tools: &[ClientTool], turn: &str) -> NewMessage {
    let tool = tools.iter().find(|tool| tool.name == waiting.call.name);
    let most = tool.map_or(Integrity::UnknownTool, |tool| tool.integrity);
    // A client can say that its tool's output is worth less than usual, never that it is worth more.
    let integrity = result.integrity.map_or(most, |claimed| claimed.min(most));
    let origin = if integrity == Integrity::External {
        let source = if result.source.is_empty() {
            &waiting.call.name
        } else {
            &result.source
        };
        SpanOrigin::External(source.clone())
    } else {
        SpanOrigin::Tool(waiting.call.name.clone())
    };
    NewMessage {
        said: Said::Tool {
            call_id: result.call_id.clone(),
            tool: waiting.call.name.clone(),
            is_error: result.is_error,
        },
        text: result.content.clone(),
        sent_text: None,
        spans: vec![Span {
            start: 0,
            end: u32::try_from(result.content.len()).unwrap_or(u32::MAX),
            origin,
            integrity,
        }],
        usage: None,
        turn: turn.to_owned(),
        native: None,
    }
}

/// The turn whose stored results these are: the last turn with results in it, if each of `results` is among them. That is
/// how a request is recognised that was carried out before its process was lost.
pub fn answered_by<'a>(history: &'a [Message], results: &[ClientResult]) -> Option<&'a str> {
    let stored = |wanted: &ClientResult| {
        history.iter().rev().find(|message| {
            matches!(&message.body.said, Said::Tool { call_id, is_error, .. }
                if *call_id == wanted.call_id && *is_error == wanted.is_error)
                && message.body.text == wanted.content
        })
    };
    let turns: Vec<&str> = results
        .iter()
        .map(|result| stored(result).map(|message| message.body.turn.as_str()))
        .collect::<Option<_>>()?;
    let last = turns.first().copied()?;
    turns.iter().all(|turn| *turn == last).then_some(last)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::session::ToolCall;
    use crate::turn::replay::tests::{calling, result as stored, said};
    use steward_base::{Fault as _, Timestamp};

    fn open(id: &str) -> OpenCall {
        OpenCall {
            call: ToolCall {
                id: id.to_owned(),
                name: "shell".to_owned(),
                arguments: "{}".to_owned(),
            },
            turn: "t1".to_owned(),
            expires: Timestamp::from_secs(0),
        }
    }

    fn result(id: &str) -> ClientResult {
        ClientResult {
            call_id: id.to_owned(),
            content: "ok".to_owned(),
            is_error: false,
            integrity: None,
            source: String::new(),
        }
    }

    fn tools(integrity: Integrity) -> [ClientTool; 1] {
        let name = "shell".to_owned();
        [ClientTool { name, integrity }]
    }

    #[test]
    fn results_are_stored_in_the_models_order() {
        let calls = [open("a"), open("b")];
        let messages = client_results(&calls, &[result("b"), result("a")], &tools(Integrity::Workspace), "t1").unwrap();
        let ids: Vec<&str> = messages
            .iter()
            .map(|message| match &message.said {
                Said::Tool { call_id, .. } => call_id.as_str(),
                _ => "",
            })
            .collect();
        assert_eq!(ids, ["a", "b"]);
        assert_eq!(messages[0].spans[0].integrity, Integrity::Workspace);
    }

    #[test]
    fn every_mismatch_is_named() {
        let sent = [result("a"), result("a"), result("x")];
        let refused = client_results(&[open("a"), open("b")], &sent, &tools(Integrity::Workspace), "t1").unwrap_err();
        assert_eq!(refused.reason(), "CALLS_MISMATCH");
        let said: Vec<&str> = refused
            .violations()
            .iter()
            .map(|one| one.description.as_str())
            .collect();
        let expected = [
            "call a is answered twice",
            "no call x is waiting",
            "the result of call b is missing",
        ];
        assert_eq!(said, expected);
    }

    #[test]
    fn a_client_can_lower_the_integrity_of_a_result_and_not_raise_it() {
        let claim = |claimed: Integrity, most: Integrity| {
            let sent = ClientResult {
                integrity: Some(claimed),
                source: "https://example.org".to_owned(),
                ..result("a")
            };
            client_results(&[open("a")], &[sent], &tools(most), "t1")
                .unwrap()
                .remove(0)
                .spans
                .remove(0)
        };
        assert_eq!(
            claim(Integrity::Person, Integrity::UnknownTool).integrity,
            Integrity::UnknownTool
        );
        let external = claim(Integrity::External, Integrity::Workspace);
        assert_eq!(external.origin, SpanOrigin::External("https://example.org".to_owned()));
    }

    #[test]
    fn results_that_are_stored_already_are_recognised() {
        let history = [said(1, "x"), calling(2, &["a", "b"]), stored(3, "a"), stored(4, "b")];
        assert_eq!(answered_by(&history, &[result("b"), result("a")]), Some("t1"));
        assert_eq!(answered_by(&history, &[result("a"), result("c")]), None);
        let other = ClientResult {
            content: "other".to_owned(),
            ..result("a")
        };
        assert_eq!(answered_by(&history, &[other]), None);
    }
}
