//! The `state.db` of Hermes: rows of its tables `sessions` and `messages`, as whoever opens the file reads them.
//!
//! Times are seconds since the epoch. Calls are a JSON array in the form of chat completions; a content in several parts is
//! JSON behind a mark. A session that compression went on with, or that was branched, has a parent; what a session's
//! messages were taken out of the context by, columns of later versions say.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::Converted;
use crate::claude_code::text_of;
use crate::draft::{Draft, session_id};
use crate::line::{CallPart, UsagePart};

/// What a content in several parts begins with.
const PARTS_MARK: &str = "\u{0}json:";

/// A row of `sessions`.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct SessionRow {
    /// `id`.
    pub id: String,
    /// `source`: `cli`, `telegram`, `cron` and others.
    pub source: String,
    /// `model`.
    pub model: String,
    /// `system_prompt`.
    pub system_prompt: String,
    /// `title`.
    pub title: String,
    /// `parent_session_id`.
    pub parent: String,
    /// `end_reason`.
    pub end_reason: String,
    /// `started_at`, seconds.
    pub started_at: f64,
    /// `input_tokens`, if that column is there.
    pub input_tokens: Option<i64>,
    /// `output_tokens`, if that column is there.
    pub output_tokens: Option<i64>,
}

/// A row of `messages`.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct MessageRow {
    /// `id`.
    pub id: i64,
    /// `session_id`.
    pub session: String,
    /// `role`.
    pub role: String,
    /// `content`.
    pub content: String,
    /// `tool_call_id`.
    pub tool_call_id: String,
    /// `tool_calls`.
    pub tool_calls: String,
    /// `tool_name`.
    pub tool_name: String,
    /// `timestamp`, seconds.
    pub timestamp: f64,
    /// `active`: not taken back.
    pub is_active: bool,
    /// `compacted`: out of the context, not taken back.
    pub is_compacted: bool,
}

/// Converts rows. `owner` is whose sessions they become; messages are in the order of their ids.
pub fn convert(owner: &str, sessions: &[SessionRow], messages: &[MessageRow]) -> Converted {
    let mut converted = Converted::default();
    let mut by_session: BTreeMap<&str, Vec<&MessageRow>> = BTreeMap::new();
    for message in messages {
        by_session.entry(&message.session).or_default().push(message);
    }
    let known: BTreeMap<&str, &SessionRow> = sessions.iter().map(|row| (row.id.as_str(), row)).collect();
    for row in sessions {
        let mut draft = begin(owner, row, &known);
        for message in by_session.remove(row.id.as_str()).unwrap_or_default() {
            if let Err(problem) = add(&mut draft, message, &row.model) {
                converted.problems.push(format!("message {}: {problem}", message.id));
            }
        }
        converted.sessions.extend(draft.finish());
    }
    for (session, left) in by_session {
        let session: String = session.chars().filter(|char| !char.is_control()).take(64).collect();
        converted.problems.push(format!(
            "{} messages belong to a session {session} that is not there",
            left.len()
        ));
    }
    converted
}

fn begin(owner: &str, row: &SessionRow, known: &BTreeMap<&str, &SessionRow>) -> Draft {
    let id = |id: &str| session_id(owner, "hermes", id);
    let mut draft = Draft::new(id(&row.id));
    draft.title(&row.title);
    let line = draft.line();
    line.model.clone_from(&row.model);
    line.system_prompt.clone_from(&row.system_prompt);
    if row.source == "cron" {
        "schedule".clone_into(&mut line.source);
    }
    line.created = micros(row.started_at);
    if let Some(parent) = known.get(row.parent.as_str()).filter(|parent| parent.id != row.id) {
        line.parent = Some(id(&parent.id));
        line.lineage_reason = Some(reason(parent).to_owned());
        line.root = id(root(row, known));
    }
    draft
}

/// Why a session goes on from this one.
fn reason(parent: &SessionRow) -> &'static str {
    match parent.end_reason.as_str() {
        "compression" | "compressed" => "compression",
        "branched" | "branch" => "branch",
        _ => "reset",
    }
}

/// The first session of the conversation. A circle of parents ends where it began.
fn root<'a>(row: &'a SessionRow, known: &BTreeMap<&str, &'a SessionRow>) -> &'a str {
    let mut at = row;
    for _ in 0..known.len() {
        match known.get(at.parent.as_str()) {
            Some(parent) if reason(parent) != "reset" && parent.id != row.id => at = parent,
            _ => break,
        }
    }
    &at.id
}

fn add(draft: &mut Draft, row: &MessageRow, model: &str) -> Result<(), String> {
    let (text, at) = (said(&row.content), micros(row.timestamp));
    match row.role.as_str() {
        "user" => draft.user(text, at),
        "assistant" => {
            let calls = calls(&row.tool_calls)?;
            draft.assistant(text, calls, model, None::<UsagePart>, at);
        }
        "tool" if row.tool_call_id.is_empty() => return Err("names no call that it answers".to_owned()),
        "tool" => {
            let name = Some(row.tool_name.clone());
            draft.tool(row.tool_call_id.clone(), name, false, text, at);
        }
        // Notes of its program to itself.
        "system" | "session_meta" => return Ok(()),
        _ => return Err("has a role that is not known".to_owned()),
    }
    if let Some(message) = draft.last() {
        message.compacted = row.is_compacted;
        message.rewound = !row.is_active && !row.is_compacted;
    }
    Ok(())
}

