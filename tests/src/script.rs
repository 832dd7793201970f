//! Scripted models: pure functions of what arrived. A script never keeps state, so it answers the same to whichever
//! process asks, before and after a crash.

use serde_json::{Value, json};
use steward_testkit::{RecordedRequest, Reply, ScriptedCall};

/// The messages of a request, whichever protocol it speaks, in the form of chat completions: one role and one text each,
/// results of tools apart from what people say.
pub fn messages(request: &RecordedRequest) -> Vec<Value> {
    request.messages().into_iter().flat_map(plain).collect()
}

fn plain(message: Value) -> Vec<Value> {
    let Some(blocks) = message["content"].as_array() else {
        return vec![message];
    };
    if message["role"] == "assistant" {
        let text: String = blocks.iter().filter_map(|block| block["text"].as_str()).collect();
        return vec![json!({"role": "assistant", "content": text})];
    }
    let plain = |block: &Value| match block["type"].as_str() {
        Some("tool_result") => {
            json!({"role": "tool", "tool_call_id": block["tool_use_id"], "content": block["content"]})
        }
        _ => json!({"role": message["role"], "content": block["text"]}),
    };
    blocks.iter().map(plain).collect()
}

/// Whether the request is a review's.
pub fn is_review(request: &RecordedRequest) -> bool {
    review_text(request).is_some()
}

/// The review's own message, with its rubric and data.
pub fn review_text(request: &RecordedRequest) -> Option<String> {
    let messages = messages(request);
    messages
        .iter()
        .rev()
        .find(|message| message["role"] == "user")
        .and_then(|message| message["content"].as_str())
        .filter(|text| text.contains("</review_data>"))
        .map(str::to_owned)
}

/// Messages after the last one of the person: what the model itself has done since.
pub fn since_user(request: &RecordedRequest) -> Vec<Value> {
    let messages = messages(request);
    let last = messages
        .iter()
        .rposition(|message| message["role"] == "user")
        .map_or(0, |index| index + 1);
    messages[last..].to_vec()
}

/// Text of the last message of the person.
pub fn asked(request: &RecordedRequest) -> String {
    let messages = messages(request);
    messages
        .iter()
        .rev()
        .find(|message| message["role"] == "user")
        .and_then(|message| message["content"].as_str())
        .unwrap_or_default()
        .to_owned()
}

/// Id of the first span whose opening words contain `words`.
pub fn span_with(request: &RecordedRequest, words: &str) -> Option<String> {
    let text = review_text(request)?;
    let data = &text[text.find("<review_data>")?..];
    let line = data
        .lines()
        .find(|line| line.starts_with('s') && line.contains(words))?;
    line.split_whitespace().next().map(str::to_owned)
}

/// A review that ends with nothing to save.
pub fn nothing_to_save() -> Reply {
    let verdict = json!({"result": "no_change", "writes": [], "used_skills": [],
        "rejected": [{"candidate": "the small talk", "reason": "nothing lasting"}]});
    Reply::text(verdict.to_string())
}

/// The last message of a review that wrote something.
pub fn changed() -> Reply {
    Reply::text(json!({"result": "changed", "writes": [], "used_skills": [], "rejected": []}).to_string())
}

/// A call of the memory tool by a review.
pub fn add_note(id: &str, content: &str, span: &str) -> ScriptedCall {
    let arguments = json!({"action": "add", "target": "notes", "content": content, "evidence": [span],
        "basis": "stated", "why": "Next time, when this comes up, the agent will know instead of asking."});
    ScriptedCall::new(id, "memory", arguments.to_string())
}

/// A call of skill_manage by a review that makes a skill.
pub fn create_skill(id: &str, name: &str, body: &str, span: &str) -> ScriptedCall {
    let arguments = json!({"action": "create", "name": name, "content": skill_text(name, body), "evidence": [span],
        "basis": "stated", "why": "Next time, when this work comes up, the agent will follow it instead of guessing."});
    ScriptedCall::new(id, "skill_manage", arguments.to_string())
}

/// A whole SKILL.md.
pub fn skill_text(name: &str, body: &str) -> String {
    format!("---\nname: {name}\ndescription: Do {name} the way it works\n---\n\n# {name}\n\n{body}\n")
}

/// The script of most scenarios: answers persons with an echo; as a reviewer keeps what a person said after
/// "Remember:", once as a note and once as a skill named `kept-lesson`.
pub fn learner(request: &RecordedRequest) -> Reply {
    if !is_review(request) {
        return Reply::text(format!("You said: {}", asked(request)));
    }
    if !since_user(request).is_empty() {
        return changed();
    }
    let lesson = messages(request)
        .iter()
        .filter(|message| message["role"] == "user")
        .filter_map(|message| message["content"].as_str())
        .filter(|text| !text.contains("</review_data>"))
        .find_map(|text| text.split("Remember: ").nth(1).map(str::to_owned));
    match lesson.zip(span_with(request, "Remember:")) {
        Some((lesson, span)) => Reply::calls([
            add_note("note", &lesson, &span),
            create_skill("skill", "kept-lesson", &format!("Always mind: {lesson}"), &span),
        ]),
        None => nothing_to_save(),
    }
}
