//! Between recall's messages and the values of this service's core. What recall answers is checked as little as possible
//! and as much as is needed to go on: a value that means nothing here is an error, never a guess.

use steward_base::names::{SessionId, TeamId, parse_session, parse_user, session_name, user_name};
use steward_base::{Integrity, Span, SpanOrigin, Timestamp};
use steward_orchestrator_core::session::{
    Append, ClientTool, Counters, DueReview, ExpiredTurn, Exposure, KeptSetup, Message, Native, NewMessage, NewSession,
    OpenCall, Prefix, Said, Session, SessionKey, SessionUpdate, ToolCall, Turn, TurnLease, TurnState, TurnUpdate,
    Usage,
};
use steward_proto::common::v1 as common;
use steward_proto::recall::v1 as pb;

use super::knowledge::exposure_from_pb;

fn timestamp(at: Option<prost_types::Timestamp>) -> Timestamp {
    at.map_or_else(Timestamp::default, |at| Timestamp::from_parts(at.seconds, at.nanos))
}

fn timestamp_to_pb(at: Timestamp) -> prost_types::Timestamp {
    let (seconds, nanos) = at.to_parts();
    prost_types::Timestamp { seconds, nanos }
}

fn key(name: &str) -> Result<(TeamId, SessionId), String> {
    parse_session(name).map_err(|error| format!("a session is named {name:?}: {error}"))
}

pub(super) fn session_from_pb(session: pb::Session) -> Result<Session, String> {
    let (team, id) = key(&session.name)?;
    let (_, user) =
        parse_user(&session.user).map_err(|error| format!("a user is named {:?}: {error}", session.user))?;
    let source = session.source();
    let counters = session.counters.unwrap_or_default();
    let prefix = session.prefix.unwrap_or_default();
    Ok(Session {
        key: SessionKey { team, id },
        user,
        foreground: matches!(source, pb::SessionSource::Chat | pb::SessionSource::Unspecified),
        title: session.title,
        project: session.project,
        model: session.model,
        system_prompt: session.system_prompt.into(),
        stable_prompt_bytes: session.stable_prompt_bytes,
        tools_json: session.tools_json.into(),
        client_tools: session.client_tools.into_iter().map(client_tool_from_pb).collect(),
        skip_review: session.skip_review,
        counters: Counters {
            turns_since_memory: counters.turns_since_memory,
            iterations_since_skill: counters.iterations_since_skill,
            user_turns: counters.user_turns,
        },
        prefix: Prefix {
            tools_sha256: prefix.tools_sha256,
            system_sha256: prefix.system_sha256,
            messages_bytes: prefix.messages_bytes,
            messages_sha256: prefix.messages_sha256,
            planned_breaks: prefix.planned_breaks,
            unplanned_breaks: prefix.unplanned_breaks,
            requests: prefix.requests,
            last_break_reason: prefix.last_break_reason,
        },
        usage: usage_from_pb(session.usage),
        last_seq: session.last_seq,
        open_calls: session.open_calls.into_iter().map(open_call_from_pb).collect(),
        exposures: session.exposures.into_iter().map(exposure_from_pb).collect(),
        created: timestamp(session.create_time),
        last_active: timestamp(session.last_active_time),
        open_turn: Some(session.open_turn).filter(|turn| !turn.is_empty()),
        external_memory: KeptSetup::has_provider(&session.setup),
        setup: session.setup.into(),
        etag: session.etag,
    })
}

pub(super) fn new_session_to_pb(new: NewSession) -> pb::Session {
    pb::Session {
        name: session_name(&new.key.team, &new.key.id),
        user: user_name(&new.key.team, &new.user),
        source: pb::SessionSource::Chat.into(),
        title: new.title,
        project: new.project,
        model: new.model,
        system_prompt: new.system_prompt,
        stable_prompt_bytes: new.stable_prompt_bytes,
        tools_json: new.tools_json,
        client_tools: new.client_tools.into_iter().map(client_tool_to_pb).collect(),
        skip_review: new.skip_review,
        exposures: new.exposures.into_iter().map(exposure_to_pb).collect(),
        setup: new.setup.into(),
        ..pb::Session::default()
    }
}