fn calls(text: &str) -> Result<Vec<CallPart>, String> {
    if text.is_empty() || text == "null" {
        return Ok(Vec::new());
    }
    let parsed: Value = serde_json::from_str(text).map_err(|_| "has calls that are no JSON".to_owned())?;
    let each = parsed.as_array().into_iter().flatten().filter_map(|call| {
        let function = call.get("function").unwrap_or(call);
        let (id, name) = (text_of(call, "id"), text_of(function, "name"));
        let arguments = match function.get("arguments") {
            Some(Value::String(text)) => text.clone(),
            Some(other) => other.to_string(),
            None => "{}".to_owned(),
        };
        (!id.is_empty() && !name.is_empty()).then(|| CallPart {
            id: id.to_owned(),
            name: name.to_owned(),
            arguments_json: arguments,
            sent_arguments_json: None,
        })
    });
    Ok(each.collect())
}

/// What a person sees of a content.
fn said(content: &str) -> String {
    let Some(parts) = content.strip_prefix(PARTS_MARK) else {
        return content.to_owned();
    };
    let Ok(Value::Array(parts)) = serde_json::from_str::<Value>(parts) else {
        return content.to_owned();
    };
    let each = parts.iter().filter_map(|part| match text_of(part, "type") {
        "text" | "input_text" => Some(text_of(part, "text").to_owned()),
        "image_url" | "input_image" | "image" => Some("[image]".to_owned()),
        _ => None,
    });
    each.collect::<Vec<_>>().join("\n")
}

/// Seconds as microseconds; what is no time is the epoch.
#[expect(clippy::cast_possible_truncation, reason = "the range is checked before")]
fn micros(seconds: f64) -> i64 {
    let micros = (seconds * 1e6).round();
    if micros.is_finite() && (0.0..=2.5e17).contains(&micros) {
        micros as i64
    } else {
        0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn session(id: &str, parent: &str, end_reason: &str) -> SessionRow {
        SessionRow {
            id: id.to_owned(),
            parent: parent.to_owned(),
            end_reason: end_reason.to_owned(),
            started_at: 1_772_359_200.25,
            model: "m".to_owned(),
            ..SessionRow::default()
        }
    }

    fn message(id: i64, session: &str, role: &str, content: &str) -> MessageRow {
        MessageRow {
            id,
            session: session.to_owned(),
            role: role.to_owned(),
            content: content.to_owned(),
            timestamp: 1_772_359_201.0,
            is_active: true,
            ..MessageRow::default()
        }
    }

    #[test]
    fn rows_become_sessions_with_calls_parts_and_marks() {
        let calling = MessageRow {
            tool_calls: r#"[{"id":"c1","type":"function","function":{"name":"terminal","arguments":"{\"command\":\"\u4f60\"}"}}]"#
                .to_owned(),
            ..message(2, "a", "assistant", "I look.")
        };
        let result = MessageRow {
            tool_call_id: "c1".to_owned(),
            ..message(3, "a", "tool", "a teal")
        };
        let undone = MessageRow {
            is_active: false,
            ..message(5, "a", "user", "hunter2")
        };
        let archived = MessageRow {
            is_active: false,
            is_compacted: true,
            ..message(4, "a", "user", "long ago")
        };
        let parts = "\u{0}json:[{\"type\":\"text\",\"text\":\"\\u591a\\u6a21\\u6001\"},{\"type\":\"image_url\"}]";
        let odd = message(6, "a", "narrator", "x");
        let rows = [message(1, "a", "user", parts), calling, result, archived, undone, odd];
        let converted = convert("ann", &[session("a", "", "")], &rows);
        assert_eq!(converted.problems, ["message 6: has a role that is not known"]);
        let line = &converted.sessions[0];
        let texts: Vec<&str> = line.messages.iter().map(|message| message.text.as_str()).collect();
        assert_eq!(texts, ["多模态\n[image]", "I look.", "a teal", "long ago", "hunter2"]);
        assert_eq!(line.messages[1].tool_calls[0].arguments_json, "{\"command\":\"你\"}");
        assert_eq!(line.messages[2].result.clone().unwrap().tool_name, "terminal");
        assert!(line.messages[3].compacted && !line.messages[3].rewound);
        assert!(line.messages[4].rewound && !line.messages[4].compacted);
        assert_eq!(line.created, 1_772_359_200_250_000);
    }

    #[test]
    fn the_reason_of_a_parent_decides_what_is_one_conversation() {
        let sessions = [
            session("a", "", "compression"),
            session("b", "a", "session_reset"),
            session("c", "b", ""),
            session("x", "y", ""),
            session("y", "x", "compression"),
            session("z", "z", "compression"),
        ];
        let rows: Vec<MessageRow> = sessions
            .iter()
            .map(|session| message(1, &session.id, "user", "hello"))
            .collect();
        let lines = convert("ann", &sessions, &rows).sessions;
        assert_eq!(lines[1].lineage_reason.as_deref(), Some("compression"));
        assert_eq!(lines[1].root, lines[0].id);
        assert_eq!(lines[2].lineage_reason.as_deref(), Some("reset"));
        assert_eq!(lines[2].root, lines[2].id, "another conversation begins");
        assert_eq!(
            (lines[5].parent.clone(), lines[5].root.clone()),
            (None, lines[5].id.clone())
        );
    }

    #[test]
    fn messages_without_a_session_are_told() {
        let converted = convert("ann", &[], &[message(1, "gone", "user", "x")]);
        assert_eq!(
            converted.problems,
            ["1 messages belong to a session gone that is not there"]
        );
    }
}
