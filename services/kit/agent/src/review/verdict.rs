//! What a review says at its end, and what people are told about it. The two are not the same: people are told of writes
//! that a store has acknowledged, never of what the model claims (`R-8`).

use serde::{Deserialize, Serialize};

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

/// Reads the last JSON object of the review's last message; `None` when there is none.
pub fn parse_verdict(text: &str) -> Option<Verdict> {
    let starts = text.match_indices('{').map(|(at, _)| at);
    let object = starts
        .filter_map(|at| first_object(&text[at..]))
        .find(|object| object.contains_key("result"))?;
    let list = |field: &str| {
        object
            .get(field)
            .and_then(serde_json::Value::as_array)
            .cloned()
            .unwrap_or_default()
    };
    let text_of = |item: &serde_json::Value, field: &str| item.get(field)?.as_str().map(str::to_owned);
    Some(Verdict {
        changed: object.get("result").and_then(serde_json::Value::as_str) == Some("changed"),
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

fn first_object(text: &str) -> Option<serde_json::Map<String, serde_json::Value>> {
    serde_json::Deserializer::from_str(text).into_iter().next()?.ok()
}

/// One acknowledged write of a review.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WriteNote {
    /// A memory store was changed.
    Memory {
        /// `profile` or `notes`.
        target: String,
    },
    /// A skill was changed.
    Skill {
        /// Its name.
        name: String,
        /// The action of `skill_manage`.
        action: String,
    },
}

/// One line for people; each kind of write is named once. Empty when nothing was written.
pub fn summary(writes: &[WriteNote]) -> String {
    let mut parts: Vec<String> = Vec::new();
    for write in writes {
        let part = match write {
            WriteNote::Memory { target } if target == "profile" => "Profile updated".to_owned(),
            WriteNote::Memory { .. } => "Memory updated".to_owned(),
            WriteNote::Skill { name, action } => format!("Skill '{name}' {}", past(action)),
        };
        if !parts.contains(&part) {
            parts.push(part);
        }
    }
    parts.join(" · ")
}

fn past(action: &str) -> &'static str {
    match action {
        "create" => "created",
        "patch" => "patched",
        "delete" => "archived",
        "write_file" => "extended",
        "remove_file" => "trimmed",
        _ => "updated",
    }
}