pub(super) fn update_to_pb(key: &SessionKey, update: SessionUpdate) -> pb::UpdateSessionRequest {
    let mut paths = Vec::new();
    let mut session = pb::Session {
        name: key.name(),
        etag: update.etag,
        ..pb::Session::default()
    };
    if let Some(title) = update.title {
        paths.push("title");
        session.title = title;
    }
    let mut break_reason = String::new();
    if let Some(anew) = update.anew {
        anew.reason.clone_into(&mut break_reason);
        paths.extend([
            "model",
            "system_prompt",
            "stable_prompt_bytes",
            "tools_json",
            "client_tools",
            "setup",
            "exposures",
        ]);
        session.model = anew.model;
        session.system_prompt = anew.system_prompt;
        session.stable_prompt_bytes = anew.stable_prompt_bytes;
        session.tools_json = anew.tools_json;
        session.client_tools = anew.client_tools.into_iter().map(client_tool_to_pb).collect();
        session.setup = anew.setup.into();
        session.exposures = anew.exposures.into_iter().map(exposure_to_pb).collect();
    }
    pb::UpdateSessionRequest {
        session: Some(session),
        update_mask: Some(prost_types::FieldMask {
            paths: paths.into_iter().map(str::to_owned).collect(),
        }),
        break_reason,
        request_id: update.request_id,
    }
}

fn exposure_to_pb(exposure: Exposure) -> common::Exposure {
    common::Exposure {
        artifact: exposure.artifact,
        revision: exposure.revision,
        stage: exposure.stage,
        assignment_unit: exposure.assignment_unit,
        arm: exposure.arm,
        propensity: exposure.propensity,
    }
}

fn client_tool_to_pb(tool: ClientTool) -> pb::ClientToolRef {
    pb::ClientToolRef {
        name: tool.name,
        integrity: integrity_to_pb(tool.integrity).into(),
    }
}

pub(super) fn append_to_pb(key: &SessionKey, append: Append) -> pb::AppendMessagesRequest {
    let replace_open_calls = append.open_calls.is_some();
    let open_calls = append
        .open_calls
        .unwrap_or_default()
        .into_iter()
        .map(|open| pb::OpenCall {
            call: Some(tool_call_to_pb(open.call)),
            turn: open.turn,
            expire_time: Some(timestamp_to_pb(open.expires)),
        });
    pb::AppendMessagesRequest {
        session: key.name(),
        fence: append.fence,
        expected_seq: append.expected_seq,
        request_id: append.request_id,
        messages: append.messages.into_iter().map(message_to_pb).collect(),
        turn: append.turn.map(turn_update_to_pb),
        counters: append.counters.map(|counters| pb::Counters {
            turns_since_memory: counters.turns_since_memory,
            iterations_since_skill: counters.iterations_since_skill,
            user_turns: counters.user_turns,
        }),
        prefix: append.prefix.map(prefix_to_pb),
        usage: append.usage.map(usage_to_pb),
        open_calls: open_calls.collect(),
        replace_open_calls,
        due_review: append.due_review.map(due_review_to_pb),
        title: append.title,
        exposures: append.exposures.into_iter().map(exposure_to_pb).collect(),
        acquire_lease: append.lease.map(lease_to_pb),
        release_lease: append.release,
        expected_etag: append.expected_etag,
    }
}

pub(super) fn expired_from_pb(turn: pb::ExpiredTurn) -> Result<ExpiredTurn, String> {
    let (team, id) = key(&turn.session)?;
    let (_, user) = parse_user(&turn.user).map_err(|error| format!("a user is named {:?}: {error}", turn.user))?;
    Ok(ExpiredTurn {
        session: SessionKey { team, id },
        user,
        turn: turn.turn,
    })
}

fn lease_to_pb(lease: TurnLease) -> pb::TurnLease {
    pb::TurnLease {
        turn: lease.turn,
        holder: lease.holder,
        ttl: prost_types::Duration::try_from(lease.ttl).ok(),
    }
}

