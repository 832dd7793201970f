//! The front matter of `SKILL.md`: found by its own fences, read leniently, within budgets (`S-1`, `S-2`).
//!
//! The header is the first block between a line `---` and the next line `---`; what follows is opaque and never looked
//! at. Unknown fields are kept in the text and ignored here; a known field of a wrong type is a problem of its own and
//! not of the whole skill, except for name and description, without which there is no skill.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::dialect;
use crate::name::Category;

/// Largest header in bytes.
pub const MAX_HEADER_BYTES: usize = 64 * 1024;

/// Why a text is not a skill file.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error, Serialize, Deserialize)]
pub enum HeaderError {
    /// The first line is not `---`.
    #[error("must start with a line `---` that opens the front matter")]
    NoOpening,
    /// No line `---` ends the header.
    #[error("has no line `---` that closes the front matter")]
    NoClosing,
    /// Over the budget.
    #[error("has a front matter of {bytes} bytes; at most {MAX_HEADER_BYTES} are read")]
    TooLarge {
        /// Its size.
        bytes: usize,
    },
    /// Not YAML, or YAML beyond the budgets (no anchors, no aliases).
    #[error("has a front matter that is no plain YAML: {problem}; put values that contain `: ` or `#` in quotes")]
    Syntax {
        /// What the parser says, on one line.
        problem: String,
    },
    /// YAML, but not a list of fields.
    #[error("has a front matter that is not a list of `field: value` lines")]
    NotFields,
    /// A field without which there is no skill.
    #[error("has no `{field}` in its front matter, or it is no text; quotes make it one")]
    Missing {
        /// Its name.
        field: &'static str,
    },
    /// Nothing follows the header.
    #[error("has no text after the front matter")]
    EmptyBody,
    /// The bytes are not UTF-8.
    #[error("is not valid UTF-8")]
    NotUtf8,
}

/// An environment variable of which a skill speaks (`S-8`). All texts are untrusted.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Variable {
    /// Its name: letters, digits and underscores, no digit first.
    pub name: String,
    /// What to ask a person for; may be empty.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub prompt: String,
    /// Where to get it; may be empty.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub help: String,
    /// Whether the skill works without it.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub optional: bool,
}

/// A value of configuration that a skill declares, for its templates (`S-18`). Never a secret.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Declared {
    /// Its key, as in `{{key}}`.
    pub key: String,
    /// What it is for.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub description: String,
    /// What stands there when nothing else is known; nothing in it is expanded.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub default: String,
}

/// What Steward reads from the front matter, whatever dialect it is written in.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Header {
    /// Must equal the skill's name.
    pub name: String,
    /// One line for the index. Untrusted text.
    pub description: String,
    /// The shelf, if the header names one that is well-formed.
    pub category: Category,
    /// Operating systems on which the skill makes sense; empty for all.
    pub platforms: Vec<String>,
    /// Kinds of environment in which it is offered; empty for all.
    pub environments: Vec<String>,
    /// Tools without which it is not offered.
    pub requires_tools: Vec<String>,
    /// Tools beside which it is not offered.
    pub fallback_for: Vec<String>,
    /// Environment variables that it needs.
    pub required_environment_variables: Vec<String>,
    /// The same with what is known of each, those included that it can do without.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub variables: Vec<Variable>,
    /// Values for its templates.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub config: Vec<Declared>,
    /// Programs that its commands run, as it says.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub programs: Vec<String>,
    /// Words for a catalogue.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tags: Vec<String>,
    /// Whether only a person opens it, by its slash command.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub manual_only: bool,
    /// Whether it answers to no slash command.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub no_command: bool,
    /// Dialects whose fields were found.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub dialects: Vec<String>,
    /// Known fields that could not be read and were left out, for people.
    pub problems: Vec<String>,
}

/// A skill file cut into its header's text and its body; both are slices of the whole.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Split<'a> {
    /// Between the fences.
    pub yaml: &'a str,
    /// After the closing fence's line.
    pub body: &'a str,
}

