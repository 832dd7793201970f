//! Sessions, turns, and the parts of an append that change them.

use steward_base::names::{session_name, user_name};
use steward_base::{FieldViolations, Integrity, Timestamp};
use steward_proto::common::v1 as common;
use steward_proto::recall::v1 as pb;
use steward_recall_core::session::{
    ClientTool, Counters, Exposure, Frozen, LineageReason, OpenCall, PrefixState, Session, SessionSource, Usage,
};
use steward_recall_core::turn::{Turn, TurnState, TurnUpdate};

use super::message::{tool_call_from_pb, tool_call_to_pb};
use super::{integrity_from_pb, integrity_to_pb, time_from_pb, time_to_pb};

pub(in crate::grpc) fn session_to_pb(session: &Session) -> pb::Session {
    let lineage = session.lineage.as_ref();
    pb::Session {
        name: session.name(),
        user: user_name(&session.team, &session.user),
        source: source_to_pb(session.source) as i32,
        title: session.title.clone(),
        parent_session: lineage
            .map(|lineage| session_name(&session.team, &lineage.parent))
            .unwrap_or_default(),
        lineage_reason: lineage.map_or(0, |lineage| reason_to_pb(lineage.reason) as i32),
        root_session: session_name(&session.team, &session.root),
        project: session.project.clone(),
        model: session.frozen.model.clone(),
        system_prompt: session.frozen.system_prompt.clone(),
        tools_json: session.frozen.tools_json.clone(),
        client_tools: session.frozen.client_tools.iter().map(client_tool_to_pb).collect(),
        skip_review: session.skip_review,
        skip_memory: session.skip_memory,
        counters: Some(pb::Counters {
            turns_since_memory: session.counters.turns_since_memory,
            iterations_since_skill: session.counters.iterations_since_skill,
            user_turns: session.counters.user_turns,
        }),
        prefix: Some(prefix_to_pb(&session.prefix)),
        usage: Some(usage_to_pb(session.usage)),
        last_seq: session.last_seq,
        open_calls: session.open_calls.iter().map(open_call_to_pb).collect(),
        exposures: session.exposures.iter().map(exposure_to_pb).collect(),
        create_time: Some(time_to_pb(session.created)),
        last_active_time: Some(time_to_pb(session.last_active)),
        etag: session.etag(),
        open_turn: session.open_turn.clone().unwrap_or_default(),
        stable_prompt_bytes: session.frozen.stable_prompt_bytes,
        setup: session.frozen.setup.clone().into(),
    }
}

/// What is frozen with a session; a client tool of unknown kind is trusted least among tools.
pub(in crate::grpc) fn frozen_from_pb(session: &mut pb::Session, violations: &mut FieldViolations) -> Frozen {
    let client_tools = client_tools_from_pb(std::mem::take(&mut session.client_tools), violations);
    Frozen {
        model: std::mem::take(&mut session.model),
        system_prompt: std::mem::take(&mut session.system_prompt),
        tools_json: std::mem::take(&mut session.tools_json),
        client_tools,
        stable_prompt_bytes: session.stable_prompt_bytes,
        setup: std::mem::take(&mut session.setup).into(),
    }
}

pub(in crate::grpc) fn client_tools_from_pb(
    tools: Vec<pb::ClientToolRef>,
    violations: &mut FieldViolations,
) -> Vec<ClientTool> {
    let tools = tools.into_iter().enumerate().map(|(at, tool)| {
        let field = format!("session.client_tools[{at}].integrity");
        let integrity = integrity_from_pb(tool.integrity, &field, violations).unwrap_or(Integrity::UnknownTool);
        ClientTool {
            name: tool.name,
            integrity,
        }
    });
    tools.collect()
}

fn client_tool_to_pb(tool: &ClientTool) -> pb::ClientToolRef {
    pb::ClientToolRef {
        name: tool.name.clone(),
        integrity: integrity_to_pb(tool.integrity),
    }
}

pub(in crate::grpc) fn source_to_pb(source: SessionSource) -> pb::SessionSource {
    match source {
        SessionSource::Chat => pb::SessionSource::Chat,
        SessionSource::Schedule => pb::SessionSource::Schedule,
        SessionSource::Delegate => pb::SessionSource::Delegate,
        SessionSource::Review => pb::SessionSource::Review,
        SessionSource::Curation => pb::SessionSource::Curation,
        SessionSource::Import => pb::SessionSource::Import,
    }
}

/// `None` where it is not given; an unknown number is recorded.
fn source_from_pb(number: i32, field: &str, violations: &mut FieldViolations) -> Option<SessionSource> {
    match pb::SessionSource::try_from(number) {
        Ok(pb::SessionSource::Unspecified) => None,
        Ok(pb::SessionSource::Chat) => Some(SessionSource::Chat),
        Ok(pb::SessionSource::Schedule) => Some(SessionSource::Schedule),
        Ok(pb::SessionSource::Delegate) => Some(SessionSource::Delegate),
        Ok(pb::SessionSource::Review) => Some(SessionSource::Review),
        Ok(pb::SessionSource::Curation) => Some(SessionSource::Curation),
        Ok(pb::SessionSource::Import) => Some(SessionSource::Import),
        Err(_) => {
            violations.add(field, "is unknown");
            None
        }
    }
}

pub(in crate::grpc) fn sources_from_pb(
    numbers: &[i32],
    field: &str,
    violations: &mut FieldViolations,
) -> Vec<SessionSource> {
    let named = numbers.iter().enumerate();
    named
        .filter_map(|(at, number)| source_from_pb(*number, &format!("{field}[{at}]"), violations))
        .collect()
}