fn prefix_to_pb(prefix: Prefix) -> pb::PrefixState {
    pb::PrefixState {
        tools_sha256: prefix.tools_sha256,
        system_sha256: prefix.system_sha256,
        messages_bytes: prefix.messages_bytes,
        messages_sha256: prefix.messages_sha256,
        planned_breaks: prefix.planned_breaks,
        unplanned_breaks: prefix.unplanned_breaks,
        requests: prefix.requests,
        last_break_reason: prefix.last_break_reason,
    }
}

fn due_review_to_pb(due: DueReview) -> pb::DueReview {
    pb::DueReview {
        memory: due.memory,
        skills: due.skills,
        turn: due.turn,
        traceparent: due.traceparent,
        ..pb::DueReview::default()
    }
}

fn turn_update_to_pb(update: TurnUpdate) -> pb::TurnUpdate {
    pb::TurnUpdate {
        id: update.id,
        state: turn_state_to_pb(update.state).into(),
        iterations: update.iterations,
        error_reason: update.error_reason,
        error_message: update.error_message,
        segments: update.segments,
    }
}

const fn turn_state_to_pb(state: TurnState) -> pb::TurnState {
    match state {
        TurnState::Running => pb::TurnState::Running,
        TurnState::RequiresAction => pb::TurnState::RequiresAction,
        TurnState::Completed => pb::TurnState::Completed,
        TurnState::Failed => pb::TurnState::Failed,
        TurnState::Interrupted => pb::TurnState::Interrupted,
        TurnState::Expired => pb::TurnState::Expired,
    }
}

pub(super) fn turn_from_pb(turn: pb::Turn) -> Result<Turn, String> {
    let state = match turn.state() {
        pb::TurnState::Running => TurnState::Running,
        pb::TurnState::RequiresAction => TurnState::RequiresAction,
        pb::TurnState::Completed => TurnState::Completed,
        pb::TurnState::Failed => TurnState::Failed,
        pb::TurnState::Interrupted => TurnState::Interrupted,
        pb::TurnState::Expired => TurnState::Expired,
        pb::TurnState::Unspecified => return Err(format!("turn {} has no state", turn.id)),
    };
    Ok(Turn {
        id: turn.id,
        state,
        first_seq: turn.first_seq,
        last_seq: turn.last_seq,
        iterations: turn.iterations,
        segments: turn.segments,
        error_reason: turn.error_reason,
        error_message: turn.error_message,
    })
}

fn message_to_pb(message: NewMessage) -> pb::Message {
    let mut converted = pb::Message {
        text: message.text,
        sent_text: message.sent_text,
        spans: message.spans.into_iter().map(span_to_pb).collect(),
        usage: message.usage.map(usage_to_pb),
        turn: message.turn,
        native: message.native.map(native_to_pb),
        ..pb::Message::default()
    };
    match message.said {
        Said::User => converted.set_role(pb::MessageRole::User),
        Said::Assistant { calls } => {
            converted.set_role(pb::MessageRole::Assistant);
            converted.tool_calls = calls.into_iter().map(tool_call_to_pb).collect();
        }
        Said::Tool {
            call_id,
            tool,
            is_error,
        } => {
            converted.set_role(pb::MessageRole::Tool);
            converted.tool_call_id = call_id;
            converted.tool_name = tool;
            converted.is_error = is_error;
        }
    }
    converted
}

pub(super) fn message_from_pb(message: pb::Message) -> Result<Message, String> {
    let said = match message.role() {
        pb::MessageRole::User => Said::User,
        pb::MessageRole::Assistant => Said::Assistant {
            calls: message.tool_calls.into_iter().map(tool_call_from_pb).collect(),
        },
        pb::MessageRole::Tool => Said::Tool {
            call_id: message.tool_call_id,
            tool: message.tool_name,
            is_error: message.is_error,
        },
        pb::MessageRole::Unspecified => return Err(format!("message {} has no role", message.seq)),
    };
    Ok(Message {
        seq: message.seq,
        body: NewMessage {
            said,
            text: message.text,
            sent_text: message.sent_text,
            spans: message.spans.into_iter().map(span_from_pb).collect(),
            usage: message.usage.map(|usage| usage_from_pb(Some(usage))),
            turn: message.turn,
            native: message.native.map(native_from_pb),
        },
        created: timestamp(message.create_time),
    })
}

