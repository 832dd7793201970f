//! Session files of Claude Code: one JSON object a line, one file a session, found below `~/.claude/projects`.
//!
//! A reply of the model comes as one line per block; lines with the same message id are one message. Side chains (its
//! sub-agents) and what its program only shows are left out. Text is taken as it is; pictures become a word that says so,
//! thoughts are left out.

use serde_json::Value;
use steward_base::Timestamp;

use crate::Converted;
use crate::draft::{Draft, session_id};
use crate::line::{CallPart, UsagePart};

/// Converts one file. `owner` is whose sessions they become; `name` stands for a session whose lines do not name one.
pub fn convert(owner: &str, name: &str, text: &[u8]) -> Converted {
    let mut converted = Converted::default();
    let mut reading = Reading::default();
    for (at, line) in text.split(|byte| *byte == b'\n').enumerate() {
        if line.iter().all(u8::is_ascii_whitespace) {
            continue;
        }
        match serde_json::from_slice::<Value>(line) {
            Ok(Value::Object(entry)) => reading.take(owner, name, &Value::Object(entry)),
            Ok(_) => converted.problems.push(format!("line {}: is no object", at + 1)),
            Err(_) => converted.problems.push(format!("line {}: is no JSON", at + 1)),
        }
    }
    converted.sessions.extend(reading.finish());
    converted
}

#[derive(Debug, Default)]
struct Reading {
    draft: Option<Draft>,
    title: Option<String>,
    /// Id of the model's message that the last line belonged to.
    reply: String,
    last_time: i64,
}

impl Reading {
    fn take(&mut self, owner: &str, name: &str, entry: &Value) {
        let kind = text_of(entry, "type");
        if matches!(kind, "summary" | "ai-title" | "custom-title") {
            let title = ["customTitle", "aiTitle", "summary"]
                .iter()
                .map(|field| text_of(entry, field))
                .find(|title| !title.is_empty());
            // What a person chose stands against what a program wrote.
            if self.title.is_none() || kind == "custom-title" {
                self.title = title.map(str::to_owned).or(self.title.take());
            }
            return;
        }
        let is_set = |field: &str| entry.get(field).and_then(Value::as_bool).unwrap_or(false);
        if is_set("isSidechain") || is_set("isMeta") || !matches!(kind, "user" | "assistant") {
            return;
        }
        let at = entry.get("timestamp").and_then(Value::as_str).and_then(micros);
        self.last_time = at.unwrap_or(self.last_time).max(self.last_time);
        let id = match text_of(entry, "sessionId") {
            "" => name,
            id => id,
        };
        let draft = self
            .draft
            .get_or_insert_with(|| Draft::new(session_id(owner, "claude-code", id)));
        let message = entry.get("message").unwrap_or(&Value::Null);
        if kind == "assistant" {
            assistant(draft, &mut self.reply, message, self.last_time);
        } else {
            self.reply.clear();
            user(draft, message, self.last_time);
        }
    }

    fn finish(self) -> Option<crate::SessionLine> {
        let mut draft = self.draft?;
        if let Some(title) = &self.title {
            draft.title(title);
        }
        draft.finish()
    }
}

fn user(draft: &mut Draft, message: &Value, at: i64) {
    let content = message.get("content").unwrap_or(&Value::Null);
    if let Value::String(text) = content {
        draft.user(text.clone(), at);
        return;
    }
    let mut said = Vec::new();
    for block in blocks(content) {
        if text_of(block, "type") == "tool_result" {
            let call_id = text_of(block, "tool_use_id").to_owned();
            let is_error = block.get("is_error").and_then(Value::as_bool).unwrap_or(false);
            let text = plain(block.get("content").unwrap_or(&Value::Null));
            if !call_id.is_empty() {
                draft.tool(call_id, None, is_error, text, at);
            }
        } else {
            said.extend(shown(block));
        }
    }
    if !said.is_empty() {
        draft.user(said.join("\n"), at);
    }
}