/// Finds the header by its fences. A byte-order mark before the first one and CRLF line ends are fine.
pub fn split(text: &str) -> Result<Split<'_>, HeaderError> {
    let content = text.strip_prefix('\u{feff}').unwrap_or(text);
    let (first, rest) = content.split_once('\n').ok_or(HeaderError::NoOpening)?;
    if first.trim_end() != "---" {
        return Err(HeaderError::NoOpening);
    }
    let mut offset = 0;
    for line in rest.split_inclusive('\n') {
        if line.trim_end() == "---" {
            let (yaml, body) = (
                rest.get(..offset).unwrap_or(""),
                rest.get(offset + line.len()..).unwrap_or(""),
            );
            if yaml.len() > MAX_HEADER_BYTES {
                return Err(HeaderError::TooLarge { bytes: yaml.len() });
            }
            return Ok(Split { yaml, body });
        }
        offset += line.len();
    }
    Err(HeaderError::NoClosing)
}

/// Reads a whole skill file.
pub fn parse(text: &str) -> Result<Header, HeaderError> {
    let split = split(text)?;
    let fields = read_fields(split.yaml)?;
    let mut header = Header {
        name: required_text(&fields, "name")?,
        description: required_text(&fields, "description")?,
        ..Header::default()
    };
    if split.body.trim().is_empty() {
        return Err(HeaderError::EmptyBody);
    }
    dialect::read(&fields, &mut header);
    Ok(header)
}

/// Reads a skill file's bytes.
pub fn parse_bytes(bytes: &[u8]) -> Result<Header, HeaderError> {
    parse(std::str::from_utf8(bytes).map_err(|_| HeaderError::NotUtf8)?)
}

/// The fields of a header's text.
pub(crate) fn read_fields(yaml: &str) -> Result<Map<String, Value>, HeaderError> {
    let options = serde_saphyr::options! {
        budget: serde_saphyr::budget! {
            max_reader_input_bytes: Some(MAX_HEADER_BYTES),
            max_aliases: 0,
            max_anchors: 0,
            max_merge_keys: 0,
            max_documents: 1,
            max_depth: 32,
            max_nodes: 10_000,
            max_events: 20_000,
        },
        duplicate_keys: serde_saphyr::options::DuplicateKeyPolicy::Error,
        emit_comments: false,
    };
    match serde_saphyr::from_str_with_options::<Value>(yaml, options) {
        Ok(Value::Object(fields)) => Ok(fields),
        Ok(_) => Err(HeaderError::NotFields),
        Err(error) => {
            let message = error.to_string();
            let first = message
                .lines()
                .find(|line| !line.trim().is_empty())
                .unwrap_or("cannot be read");
            Err(HeaderError::Syntax {
                problem: first.trim().chars().take(200).collect(),
            })
        }
    }
}