fn native_to_pb(native: Native) -> common::NativeBlocks {
    common::NativeBlocks {
        provider: native.provider,
        model: native.model,
        blocks_json: native.blocks,
    }
}

fn native_from_pb(native: common::NativeBlocks) -> Native {
    Native {
        provider: native.provider,
        model: native.model,
        blocks: native.blocks_json,
    }
}

fn tool_call_to_pb(call: ToolCall) -> pb::ToolCall {
    pb::ToolCall {
        id: call.id,
        name: call.name,
        arguments_json: call.arguments,
        sent_arguments_json: None,
    }
}

fn tool_call_from_pb(call: pb::ToolCall) -> ToolCall {
    ToolCall {
        id: call.id,
        name: call.name,
        // What is sent back is what counts for the prefix.
        arguments: call.sent_arguments_json.unwrap_or(call.arguments_json),
    }
}

fn open_call_from_pb(open: pb::OpenCall) -> OpenCall {
    OpenCall {
        call: tool_call_from_pb(open.call.unwrap_or_default()),
        turn: open.turn,
        expires: timestamp(open.expire_time),
    }
}

fn client_tool_from_pb(tool: pb::ClientToolRef) -> ClientTool {
    ClientTool {
        integrity: integrity_from_pb(tool.integrity()).unwrap_or(Integrity::UnknownTool),
        name: tool.name,
    }
}

fn usage_to_pb(usage: Usage) -> common::Usage {
    common::Usage {
        input_tokens: usage.input,
        cached_input_tokens: usage.cached_input,
        cache_write_tokens: usage.cache_write,
        output_tokens: usage.output,
    }
}

fn usage_from_pb(usage: Option<common::Usage>) -> Usage {
    let usage = usage.unwrap_or_default();
    Usage {
        input: usage.input_tokens,
        cached_input: usage.cached_input_tokens,
        cache_write: usage.cache_write_tokens,
        output: usage.output_tokens,
    }
}

const fn integrity_to_pb(integrity: Integrity) -> common::Integrity {
    match integrity {
        Integrity::External => common::Integrity::External,
        Integrity::UnknownTool => common::Integrity::UnknownTool,
        Integrity::Workspace => common::Integrity::Workspace,
        Integrity::Person => common::Integrity::Person,
        Integrity::Operator => common::Integrity::Operator,
    }
}

const fn integrity_from_pb(integrity: common::Integrity) -> Option<Integrity> {
    Some(match integrity {
        common::Integrity::External => Integrity::External,
        common::Integrity::UnknownTool => Integrity::UnknownTool,
        common::Integrity::Workspace => Integrity::Workspace,
        common::Integrity::Person => Integrity::Person,
        common::Integrity::Operator => Integrity::Operator,
        common::Integrity::Unspecified => return None,
    })
}

fn span_to_pb(span: Span) -> common::Span {
    let (source, name) = match span.origin {
        SpanOrigin::User(user) => (common::SpanSource::User, user),
        SpanOrigin::Assistant => (common::SpanSource::Assistant, String::new()),
        SpanOrigin::Tool(tool) => (common::SpanSource::Tool, tool),
        SpanOrigin::External(source) => (common::SpanSource::External, source),
        SpanOrigin::System => (common::SpanSource::System, String::new()),
    };
    common::Span {
        start: span.start,
        end: span.end,
        source: source.into(),
        name,
        integrity: integrity_to_pb(span.integrity).into(),
    }
}

fn span_from_pb(span: common::Span) -> Span {
    let (source, integrity) = (span.source(), span.integrity());
    let origin = match source {
        common::SpanSource::User => SpanOrigin::User(span.name),
        common::SpanSource::Assistant => SpanOrigin::Assistant,
        common::SpanSource::Tool => SpanOrigin::Tool(span.name),
        common::SpanSource::System => SpanOrigin::System,
        common::SpanSource::External | common::SpanSource::Unspecified => SpanOrigin::External(span.name),
    };
    Span {
        start: span.start,
        end: span.end,
        origin,
        integrity: integrity_from_pb(integrity).unwrap_or(Integrity::External),
    }
}