fn assistant(draft: &mut Draft, reply: &mut String, message: &Value, at: i64) {
    let content = message.get("content").unwrap_or(&Value::Null);
    let text = plain(content);
    let calls: Vec<CallPart> = blocks(content)
        .filter(|block| text_of(block, "type") == "tool_use")
        .filter_map(call)
        .collect();
    let id = text_of(message, "id");
    let goes_on = !id.is_empty() && *reply == id;
    if goes_on && let Some(open) = draft.open_message() {
        if !text.is_empty() && !open.text.is_empty() {
            open.text.push('\n');
        }
        open.text.push_str(&text);
        open.tool_calls.extend(calls.iter().cloned());
        for call in &calls {
            draft.name_call(call);
        }
        return;
    }
    if text.is_empty() && calls.is_empty() {
        return;
    }
    id.clone_into(reply);
    draft.assistant(text, calls, text_of(message, "model"), usage(message), at);
}

fn call(block: &Value) -> Option<CallPart> {
    let (id, name) = (text_of(block, "id"), text_of(block, "name"));
    (!id.is_empty() && !name.is_empty()).then(|| CallPart {
        id: id.to_owned(),
        name: name.to_owned(),
        arguments_json: block.get("input").map_or_else(|| "{}".to_owned(), Value::to_string),
        sent_arguments_json: None,
    })
}

/// Cached tokens are counted apart there; here all input is one number.
fn usage(message: &Value) -> Option<UsagePart> {
    let usage = message.get("usage")?;
    let number = |field: &str| usage.get(field).and_then(Value::as_u64);
    let (read, written) = (number("cache_read_input_tokens"), number("cache_creation_input_tokens"));
    let fresh = number("input_tokens")?;
    Some(UsagePart {
        input: Some(
            fresh
                .saturating_add(read.unwrap_or(0))
                .saturating_add(written.unwrap_or(0)),
        ),
        cached_input: read,
        cache_write: written,
        output: number("output_tokens"),
    })
}

fn blocks(content: &Value) -> impl Iterator<Item = &Value> {
    content.as_array().into_iter().flatten()
}

/// What a person sees of a content.
fn plain(content: &Value) -> String {
    match content {
        Value::String(text) => text.clone(),
        other => blocks(other).filter_map(shown).collect::<Vec<_>>().join("\n"),
    }
}

fn shown(block: &Value) -> Option<String> {
    match text_of(block, "type") {
        "text" => Some(text_of(block, "text").to_owned()),
        "image" => {
            let media = block.pointer("/source/media_type").and_then(Value::as_str);
            Some(format!("[image: {}]", media.unwrap_or("unknown")))
        }
        "document" => Some("[document]".to_owned()),
        _ => None,
    }
}

pub(crate) fn text_of<'a>(value: &'a Value, field: &str) -> &'a str {
    value.get(field).and_then(Value::as_str).unwrap_or_default()
}

