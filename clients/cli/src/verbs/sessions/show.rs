//! Conversations for people.

use steward_proto::agent::v1 as pb;

use crate::output::{Cell, NAME, Output, SIDE, Tone, first_line, printable, short, time};

pub(super) fn list(output: &mut Output, answer: &pb::ListSessionsResponse) {
    let rows = answer
        .sessions
        .iter()
        .map(|item| {
            let state = if item.open_turn.is_empty() { "" } else { "open" };
            vec![
                Cell::name(short(&item.name)),
                Cell::side(time(item.last_active_time.as_ref())),
                item.last_seq.to_string().into(),
                Cell::state(state),
                item.model.as_str().into(),
                first_line(&item.title, 60).into(),
            ]
        })
        .collect();
    output.table(
        &["session", "last active", "messages", "turn", "model", "title"],
        rows,
        "No conversations yet.",
    );
}

pub(super) fn session(output: &mut Output, session: &pb::Session, prompt: bool) {
    let usage = session.usage.unwrap_or_default();
    let tokens = |count: Option<u64>| count.map_or_else(|| "not reported".to_owned(), |count| count.to_string());
    let open = match session.open_turn.as_str() {
        "" => Cell::default(),
        turn => Cell::toned(short(turn), Tone::Notice),
    };
    let review = if session.skip_review { "never" } else { "" };
    output.record(vec![
        ("name", Cell::name(session.name.as_str())),
        ("title", session.title.as_str().into()),
        ("model", session.model.as_str().into()),
        ("project", session.project.as_str().into()),
        ("created", time(session.create_time.as_ref()).into()),
        ("last active", time(session.last_active_time.as_ref()).into()),
        ("open turn", open),
        ("messages", session.last_seq.to_string().into()),
        ("input tokens", tokens(usage.input_tokens).into()),
        ("of them cached", tokens(usage.cached_input_tokens).into()),
        ("output tokens", tokens(usage.output_tokens).into()),
        ("prefix breaks", breaks(session)),
        ("since memory", format!("{} turns", session.turns_since_memory).into()),
        (
            "since skills",
            format!("{} model calls", session.iterations_since_skill).into(),
        ),
        ("reviewed", review.into()),
        ("learned shown", session.exposures.len().to_string().into()),
    ]);
    if prompt {
        output.line("");
        output.line(&printable(&session.system_prompt));
    }
}

/// A break without a reason is a fault of Steward; one with a reason is somebody's wish.
fn breaks(session: &pb::Session) -> Cell {
    let reason = if session.last_prefix_break_reason.is_empty() {
        String::new()
    } else {
        format!(", the last for another {}", session.last_prefix_break_reason)
    };
    let (planned, unplanned) = (session.planned_prefix_breaks, session.unplanned_prefix_breaks);
    let said = format!("{planned} planned{reason}; {unplanned} unplanned");
    let tone = if unplanned > 0 { Tone::Bad } else { Tone::Plain };
    Cell::toned(said, tone)
}

pub(super) fn messages(output: &mut Output, answer: &pb::ListSessionMessagesResponse) {
    for message in &answer.messages {
        let tools = if message.tools.is_empty() {
            String::new()
        } else {
            format!(" [{}]", message.tools.join(", "))
        };
        let failed = if message.is_error { " failed" } else { "" };
        output.line(&format!(
            "{NAME}{:>4} {}{}{NAME:#}{failed} {SIDE}{}{SIDE:#}",
            message.seq,
            message.role,
            printable(&tools),
            time(message.create_time.as_ref())
        ));
        if !message.text.is_empty() {
            output.line(&printable(&message.text));
        }
    }
}

pub(super) fn pending(output: &mut Output, answer: &pb::ListPendingActionsResponse) {
    let rows = answer
        .actions
        .iter()
        .flat_map(|action| {
            action.calls.iter().map(|call| {
                vec![
                    Cell::name(short(&action.session)),
                    call.tool.as_str().into(),
                    first_line(&call.arguments_json, 60).into(),
                    Cell::side(time(call.expire_time.as_ref())),
                ]
            })
        })
        .collect();
    output.table(
        &["session", "tool", "arguments", "until"],
        rows,
        "Nothing waits for you.",
    );
    if !answer.actions.is_empty() {
        output.aside("`steward chat --session SESSION` answers; `steward sessions stop SESSION` closes");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_break_without_a_reason_stands_out() {
        let mut session = pb::Session {
            planned_prefix_breaks: 2,
            last_prefix_break_reason: "model".to_owned(),
            ..pb::Session::default()
        };
        let planned = breaks(&session);
        assert_eq!(planned.text, "2 planned, the last for another model; 0 unplanned");
        assert_eq!(planned.tone, Tone::Plain);
        session.unplanned_prefix_breaks = 1;
        assert_eq!(breaks(&session).tone, Tone::Bad);
    }
}
