//! What a review says at its end. People are never told of it: they hear of the writes that a store has acknowledged
//! (`R-8`).

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// The JSON object at the end of a review. Unknown fields and malformed items are passed over.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Verdict {
    /// Whether the model says that it changed something.
    pub changed: bool,
    /// How each skill that was open did.
    pub used_skills: Vec<UsedSkill>,
    /// Candidates that were turned down: what, and why.
    pub rejected: Vec<(String, String)>,
}

/// How a skill did in the reviewed conversation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct UsedSkill {
    /// Name of the skill.
    pub skill: String,
    /// The line that mattered, as the model names it.
    #[serde(default)]
    pub line: String,
    /// What it did.
    pub label: SkillLabel,
    /// Ids of the spans that show it.
    #[serde(default)]
    pub evidence: Vec<String>,
}

/// What a skill did.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SkillLabel {
    /// It helped.
    Helped,
    /// It misled.
    Misled,
    /// Neither.
    NoEffect,
}

/// Reads the last JSON object with a `result` in the review's last message; `None` when there is none. What stands inside
/// another object is not one of its own.
pub fn parse_verdict(text: &str) -> Option<Verdict> {
    let (mut object, mut at) = (None, 0);
    while let Some(start) = text.get(at..).and_then(|rest| rest.find('{')).map(|brace| at + brace) {
        let mut documents = serde_json::Deserializer::from_str(&text[start..]).into_iter::<Map<String, Value>>();
        at = start + 1;
        if let Some(Ok(found)) = documents.next() {
            at = start + documents.byte_offset();
            object = Some(found).filter(|found| found.contains_key("result")).or(object);
        }
    }
    let object = object?;
    let list = |field: &str| object.get(field).and_then(Value::as_array).cloned().unwrap_or_default();
    let text_of = |item: &Value, field: &str| item.get(field)?.as_str().map(str::to_owned);
    Some(Verdict {
        changed: object.get("result").and_then(Value::as_str) == Some("changed"),
        used_skills: list("used_skills")
            .into_iter()
            .filter_map(|item| serde_json::from_value(item).ok())
            .collect(),
        rejected: list("rejected")
            .iter()
            .filter_map(|item| Some((text_of(item, "candidate")?, text_of(item, "reason").unwrap_or_default())))
            .collect(),
    })
}