fn required_text(fields: &Map<String, Value>, field: &'static str) -> Result<String, HeaderError> {
    let text = match fields.get(field) {
        Some(Value::String(text)) => text.trim().to_owned(),
        // A name such as 2024 is a number to YAML; what was meant is its text.
        Some(Value::Number(number)) => number.to_string(),
        _ => String::new(),
    };
    if text.is_empty() {
        Err(HeaderError::Missing { field })
    } else {
        Ok(text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn any_text_is_a_skill_file_or_an_error(text in "(---\n)?[a-z:\\[\\]{}&*!|>'\"#\n -]{0,80}(---\n)?.{0,20}") {
            if let Ok(header) = parse(&text) {
                prop_assert!(!header.name.is_empty() && !header.description.is_empty());
            }
        }

        /// Bytes that are nearly a header: cut, doubled and changed anywhere.
        #[test]
        fn a_mangled_header_is_read_wholly_or_not_at_all(
            at in 0_usize..200,
            cut in 0_usize..20,
            put in "[a-z0-9:\\[\\]{}&*!|>'\"#,%@`\\\\\n\r\t \u{feff}-]{0,12}",
        ) {
            const WHOLE: &str = "---\nname: pdf-merge\ndescription: \"Merge: all\"\nplatforms: [linux, macos]\nmetadata:\n  \
                hermes:\n    tags: [a]\n    config:\n      - key: k\n        default: v\nrequired_environment_variables:\n  \
                - name: TOKEN\n    optional: true\n---\nbody\n";
            let at = at.min(WHOLE.len());
            let end = (at + cut).min(WHOLE.len());
            let text = format!("{}{put}{}", &WHOLE[..at], &WHOLE[end..]);
            if let Ok(header) = parse(&text) {
                prop_assert!(!header.name.is_empty() && !header.description.is_empty());
                prop_assert!(header.variables.iter().all(|variable| !variable.name.contains(['=', ' ', '\n'])));
                // What is kept with the record is what was read.
                let kept = serde_json::to_string(&header).unwrap();
                prop_assert_eq!(serde_json::from_str::<Header>(&kept).unwrap(), header);
                prop_assert!(split(&text).unwrap().yaml.len() <= MAX_HEADER_BYTES);
            }
        }

        #[test]
        fn a_body_is_given_back_whole(body in "(.|\n|\r){0,80}") {
            let text = format!("---\nname: x\ndescription: Do x\n---\n{body}");
            prop_assert_eq!(split(&text).unwrap().body, body);
        }
    }

    const PLAIN: &str = "---\nname: pdf-merge\ndescription: Merge PDF files\n---\nUse qpdf.\n";

    #[test]
    fn the_header_ends_at_its_closing_line_and_the_body_is_opaque() {
        let body = "intro\n---\nrule\n---\n```yaml\n---\nname: other\n---\n```\n| a | b |\n";
        let text = format!("\u{feff}---\r\nname: x\r\ndescription: Do y\r\n---\r\n{body}");
        assert_eq!(split(&text).unwrap().body, body);
        assert_eq!(parse(&text).unwrap().name, "x");
    }

    #[test]
    fn a_broken_header_says_what_is_wrong_with_it() {
        let error = |text: &str| parse(text).unwrap_err();
        assert_eq!(error("hello"), HeaderError::NoOpening);
        assert_eq!(error("---\nname: a\n"), HeaderError::NoClosing);
        assert_eq!(error("---\nname: a\ndescription: b\n---\n \n"), HeaderError::EmptyBody);
        assert_eq!(error("---\n- a\n---\nx"), HeaderError::NotFields);
        assert_eq!(
            error("---\ndescription: b\n---\nx"),
            HeaderError::Missing { field: "name" }
        );
        assert!(matches!(
            error("---\nname: a\ndescription: Fix CI: rerun flaky jobs\n---\nx"),
            HeaderError::Syntax { .. }
        ));
        assert!(matches!(
            error("---\nname: a\nname: b\ndescription: c\n---\nx"),
            HeaderError::Syntax { .. }
        ));
        assert_eq!(parse_bytes(b"---\nname: \xc4\xe3\n---\nx"), Err(HeaderError::NotUtf8));
    }

    #[test]
    fn nothing_in_a_header_grows_beyond_its_budget() {
        let with = |fields: &str| parse(&format!("---\nname: a\ndescription: b\n{fields}\n---\nbody"));
        assert!(with(&format!("x: {}1{}", "[".repeat(20), "]".repeat(20))).is_ok());
        let deep = format!("x: {}1{}", "[".repeat(40), "]".repeat(40));
        let nested = (0..40)
            .map(|depth| format!("{}k:", " ".repeat(depth)))
            .collect::<Vec<_>>()
            .join("\n");
        let wide = format!("x: [{}]", "1,".repeat(12_000));
        for over in [deep.as_str(), &nested, &wide, "<<: {name: c}", "x: &x 1", "x: *x"] {
            assert!(with(over).is_err(), "{}", over.chars().take(40).collect::<String>());
        }
    }

    #[test]
    fn anchors_and_oversized_headers_are_not_followed() {
        let bomb = "---\nname: a\ndescription: b\nx: &x [1]\ny: [*x, *x]\n---\nbody";
        assert!(matches!(parse(bomb), Err(HeaderError::Syntax { .. })));
        let long = format!(
            "---\nname: a\ndescription: b\nx: \"{}\"\n---\nbody",
            "y".repeat(MAX_HEADER_BYTES)
        );
        assert!(matches!(parse(&long), Err(HeaderError::TooLarge { .. })));
    }

    #[test]
    fn extension_fields_are_read_at_both_places_and_in_all_shapes() {
        let text = "---\nname: a\ndescription: b\nplatforms: linux, macos\nrequires_tools: [terminal]\n\
                    metadata:\n  category: ops/web\n  fallback_for:\n    - browser\n\
                    required_environment_variables:\n  - name: TOKEN_A\nprerequisites:\n  env_vars: [TOKEN_B]\n\
                    environments: 7\nunknown: {x: 1}\n---\nbody";
        let header = parse(text).unwrap();
        assert_eq!(header.platforms, ["linux", "macos"]);
        assert_eq!(header.requires_tools, ["terminal"]);
        assert_eq!(header.fallback_for, ["browser"]);
        assert_eq!(header.category.as_str(), "ops/web");
        assert_eq!(header.required_environment_variables, ["TOKEN_A", "TOKEN_B"]);
        assert_eq!(header.problems.len(), 1, "{:?}", header.problems);
        assert_eq!(parse(PLAIN).unwrap().problems, Vec::<String>::new());
    }
}
