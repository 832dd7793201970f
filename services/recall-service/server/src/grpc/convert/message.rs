//! Messages, their calls and their spans.

use steward_base::{FieldViolations, Integrity, Span, SpanOrigin};
use steward_proto::common::v1 as common;
use steward_proto::recall::v1 as pb;
use steward_recall_core::message::{Message, Native, NewMessage, Role, ToolCall, ToolResult};

use super::{integrity_from_pb, integrity_to_pb, role_from_pb, role_to_pb, time_to_pb, usage_from_pb, usage_to_pb};

pub(in crate::grpc) fn messages_from_pb(
    messages: Vec<pb::Message>,
    violations: &mut FieldViolations,
) -> Vec<NewMessage> {
    let each = messages.into_iter().enumerate();
    each.filter_map(|(at, message)| message_from_pb(message, &format!("messages[{at}]"), violations))
        .collect()
}

pub(in crate::grpc) fn message_from_pb(
    message: pb::Message,
    field: &str,
    violations: &mut FieldViolations,
) -> Option<NewMessage> {
    let role = role_from_pb(message.role, &format!("{field}.role"), violations);
    let spans = message.spans.into_iter().enumerate();
    let spans = spans
        .filter_map(|(at, span)| span_from_pb(span, &format!("{field}.spans[{at}]"), violations))
        .collect();
    let role = role?;
    let names_call = role == Role::Tool || !message.tool_call_id.is_empty();
    let result = names_call.then_some(ToolResult {
        call_id: message.tool_call_id,
        tool_name: message.tool_name,
        is_error: message.is_error,
    });
    Some(NewMessage {
        role,
        text: message.text,
        sent_text: message.sent_text,
        tool_calls: message.tool_calls.into_iter().map(tool_call_from_pb).collect(),
        result,
        spans,
        usage: message.usage.map(usage_from_pb),
        turn: message.turn,
        native: message.native.map(|native| Native {
            provider: native.provider,
            model: native.model,
            blocks_json: native.blocks_json,
        }),
    })
}

/// What is not said to be trusted is not trusted.
fn span_from_pb(span: common::Span, field: &str, violations: &mut FieldViolations) -> Option<Span> {
    let origin = match common::SpanSource::try_from(span.source) {
        Ok(common::SpanSource::User) => SpanOrigin::User(span.name),
        Ok(common::SpanSource::Assistant) => SpanOrigin::Assistant,
        Ok(common::SpanSource::Tool) => SpanOrigin::Tool(span.name),
        Ok(common::SpanSource::External) => SpanOrigin::External(span.name),
        Ok(common::SpanSource::System) => SpanOrigin::System,
        Ok(common::SpanSource::Unspecified) | Err(_) => {
            violations.add(format!("{field}.source"), "must be given and known");
            return None;
        }
    };
    let integrity = integrity_from_pb(span.integrity, &format!("{field}.integrity"), violations);
    Some(Span {
        start: span.start,
        end: span.end,
        origin,
        integrity: integrity.unwrap_or(Integrity::External),
    })
}

fn span_to_pb(span: &Span) -> common::Span {
    let (source, name) = match &span.origin {
        SpanOrigin::User(name) => (common::SpanSource::User, name.as_str()),
        SpanOrigin::Assistant => (common::SpanSource::Assistant, ""),
        SpanOrigin::Tool(name) => (common::SpanSource::Tool, name.as_str()),
        SpanOrigin::External(name) => (common::SpanSource::External, name.as_str()),
        SpanOrigin::System => (common::SpanSource::System, ""),
    };
    common::Span {
        start: span.start,
        end: span.end,
        source: source as i32,
        name: name.to_owned(),
        integrity: integrity_to_pb(span.integrity),
    }
}

fn native_to_pb(native: &Native) -> common::NativeBlocks {
    common::NativeBlocks {
        provider: native.provider.clone(),
        model: native.model.clone(),
        blocks_json: native.blocks_json.clone(),
    }
}

pub(super) fn tool_call_from_pb(call: pb::ToolCall) -> ToolCall {
    ToolCall {
        id: call.id,
        name: call.name,
        arguments_json: call.arguments_json,
        sent_arguments_json: call.sent_arguments_json,
    }
}

pub(super) fn tool_call_to_pb(call: &ToolCall) -> pb::ToolCall {
    pb::ToolCall {
        id: call.id.clone(),
        name: call.name.clone(),
        arguments_json: call.arguments_json.clone(),
        sent_arguments_json: call.sent_arguments_json.clone(),
    }
}

pub(in crate::grpc) fn message_to_pb(message: &Message) -> pb::Message {
    let body = &message.body;
    let result = body.result.as_ref();
    pb::Message {
        seq: message.seq,
        role: role_to_pb(body.role) as i32,
        text: body.text.clone(),
        sent_text: body.sent_text.clone(),
        tool_calls: body.tool_calls.iter().map(tool_call_to_pb).collect(),
        tool_call_id: result.map(|result| result.call_id.clone()).unwrap_or_default(),
        tool_name: result.map(|result| result.tool_name.clone()).unwrap_or_default(),
        is_error: result.is_some_and(|result| result.is_error),
        spans: body.spans.iter().map(span_to_pb).collect(),
        usage: body.usage.map(usage_to_pb),
        turn: body.turn.clone(),
        rewound: message.rewound,
        compacted: message.compacted,
        create_time: Some(time_to_pb(message.created)),
        native: body.native.as_ref().map(native_to_pb),
        replaces: message.replaces.map(|replaced| pb::MessageRange {
            from_seq: replaced.from,
            to_seq: replaced.to,
        }),
    }
}