/// Microseconds of `2026-11-30T08:15:00.123Z`; `None` for anything else.
fn micros(text: &str) -> Option<i64> {
    let text = text.strip_suffix('Z')?;
    let (date, time) = text.split_once('T')?;
    let mut parts = date.split('-').map(str::parse::<i64>);
    let (year, month, day) = (parts.next()?.ok()?, parts.next()?.ok()?, parts.next()?.ok()?);
    let mut parts = time.split(':');
    let (hour, minute) = (parts.next()?.parse::<i64>().ok()?, parts.next()?.parse::<i64>().ok()?);
    let (second, fraction) = parts.next()?.split_once('.').unwrap_or((time.rsplit(':').next()?, "0"));
    let second = second.parse::<i64>().ok()?;
    let fraction: String = fraction.chars().chain("000000".chars()).take(6).collect();
    let fraction = fraction.parse::<i64>().ok()?;
    let is_date = (1970..=9_999).contains(&year) && (1..=12).contains(&month) && (1..=31).contains(&day);
    let is_time = (0..24).contains(&hour) && (0..60).contains(&minute) && (0..61).contains(&second);
    if !is_date || !is_time || fraction < 0 {
        return None;
    }
    // Days since the epoch by the civil calendar, with years that begin in March.
    let shifted = if month <= 2 { year - 1 } else { year };
    let (era, of_era) = (shifted / 400, shifted % 400);
    let day_of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    let days = era * 146_097 + of_era * 365 + of_era / 4 - of_era / 100 + day_of_year - 719_468;
    let seconds = days * 86_400 + hour * 3_600 + minute * 60 + second;
    Some(Timestamp::from_micros(seconds * 1_000_000 + fraction).as_micros())
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: &str = r#"
{"type":"summary","summary":"Ducks and   drakes","leafUuid":"x"}
{"type":"user","sessionId":"abc","timestamp":"2026-03-01T10:00:00.250Z","message":{"role":"user","content":"what is in the pond?"}}
{"type":"assistant","sessionId":"abc","timestamp":"2026-03-01T10:00:01Z","message":{"id":"m1","model":"claude-x","role":"assistant","content":[{"type":"thinking","thinking":"hm"}],"usage":{"input_tokens":5,"cache_read_input_tokens":7,"output_tokens":3}}}
{"type":"assistant","sessionId":"abc","timestamp":"2026-03-01T10:00:01Z","message":{"id":"m1","model":"claude-x","role":"assistant","content":[{"type":"text","text":"I look."}],"usage":{"input_tokens":5,"cache_read_input_tokens":7,"output_tokens":3}}}
{"type":"assistant","sessionId":"abc","timestamp":"2026-03-01T10:00:02Z","message":{"id":"m1","role":"assistant","content":[{"type":"tool_use","id":"c1","name":"Bash","input":{"command":"ls","n":1}}]}}
{"type":"user","sessionId":"abc","timestamp":"2026-03-01T10:00:03Z","message":{"role":"user","content":[{"type":"tool_result","tool_use_id":"c1","content":[{"type":"text","text":"a teal"}]}]}}
{"type":"user","isSidechain":true,"sessionId":"abc","message":{"role":"user","content":"not this"}}
{"type":"user","isMeta":true,"sessionId":"abc","message":{"role":"user","content":"nor this"}}
not json
{"type":"assistant","sessionId":"abc","timestamp":"2026-03-01T10:00:04Z","message":{"id":"m2","model":"claude-x","role":"assistant","content":[{"type":"text","text":"A teal."}]}}
{"type":"user","sessionId":"abc","timestamp":"2026-03-01T10:01:00Z","message":{"role":"user","content":[{"type":"image","source":{"media_type":"image/png","data":"xxxx"}},{"type":"text","text":"and this?"}]}}
"#;

    #[test]
    fn a_file_becomes_a_session_and_a_bad_line_is_told() {
        let converted = convert("teams/red/users/ann", "file", FILE.as_bytes());
        assert_eq!(converted.problems, ["line 10: is no JSON"]);
        let session = &converted.sessions[0];
        assert_eq!(
            (session.title.as_str(), session.source.as_str()),
            ("Ducks and drakes", "import")
        );
        let told: Vec<_> = session
            .messages
            .iter()
            .map(|message| {
                (
                    message.seq,
                    message.role.as_str(),
                    message.text.as_str(),
                    message.turn.as_str(),
                )
            })
            .collect();
        assert_eq!(
            told,
            [
                (1, "user", "what is in the pond?", "import-1"),
                (2, "assistant", "I look.", "import-1"),
                (3, "tool", "a teal", "import-1"),
                (4, "assistant", "A teal.", "import-1"),
                (5, "user", "[image: image/png]\nand this?", "import-2"),
            ]
        );
        assert_eq!(
            session.messages[1].tool_calls[0].arguments_json,
            r#"{"command":"ls","n":1}"#
        );
        assert_eq!(session.messages[1].model, "claude-x");
        let result = session.messages[2].result.clone().unwrap();
        assert_eq!((result.call_id.as_str(), result.tool_name.as_str()), ("c1", "Bash"));
        assert_eq!(session.messages[0].created, 1_772_359_200_250_000);
        assert_eq!(session.created, session.messages[0].created);
        assert_eq!(session.usage.input, Some(12));
        assert_eq!(session.counters.user_turns, 2);
    }

    #[test]
    fn the_id_is_the_same_for_one_person_and_no_other() {
        let of = |owner: &str| convert(owner, "file", FILE.as_bytes()).sessions[0].id.clone();
        assert_eq!(of("teams/red/users/ann"), of("teams/red/users/ann"));
        assert_ne!(of("teams/red/users/ann"), of("teams/red/users/bob"));
        assert_eq!(of("x").len(), 32);
    }

    #[test]
    fn times_are_read_and_odd_ones_are_none() {
        assert_eq!(micros("1970-01-01T00:00:00Z"), Some(0));
        assert_eq!(micros("2000-02-29T23:59:59.000001Z"), Some(951_868_799_000_001));
        for odd in [
            "",
            "2026-13-01T00:00:00Z",
            "2026-01-01",
            "2026-01-01T00:00:00+01:00",
            "T:Z",
            "--T::Z",
        ] {
            assert_eq!(micros(odd), None, "{odd}");
        }
    }
}
