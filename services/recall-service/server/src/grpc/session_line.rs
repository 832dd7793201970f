//! Between sessions as they are stored and as they stand on a line of a file.

use steward_base::names::{SessionId, TeamId, UserId};
use steward_base::{FieldViolations, Integrity, Timestamp};
use steward_recall_core::import_session::WholeSession;
use steward_recall_core::lease::Lease;
use steward_recall_core::message::{Message, Native, NewMessage, Replaced, Role, ToolCall, ToolResult};
use steward_recall_core::session::{
    ClientTool, Counters, Exposure, Frozen, Lineage, LineageReason, OpenCall, PrefixState, Session, SessionSource,
    Usage,
};
use steward_recall_core::turn::{Turn, TurnState};
use steward_recall_exchange::line::{
    CallPart, ClientToolPart, CountersPart, ExposurePart, MessagePart, NativePart, OpenCallPart, PrefixPart, RangePart,
    ResultPart, TurnPart, UsagePart,
};
use steward_recall_exchange::{FORMAT, SessionLine};

/// The line of a session, without its messages.
pub(super) fn line_of(session: &Session, turns: &[Turn]) -> SessionLine {
    let lineage = session.lineage.as_ref();
    SessionLine {
        format: FORMAT.to_owned(),
        id: session.id.to_string(),
        source: session.source.as_str().to_owned(),
        title: session.title.clone(),
        parent: lineage.map(|lineage| lineage.parent.to_string()),
        lineage_reason: lineage.map(|lineage| lineage.reason.as_str().to_owned()),
        root: session.root.to_string(),
        project: session.project.clone(),
        model: session.frozen.model.clone(),
        system_prompt: session.frozen.system_prompt.clone(),
        stable_prompt_bytes: session.frozen.stable_prompt_bytes,
        tools_json: session.frozen.tools_json.clone(),
        client_tools: session.frozen.client_tools.iter().map(client_tool_part).collect(),
        setup: hex::encode(&session.frozen.setup),
        skip_review: session.skip_review,
        skip_memory: session.skip_memory,
        counters: CountersPart {
            turns_since_memory: session.counters.turns_since_memory,
            iterations_since_skill: session.counters.iterations_since_skill,
            user_turns: session.counters.user_turns,
        },
        prefix: prefix_part(&session.prefix),
        usage: usage_part(session.usage),
        open_calls: session.open_calls.iter().map(open_call_part).collect(),
        open_turn: session.open_turn.clone(),
        exposures: session.exposures.iter().map(exposure_part).collect(),
        lowest_integrity: session.lowest_integrity,
        created: session.created.as_micros(),
        last_active: session.last_active.as_micros(),
        revision: session.revision,
        turns: turns.iter().map(turn_part).collect(),
        messages: Vec::new(),
    }
}

fn client_tool_part(tool: &ClientTool) -> ClientToolPart {
    ClientToolPart {
        name: tool.name.clone(),
        integrity: tool.integrity,
    }
}

