//! Events on the wire.

use prost_types::value::Kind;
use prost_types::{ListValue, Struct, Value};
use steward_orchestrator_core::turn::{Completed, Event, PendingCall, SecretRequest};
use steward_proto::agent::v1 as pb;
use steward_proto::agent::v1::turn_event::Event as Item;
use steward_proto::skill::v1 as skill;

use super::super::convert::{timestamp_to_pb, usage_to_pb};

/// The event with its number in the turn.
pub(super) fn event_to_pb(number: u64, turn: &str, event: Event) -> pb::TurnEvent {
    pb::TurnEvent {
        event_id: number,
        turn: turn.to_owned(),
        event: Some(item(event)),
    }
}

fn secret_request_to_pb(request: SecretRequest) -> skill::SecretRequest {
    let variables = request.variables.into_iter().map(|variable| skill::SkillVariable {
        name: variable.name,
        prompt: variable.prompt,
        help: variable.help,
        ..skill::SkillVariable::default()
    });
    skill::SecretRequest {
        skill: request.skill,
        variables: variables.collect(),
        team_store: request.team_store,
    }
}

fn item(event: Event) -> Item {
    match event {
        Event::Started { segment } => Item::Started(pb::SegmentStarted { segment }),
        Event::Text(text) => Item::TextDelta(pb::TextDelta { text }),
        Event::ToolStarted { call_id, tool } => Item::ToolStarted(pb::ToolStarted { call_id, tool }),
        Event::ToolFinished {
            call_id,
            tool,
            is_error,
            summary,
        } => Item::ToolFinished(pb::ToolFinished {
            call_id,
            tool,
            is_error,
            summary,
        }),
        Event::ModelRetry {
            attempt,
            reason,
            delay_ms,
        } => Item::ModelRetry(pb::ModelRetry {
            attempt,
            reason: reason.to_owned(),
            delay_ms,
        }),
        Event::Steered(text) => Item::Steered(pb::Steered { text }),
        Event::SecretRequest(request) => Item::SecretRequest(secret_request_to_pb(request)),
        Event::RequiresAction(calls) => Item::RequiresAction(pb::RequiresAction {
            calls: calls.into_iter().map(pending_call_to_pb).collect(),
        }),
        Event::Completed(completed) => Item::Completed(completed_to_pb(*completed)),
        Event::Interrupted { partial_text } => Item::Interrupted(pb::TurnInterrupted { partial_text }),
        Event::Failed {
            reason,
            message,
            retryable,
        } => Item::Failed(pb::TurnFailed {
            reason,
            message,
            retryable,
        }),
    }
}

fn completed_to_pb(completed: Completed) -> pb::TurnCompleted {
    let (memory, skills) = completed.review_due;
    pb::TurnCompleted {
        text: completed.text,
        seq: completed.seq,
        iterations: completed.iterations,
        usage: Some(usage_to_pb(completed.usage)),
        review_due: Some(pb::ReviewDue { memory, skills }),
        prefix: Some(pb::PrefixReport {
            requests: completed.prefix.requests,
            planned_breaks: completed.prefix.planned_breaks,
            unplanned_breaks: completed.prefix.unplanned_breaks,
        }),
        cost_picodollars: completed.cost,
    }
}

pub(super) fn pending_call_to_pb(call: PendingCall) -> pb::PendingCall {
    pb::PendingCall {
        arguments: parsed(&call.arguments),
        call_id: call.call_id,
        tool: call.tool,
        arguments_json: call.arguments,
        expire_time: Some(timestamp_to_pb(call.expires)),
    }
}

/// The arguments as a struct; absent when they are not a JSON object.
fn parsed(arguments: &str) -> Option<Struct> {
    let object: serde_json::Map<String, serde_json::Value> = serde_json::from_str(arguments).ok()?;
    Some(as_struct(object))
}

fn as_struct(object: serde_json::Map<String, serde_json::Value>) -> Struct {
    Struct {
        fields: object.into_iter().map(|(key, value)| (key, as_value(value))).collect(),
    }
}

fn as_value(value: serde_json::Value) -> Value {
    let kind = match value {
        serde_json::Value::Null => Kind::NullValue(0),
        serde_json::Value::Bool(value) => Kind::BoolValue(value),
        serde_json::Value::Number(number) => Kind::NumberValue(number.as_f64().unwrap_or(f64::NAN)),
        serde_json::Value::String(text) => Kind::StringValue(text),
        serde_json::Value::Array(values) => Kind::ListValue(ListValue {
            values: values.into_iter().map(as_value).collect(),
        }),
        serde_json::Value::Object(object) => Kind::StructValue(as_struct(object)),
    };
    Value { kind: Some(kind) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_come_as_written_and_parsed() {
        let arguments = r#"{"z":9007199254740993,"a":[null,{"b":true}]}"#;
        let call = pending_call_to_pb(PendingCall {
            call_id: "c1".to_owned(),
            tool: "shell".to_owned(),
            arguments: arguments.to_owned(),
            expires: steward_base::Timestamp::from_secs(1),
        });
        assert_eq!(call.arguments_json, arguments);
        let parsed = call.arguments.unwrap();
        assert_eq!(
            parsed.fields["z"].kind,
            Some(Kind::NumberValue(9_007_199_254_740_992.0))
        );
        assert!(matches!(&parsed.fields["a"].kind, Some(Kind::ListValue(list)) if list.values.len() == 2));
    }
}
