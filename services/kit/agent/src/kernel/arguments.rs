//! What the model wrote as arguments, judged before anything runs: whole, mendable without guessing, or unusable
//! (`T-10`). Whatever it was, the stored form is valid JSON, since some providers refuse a history that is not.

use serde_json::{Map, Value};

const SHOWN: usize = 2000;
const MALFORMED: &str = "malformed_arguments";

/// The judgement.
#[derive(Debug, PartialEq)]
pub(super) enum Arguments {
    /// Usable. The text to store is the text that came, or the one document it repeated.
    Usable {
        /// Text to store and to send back.
        text: String,
        /// Its value.
        value: Map<String, Value>,
    },
    /// Not usable; nothing may run.
    Unusable {
        /// Valid JSON that shows the model what it wrote.
        text: String,
    },
}

/// `required` says whether the tool cannot do without arguments.
pub(super) fn judge(received: &str, required: bool) -> Arguments {
    if received.trim().is_empty() && !required {
        return Arguments::Usable {
            text: "{}".to_owned(),
            value: Map::new(),
        };
    }
    if let Ok(value) = serde_json::from_str::<Map<String, Value>>(received) {
        // What was stored as unusable stays unusable when a run is taken up again from the history.
        if value.len() == 1 && value.contains_key(MALFORMED) {
            return Arguments::Unusable {
                text: received.to_owned(),
            };
        }
        return Arguments::Usable {
            text: received.to_owned(),
            value,
        };
    }
    match repeated_document(received) {
        Some((text, value)) => Arguments::Usable { text, value },
        None => Arguments::Unusable {
            text: as_shown(received),
        },
    }
}

/// `{"a":1}{"a":1}`: the same document twice or more means that document.
fn repeated_document(received: &str) -> Option<(String, Map<String, Value>)> {
    let mut documents = serde_json::Deserializer::from_str(received).into_iter::<Map<String, Value>>();
    let first = documents.next()?.ok()?;
    let text = received[..documents.byte_offset()].to_owned();
    documents
        .all(|next| next.is_ok_and(|next| next == first))
        .then_some((text, first))
}

fn as_shown(received: &str) -> String {
    let shown: String = received.chars().take(SHOWN).collect();
    serde_json::json!({ MALFORMED: shown }).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(judged: &Arguments) -> &str {
        match judged {
            Arguments::Usable { text, .. } | Arguments::Unusable { text } => text,
        }
    }

    #[test]
    fn usable_arguments_keep_their_text() {
        let odd = r#" {"z":9007199254740993,"a":1.0}"#;
        assert!(matches!(judge(odd, true), Arguments::Usable { ref text, .. } if text == odd));
    }

    #[test]
    fn nothing_is_an_empty_object_only_where_nothing_is_required() {
        assert_eq!(
            judge(" ", false),
            Arguments::Usable {
                text: "{}".to_owned(),
                value: Map::new()
            }
        );
        assert!(matches!(judge("", true), Arguments::Unusable { .. }));
    }

    #[test]
    fn a_repeated_document_is_that_document_and_two_different_ones_are_none() {
        assert!(matches!(judge(r#"{"a":1}{"a":1}"#, true), Arguments::Usable { ref text, .. } if text == r#"{"a":1}"#));
        assert!(matches!(judge(r#"{"a":1}{"a":2}"#, true), Arguments::Unusable { .. }));
    }

    #[test]
    fn what_cannot_be_used_is_stored_as_valid_json() {
        for broken in [r#"{"path":"/x","content":"half"#, "[1]", "\"text\"", "{}garbage"] {
            let judged = judge(broken, false);
            assert!(matches!(judged, Arguments::Unusable { .. }), "{broken}");
            let stored: Value = serde_json::from_str(text(&judged)).expect("valid JSON");
            assert_eq!(stored[MALFORMED], *broken);
            assert_eq!(judge(text(&judged), false), judged, "it stays unusable");
        }
    }
}
