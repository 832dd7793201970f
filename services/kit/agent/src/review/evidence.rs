//! What a review's write rests on, checked against the conversation: the rubric explains the rule, this enforces it.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use steward_base::{Integrity, SpanOrigin};

use crate::digest::cut;

use super::spans::{SpanRef, SpanTable};

/// Characters of an id that a refusal repeats.
const SHOWN_ID: usize = 40;

/// The grade of a write's evidence.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Basis {
    /// A person said it should be so.
    Stated,
    /// A tool result shows it.
    Checked,
    /// It happened here and nothing confirms why.
    SeenOnce,
}

/// The accepted evidence of a write.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Evidence {
    /// The cited spans, each once.
    pub spans: Vec<SpanRef>,
    /// Its grade.
    pub basis: Basis,
    /// The lowest integrity among the cited spans: what the write inherits.
    pub integrity: Integrity,
}

/// Reads `evidence` and `basis` off a write's arguments.
///
/// # Errors
/// The refusal to give to the model.
pub(super) fn check(arguments: &Map<String, Value>, table: &SpanTable) -> Result<Evidence, String> {
    let cited: Vec<&str> = match arguments.get("evidence") {
        Some(Value::Array(ids)) if ids.iter().all(Value::is_string) => {
            ids.iter().filter_map(Value::as_str).map(str::trim).collect()
        }
        Some(Value::Array(_)) => return Err(refusal("its evidence must be a list of span ids and nothing else")),
        _ => Vec::new(),
    };
    if cited.is_empty() {
        return Err(refusal(
            "it cites no span; give the ids of the spans it rests on as evidence",
        ));
    }
    let unknown: Vec<String> = cited
        .iter()
        .filter(|id| table.get(id).is_none())
        .take(10)
        .map(|id| cut(id, SHOWN_ID))
        .collect();
    if !unknown.is_empty() {
        return Err(refusal(&format!(
            "these ids are not in the list of spans: {}",
            unknown.join(", ")
        )));
    }
    let mut spans: Vec<SpanRef> = Vec::new();
    for span in cited.iter().filter_map(|id| table.get(id)) {
        if !spans.contains(span) {
            spans.push(span.clone());
        }
    }
    let outside = |span: &SpanRef| span.hidden || span.integrity < super::spans::THRESHOLD;
    if spans.iter().all(outside) {
        return Err(refusal("it rests on nothing but text from outside"));
    }
    let basis = basis(arguments)?;
    let has = |wanted: fn(&SpanOrigin) -> bool| spans.iter().any(|span| !outside(span) && wanted(&span.origin));
    match basis {
        Basis::Stated if !has(|origin| matches!(origin, SpanOrigin::User(_))) => {
            Err(refusal("basis \"stated\" needs a span that a person typed"))
        }
        Basis::Checked if !has(|origin| matches!(origin, SpanOrigin::Tool(_))) => {
            Err(refusal("basis \"checked\" needs the span of a tool's result"))
        }
        Basis::Stated | Basis::Checked | Basis::SeenOnce => {
            let integrity = spans
                .iter()
                .map(|span| span.integrity)
                .min()
                .unwrap_or(Integrity::External);
            Ok(Evidence {
                spans,
                basis,
                integrity,
            })
        }
    }
}

fn basis(arguments: &Map<String, Value>) -> Result<Basis, String> {
    match arguments.get("basis").and_then(Value::as_str).map(str::trim) {
        Some("stated") => Ok(Basis::Stated),
        Some("checked") => Ok(Basis::Checked),
        Some("seen_once") => Ok(Basis::SeenOnce),
        Some("inferred") => Err(refusal("what is only inferred is not stored")),
        Some(_) | None => Err(refusal("give its basis: stated, checked or seen_once")),
    }
}

pub(super) fn refusal(why: &str) -> String {
    format!("Refused, nothing was written: {why}.")
}