pub(in crate::grpc) fn reason_to_pb(reason: LineageReason) -> pb::LineageReason {
    match reason {
        LineageReason::Reset => pb::LineageReason::Reset,
        LineageReason::Compression => pb::LineageReason::Compression,
        LineageReason::Delegation => pb::LineageReason::Delegation,
        LineageReason::Branch => pb::LineageReason::Branch,
    }
}

pub(in crate::grpc) fn counters_from_pb(counters: pb::Counters) -> Counters {
    Counters {
        turns_since_memory: counters.turns_since_memory,
        iterations_since_skill: counters.iterations_since_skill,
        user_turns: counters.user_turns,
    }
}

pub(in crate::grpc) fn prefix_from_pb(prefix: pb::PrefixState) -> PrefixState {
    PrefixState {
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

fn prefix_to_pb(prefix: &PrefixState) -> pb::PrefixState {
    pb::PrefixState {
        tools_sha256: prefix.tools_sha256.clone(),
        system_sha256: prefix.system_sha256.clone(),
        messages_bytes: prefix.messages_bytes,
        messages_sha256: prefix.messages_sha256.clone(),
        planned_breaks: prefix.planned_breaks,
        unplanned_breaks: prefix.unplanned_breaks,
        requests: prefix.requests,
        last_break_reason: prefix.last_break_reason.clone(),
    }
}

pub(in crate::grpc) fn usage_from_pb(usage: common::Usage) -> Usage {
    Usage {
        input: usage.input_tokens,
        cached_input: usage.cached_input_tokens,
        cache_write: usage.cache_write_tokens,
        output: usage.output_tokens,
    }
}

pub(in crate::grpc) fn usage_to_pb(usage: Usage) -> common::Usage {
    common::Usage {
        input_tokens: usage.input,
        cached_input_tokens: usage.cached_input,
        cache_write_tokens: usage.cache_write,
        output_tokens: usage.output,
    }
}

/// A call without an expiry gets the default one in the core.
pub(in crate::grpc) fn open_calls_from_pb(calls: Vec<pb::OpenCall>, violations: &mut FieldViolations) -> Vec<OpenCall> {
    let mut open = Vec::with_capacity(calls.len());
    for (at, call) in calls.into_iter().enumerate() {
        match call.call.filter(|named| !named.id.is_empty()) {
            Some(named) => open.push(OpenCall {
                call: tool_call_from_pb(named),
                turn: call.turn,
                expires: call.expire_time.as_ref().map_or(Timestamp::default(), time_from_pb),
            }),
            None => violations.add(format!("open_calls[{at}].call"), "must be a call with an id"),
        }
    }
    open
}

fn open_call_to_pb(open: &OpenCall) -> pb::OpenCall {
    pb::OpenCall {
        call: Some(tool_call_to_pb(&open.call)),
        turn: open.turn.clone(),
        expire_time: Some(time_to_pb(open.expires)),
    }
}

pub(in crate::grpc) fn exposures_from_pb(exposures: Vec<common::Exposure>) -> Vec<Exposure> {
    let each = exposures.into_iter().map(|exposure| Exposure {
        artifact: exposure.artifact,
        revision: exposure.revision,
        stage: exposure.stage,
        assignment_unit: exposure.assignment_unit,
        arm: exposure.arm,
        propensity: exposure.propensity,
    });
    each.collect()
}

fn exposure_to_pb(exposure: &Exposure) -> common::Exposure {
    common::Exposure {
        artifact: exposure.artifact.clone(),
        revision: exposure.revision.clone(),
        stage: exposure.stage.clone(),
        assignment_unit: exposure.assignment_unit.clone(),
        arm: exposure.arm.clone(),
        propensity: exposure.propensity,
    }
}

pub(in crate::grpc) fn turn_update_from_pb(
    update: pb::TurnUpdate,
    violations: &mut FieldViolations,
) -> Option<TurnUpdate> {
    let state = match pb::TurnState::try_from(update.state) {
        Ok(pb::TurnState::Running) => TurnState::Running,
        Ok(pb::TurnState::RequiresAction) => TurnState::RequiresAction,
        Ok(pb::TurnState::Completed) => TurnState::Completed,
        Ok(pb::TurnState::Failed) => TurnState::Failed,
        Ok(pb::TurnState::Interrupted) => TurnState::Interrupted,
        Ok(pb::TurnState::Expired) => TurnState::Expired,
        Ok(pb::TurnState::Unspecified) | Err(_) => {
            violations.add("turn.state", "must be given and known");
            return None;
        }
    };
    Some(TurnUpdate {
        id: update.id,
        state,
        iterations: update.iterations,
        segments: update.segments,
        error_reason: update.error_reason,
        error_message: update.error_message,
    })
}

pub(in crate::grpc) fn turn_to_pb(turn: &Turn) -> pb::Turn {
    let state = match turn.state {
        TurnState::Running => pb::TurnState::Running,
        TurnState::RequiresAction => pb::TurnState::RequiresAction,
        TurnState::Completed => pb::TurnState::Completed,
        TurnState::Failed => pb::TurnState::Failed,
        TurnState::Interrupted => pb::TurnState::Interrupted,
        TurnState::Expired => pb::TurnState::Expired,
    };
    pb::Turn {
        id: turn.id.clone(),
        state: state as i32,
        first_seq: turn.first_seq,
        last_seq: turn.last_seq,
        iterations: turn.iterations,
        error_reason: turn.error_reason.clone(),
        error_message: turn.error_message.clone(),
        create_time: Some(time_to_pb(turn.created)),
        end_time: turn.ended.map(time_to_pb),
        segments: turn.segments,
    }
}
