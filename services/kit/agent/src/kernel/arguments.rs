//! What the model wrote as arguments, judged before anything runs: whole, mendable without guessing, or unusable
//! (`T-10`). Whatever it was, the stored form is valid JSON, since some providers refuse a history that is not.

use std::collections::HashSet;
use std::fmt;

use serde::de::{Deserialize, Deserializer, Error, MapAccess, SeqAccess, Visitor};
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

/// `required` says whether nothing at all is not enough: the tool cannot do without arguments, or they were cut off.
pub(super) fn judge(received: &str, required: bool) -> Arguments {
    if received.trim().is_empty() && !required {
        return Arguments::Usable {
            text: "{}".to_owned(),
            value: Map::new(),
        };
    }
    // Whoever reads a name that stands twice takes the first or the last: what was checked need not be what is run.
    if repeats_a_name(received) {
        return Arguments::Unusable {
            text: as_shown(received),
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

fn repeats_a_name(text: &str) -> bool {
    let documents = serde_json::Deserializer::from_str(text).into_iter::<Unique>();
    documents.map_while(Result::ok).any(|document| !document.0)
}

/// Whether no object of a document, however deep, has a name twice.
struct Unique(bool);

impl<'de> Deserialize<'de> for Unique {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Names)
    }
}

struct Names;

impl<'de> Visitor<'de> for Names {
    type Value = Unique;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("JSON")
    }

    fn visit_bool<E: Error>(self, _: bool) -> Result<Unique, E> {
        Ok(Unique(true))
    }

    fn visit_i64<E: Error>(self, _: i64) -> Result<Unique, E> {
        Ok(Unique(true))
    }

    fn visit_u64<E: Error>(self, _: u64) -> Result<Unique, E> {
        Ok(Unique(true))
    }

    fn visit_f64<E: Error>(self, _: f64) -> Result<Unique, E> {
        Ok(Unique(true))
    }

    fn visit_str<E: Error>(self, _: &str) -> Result<Unique, E> {
        Ok(Unique(true))
    }

    fn visit_unit<E: Error>(self) -> Result<Unique, E> {
        Ok(Unique(true))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Unique, A::Error> {
        let mut unique = true;
        while let Some(item) = items.next_element::<Unique>()? {
            unique &= item.0;
        }
        Ok(Unique(unique))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Unique, A::Error> {
        let (mut names, mut unique) = (HashSet::new(), true);
        while let Some((name, value)) = entries.next_entry::<String, Unique>()? {
            unique &= names.insert(name) && value.0;
        }
        Ok(Unique(unique))
    }
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

    /// `D-36`: one reader takes the first, another the last; the command that was judged would not be the one that runs.
    #[test]
    fn a_name_that_stands_twice_makes_the_arguments_unusable() {
        for twice in [
            r#"{"cmd":"ls","cmd":"rm -r x"}"#,
            r#"{"cmd":"ls","cmd":"ls"}"#,
            r#"{"cmd":"ls","c\u006dd":"rm -r x"}"#,
            r#"{"a":[{"b":{"c":1,"c":null}}]}"#,
            r#"{"a":1,"a":2}{"a":1,"a":2}"#,
            r#"{"a":1}{"a":2,"a":1}"#,
        ] {
            assert!(matches!(judge(twice, false), Arguments::Unusable { .. }), "{twice}");
        }
        for once in [r#"{"a":{"a":{"a":-1.5e3}},"b":[{"a":true},{"a":null}]}"#, "{}"] {
            assert!(matches!(judge(once, true), Arguments::Usable { .. }), "{once}");
        }
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