fn prefix_part(prefix: &PrefixState) -> PrefixPart {
    PrefixPart {
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

fn usage_part(usage: Usage) -> UsagePart {
    UsagePart {
        input: usage.input,
        cached_input: usage.cached_input,
        cache_write: usage.cache_write,
        output: usage.output,
    }
}

fn usage(part: UsagePart) -> Usage {
    Usage {
        input: part.input,
        cached_input: part.cached_input,
        cache_write: part.cache_write,
        output: part.output,
    }
}

fn call_part(call: &ToolCall) -> CallPart {
    CallPart {
        id: call.id.clone(),
        name: call.name.clone(),
        arguments_json: call.arguments_json.clone(),
        sent_arguments_json: call.sent_arguments_json.clone(),
    }
}

fn call(part: CallPart) -> ToolCall {
    ToolCall {
        id: part.id,
        name: part.name,
        arguments_json: part.arguments_json,
        sent_arguments_json: part.sent_arguments_json,
    }
}

fn open_call_part(open: &OpenCall) -> OpenCallPart {
    OpenCallPart {
        call: call_part(&open.call),
        turn: open.turn.clone(),
        expires: open.expires.as_micros(),
    }
}

fn exposure_part(exposure: &Exposure) -> ExposurePart {
    ExposurePart {
        artifact: exposure.artifact.clone(),
        revision: exposure.revision.clone(),
        stage: exposure.stage.clone(),
        assignment_unit: exposure.assignment_unit.clone(),
        arm: exposure.arm.clone(),
        propensity: exposure.propensity,
    }
}

fn turn_part(turn: &Turn) -> TurnPart {
    TurnPart {
        id: turn.id.clone(),
        state: turn.state.as_str().to_owned(),
        first_seq: turn.first_seq,
        last_seq: turn.last_seq,
        iterations: turn.iterations,
        segments: turn.segments,
        error_reason: turn.error_reason.clone(),
        error_message: turn.error_message.clone(),
        created: turn.created.as_micros(),
        ended: turn.ended.map(Timestamp::as_micros),
    }
}

/// A message of a line.
pub(super) fn message_part(message: &Message) -> MessagePart {
    let body = &message.body;
    MessagePart {
        seq: message.seq,
        role: body.role.as_str().to_owned(),
        text: body.text.clone(),
        sent_text: body.sent_text.clone(),
        tool_calls: body.tool_calls.iter().map(call_part).collect(),
        result: body.result.as_ref().map(|result| ResultPart {
            call_id: result.call_id.clone(),
            tool_name: result.tool_name.clone(),
            is_error: result.is_error,
        }),
        spans: body.spans.clone(),
        usage: body.usage.map(usage_part),
        turn: body.turn.clone(),
        native: body.native.as_ref().map(|native| NativePart {
            provider: native.provider.clone(),
            model: native.model.clone(),
            blocks_json: native.blocks_json.clone(),
        }),
        model: message.model.clone(),
        integrity: message.integrity,
        rewound: message.rewound,
        compacted: message.compacted,
        replaces: message.replaces.map(|replaced| RangePart {
            from: replaced.from,
            to: replaced.to,
        }),
        created: message.created.as_micros(),
    }
}

/// The session of a line, as this user's.
pub(super) fn whole_session(line: SessionLine, team: &TeamId, user: &UserId) -> Result<WholeSession, FieldViolations> {
    let mut violations = FieldViolations::new();
    let lineage = lineage(&line, &mut violations);
    let id = violations.take("id", SessionId::parse(line.id.clone()));
    let root = match line.root.as_str() {
        "" => id.clone(),
        root => violations.take("root", SessionId::parse(root.to_owned())),
    };
    let source = SessionSource::parse(&line.source);
    if source.is_none() {
        violations.add("source", "must be chat, schedule or import");
    }
    let setup = hex::decode(&line.setup).unwrap_or_else(|_| {
        violations.add("setup", "must be hexadecimal digits");
        Vec::new()
    });
    let turns: Vec<Turn> = line
        .turns
        .into_iter()
        .enumerate()
        .filter_map(|(at, part)| turn(part, at, &mut violations))
        .collect();
    let messages: Vec<Message> = line
        .messages
        .into_iter()
        .enumerate()
        .filter_map(|(at, part)| message(part, at, &mut violations))
        .collect();
    let (Some(id), Some(root), Some(source), true) = (id, root, source, violations.as_slice().is_empty()) else {
        return Err(violations);
    };
    let session = Session {
        team: team.clone(),
        id,
        user: user.clone(),
        source,
        title: line.title,
        lineage,
        root,
        project: line.project,
        frozen: Frozen {
            model: line.model,
            system_prompt: line.system_prompt,
            tools_json: line.tools_json,
            client_tools: line.client_tools.into_iter().map(client_tool).collect(),
            stable_prompt_bytes: line.stable_prompt_bytes,
            setup,
        },
        skip_review: line.skip_review,
        skip_memory: line.skip_memory,
        counters: Counters {
            turns_since_memory: line.counters.turns_since_memory,
            iterations_since_skill: line.counters.iterations_since_skill,
            user_turns: line.counters.user_turns,
        },
        prefix: prefix(line.prefix),
        usage: usage(line.usage),
        last_seq: messages.len() as u64,
        open_calls: line.open_calls.into_iter().map(open_call).collect(),
        exposures: line.exposures.into_iter().map(exposure).collect(),
        lowest_integrity: line.lowest_integrity,
        open_turn: line.open_turn,
        lease: Lease::default(),
        created: Timestamp::from_micros(line.created),
        last_active: Timestamp::from_micros(line.last_active),
        revision: line.revision.max(1),
    };
    Ok(WholeSession {
        session,
        turns,
        messages,
    })
}

fn lineage(line: &SessionLine, violations: &mut FieldViolations) -> Option<Lineage> {
    let parent = line.parent.clone()?;
    let parent = violations.take("parent", SessionId::parse(parent))?;
    let reason = line.lineage_reason.as_deref().and_then(LineageReason::parse);
    let Some(reason) = reason else {
        violations.add("lineage_reason", "must be reset, compression, delegation or branch");
        return None;
    };
    Some(Lineage { parent, reason })
}

fn client_tool(part: ClientToolPart) -> ClientTool {
    ClientTool {
        name: part.name,
        integrity: part.integrity.min(Integrity::Workspace),
    }
}

fn prefix(part: PrefixPart) -> PrefixState {
    PrefixState {
        tools_sha256: part.tools_sha256,
        system_sha256: part.system_sha256,
        messages_bytes: part.messages_bytes,
        messages_sha256: part.messages_sha256,
        planned_breaks: part.planned_breaks,
        unplanned_breaks: part.unplanned_breaks,
        requests: part.requests,
        last_break_reason: part.last_break_reason,
    }
}

fn open_call(part: OpenCallPart) -> OpenCall {
    OpenCall {
        call: call(part.call),
        turn: part.turn,
        expires: Timestamp::from_micros(part.expires),
    }
}

fn exposure(part: ExposurePart) -> Exposure {
    Exposure {
        artifact: part.artifact,
        revision: part.revision,
        stage: part.stage,
        assignment_unit: part.assignment_unit,
        arm: part.arm,
        propensity: part.propensity,
    }
}

fn turn(part: TurnPart, at: usize, violations: &mut FieldViolations) -> Option<Turn> {
    let Some(state) = TurnState::parse(&part.state) else {
        violations.add(format!("turns[{at}].state"), "is unknown");
        return None;
    };
    Some(Turn {
        id: part.id,
        state,
        first_seq: part.first_seq,
        last_seq: part.last_seq,
        iterations: part.iterations,
        segments: part.segments,
        error_reason: part.error_reason,
        error_message: part.error_message,
        created: Timestamp::from_micros(part.created),
        ended: part.ended.map(Timestamp::from_micros),
    })
}

fn message(part: MessagePart, at: usize, violations: &mut FieldViolations) -> Option<Message> {
    let Some(role) = Role::parse(&part.role) else {
        violations.add(format!("messages[{at}].role"), "must be user, assistant or tool");
        return None;
    };
    Some(Message {
        seq: part.seq,
        body: NewMessage {
            role,
            text: part.text,
            sent_text: part.sent_text,
            tool_calls: part.tool_calls.into_iter().map(call).collect(),
            result: part.result.map(|result| ToolResult {
                call_id: result.call_id,
                tool_name: result.tool_name,
                is_error: result.is_error,
            }),
            spans: part.spans,
            usage: part.usage.map(usage),
            turn: part.turn,
            native: part.native.map(|native| Native {
                provider: native.provider,
                model: native.model,
                blocks_json: native.blocks_json,
            }),
        },
        model: part.model,
        integrity: part.integrity,
        rewound: part.rewound,
        compacted: part.compacted,
        replaces: part.replaces.map(|range| Replaced {
            from: range.from,
            to: range.to,
        }),
        created: Timestamp::from_micros(part.created),
    })
}
