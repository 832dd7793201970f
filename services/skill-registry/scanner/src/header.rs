//! The front matter as a hub must read it: budgeted, without anchors, aliases or duplicate keys, and with everything in
//! it that grants, asks or runs something.

use serde_json::{Map, Value};

/// Largest front matter in bytes.
pub const MAX_BYTES: usize = 64 * 1024;

/// Why the front matter cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum HeaderError {
    /// No `---` on the first line, or none that closes it.
    #[error("the front matter must stand between two lines `---` at the top")]
    NoFences,
    /// Over the budget.
    #[error("the front matter has {bytes} bytes; at most {MAX_BYTES} are read")]
    TooLarge {
        /// Its size.
        bytes: usize,
    },
    /// Not YAML within the budgets.
    #[error("the front matter is no plain YAML: {problem}")]
    Syntax {
        /// What the parser says, on one line.
        problem: String,
    },
    /// A name or description is missing, empty or no text.
    #[error("the front matter has no usable `{field}`")]
    Missing {
        /// The field.
        field: &'static str,
    },
    /// A field is longer than the specification permits.
    #[error("`{field}` has {length} characters; the specification permits {limit}")]
    TooLong {
        /// The field.
        field: &'static str,
        /// Its length in characters.
        length: usize,
        /// The limit in characters.
        limit: usize,
    },
}

/// What the front matter says.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Header {
    /// The skill's name.
    pub name: String,
    /// What it is for.
    pub description: String,
    /// Tools that it wants to use without asking.
    pub tools: Vec<String>,
    /// Environment variables that it declares, in every dialect.
    pub env: Vec<String>,
    /// Programs that it declares.
    pub bins: Vec<String>,
    /// Whether it brings hooks: commands that a client would run by itself.
    pub hooks: bool,
}

/// Where the front matter stands in a text: the range of the YAML and the start of the body, in bytes.
pub fn locate(text: &str) -> Option<(std::ops::Range<usize>, usize)> {
    let mark = if text.starts_with('\u{feff}') { 3 } else { 0 };
    let content = text.get(mark..)?;
    let (first, _) = content.split_once('\n')?;
    if first.trim_end() != "---" {
        return None;
    }
    let start = mark + first.len() + 1;
    let mut offset = start;
    for line in text.get(start..)?.split_inclusive('\n') {
        if line.trim_end() == "---" {
            return Some((start..offset, offset + line.len()));
        }
        offset += line.len();
    }
    None
}

/// Reads the front matter of a whole `SKILL.md`.
pub fn parse(text: &str) -> Result<Header, HeaderError> {
    let (range, _) = locate(text).ok_or(HeaderError::NoFences)?;
    let yaml = text.get(range).unwrap_or_default();
    if yaml.len() > MAX_BYTES {
        return Err(HeaderError::TooLarge { bytes: yaml.len() });
    }
    let fields = fields(yaml).map_err(|error| unquoted(yaml).unwrap_or(error))?;
    let header = Header {
        name: required(&fields, "name", 64)?,
        description: required(&fields, "description", 1024)?,
        tools: words(fields.get("allowed-tools").or_else(|| fields.get("allowed_tools"))),
        env: declared(&fields, &["required_environment_variables"], &["env_vars"], "env"),
        bins: declared(&fields, &[], &["commands"], "bins"),
        hooks: fields.get("hooks").is_some_and(|hooks| !hooks.is_null()),
    };
    Ok(header)
}

/// What to say of a plain value at the top that YAML takes for something else, such as `description: Fix CI: rerun`. It
/// is refused and not guessed at: the library reads what was let in, and both must read the same.
fn unquoted(yaml: &str) -> Option<HeaderError> {
    let field = yaml.lines().find_map(|line| {
        let (key, value) = line.split_once(": ")?;
        let value = value.trim();
        let is_key = !key.is_empty()
            && key
                .bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_'));
        let is_plain = !value.starts_with(['"', '\'', '[', '{', '|', '>', '&', '*', '!', '#', '-']);
        let is_taken = value.contains(": ") || value.ends_with(':') || value.starts_with(['@', '`', '%']);
        (is_key && is_plain && is_taken).then_some(key)
    })?;
    Some(HeaderError::Syntax {
        problem: format!("the value of {field} must stand in quotes"),
    })
}

fn fields(yaml: &str) -> Result<Map<String, Value>, HeaderError> {
    let options = serde_saphyr::options! {
        budget: serde_saphyr::budget! {
            max_reader_input_bytes: Some(MAX_BYTES),
            max_aliases: 0,
            max_anchors: 0,
            max_events: 20_000,
        },
        duplicate_keys: serde_saphyr::options::DuplicateKeyPolicy::Error,
        emit_comments: false,
    };
    match serde_saphyr::from_str_with_options::<Value>(yaml, options) {
        Ok(Value::Object(fields)) => Ok(fields),
        Ok(_) => Err(HeaderError::Syntax {
            problem: "it is not a list of `field: value` lines".to_owned(),
        }),
        Err(error) => {
            let message = error.to_string();
            let line = message.lines().map(str::trim).find(|line| !line.is_empty());
            Err(HeaderError::Syntax {
                problem: line.unwrap_or("it cannot be read").chars().take(200).collect(),
            })
        }
    }
}

fn required(fields: &Map<String, Value>, field: &'static str, limit: usize) -> Result<String, HeaderError> {
    let text = match fields.get(field) {
        Some(Value::String(text)) => text.trim().to_owned(),
        Some(Value::Number(number)) => number.to_string(),
        _ => String::new(),
    };
    let length = text.chars().count();
    if length == 0 {
        return Err(HeaderError::Missing { field });
    }
    if length > limit {
        return Err(HeaderError::TooLong { field, length, limit });
    }
    Ok(text)
}

/// Words of a text separated by blanks or commas outside parentheses, or the texts of a list.
fn words(value: Option<&Value>) -> Vec<String> {
    match value {
        Some(Value::String(text)) => {
            let mut depth = 0_usize;
            text.split(|character: char| {
                match character {
                    '(' => depth += 1,
                    ')' => depth = depth.saturating_sub(1),
                    _ => {}
                }
                depth == 0 && (character.is_whitespace() || character == ',')
            })
            .filter(|word| !word.is_empty())
            .map(str::to_owned)
            .collect()
        }
        Some(Value::Array(list)) => list.iter().filter_map(Value::as_str).map(str::to_owned).collect(),
        _ => Vec::new(),
    }
}

/// Names that any of the known dialects declares: at the top, below `prerequisites`, below `setup.collect_secrets`,
/// below `metadata.*.requires`.
fn declared(fields: &Map<String, Value>, top: &[&str], older: &[&str], requires: &str) -> Vec<String> {
    let mut found = Vec::new();
    for field in top {
        names(fields.get(*field), &mut found);
    }
    for field in older {
        names(
            fields.get("prerequisites").and_then(|older| older.get(*field)),
            &mut found,
        );
    }
    if requires == "env" {
        names(
            fields.get("setup").and_then(|setup| setup.get("collect_secrets")),
            &mut found,
        );
    }
    if let Some(Value::Object(metadata)) = fields.get("metadata") {
        names(
            metadata
                .get("required_environment_variables")
                .filter(|_| requires == "env"),
            &mut found,
        );
        for dialect in metadata.values() {
            names(dialect.get("requires").and_then(|list| list.get(requires)), &mut found);
            if requires == "env" {
                names(dialect.get("primaryEnv"), &mut found);
                names(dialect.get("envVars"), &mut found);
            }
        }
    }
    found.sort();
    found.dedup();
    found
}

fn names(value: Option<&Value>, into: &mut Vec<String>) {
    match value {
        Some(Value::String(name)) => into.push(name.clone()),
        Some(Value::Array(list)) => list.iter().for_each(|item| names(Some(item), into)),
        Some(Value::Object(entry)) => {
            let named = ["name", "env_var", "env"].iter().find_map(|key| entry.get(*key));
            if let Some(Value::String(name)) = named {
                into.push(name.clone());
            }
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_dialect_declares_its_variables() {
        let header = parse(
            "---\nname: a\ndescription: b\nallowed-tools: Bash(git add:*) Read\nrequired_environment_variables:\n  - name: A_KEY\nprerequisites:\n  env_vars: [B_KEY]\n  commands: [jq]\nmetadata:\n  openclaw:\n    requires: {env: [C_KEY], bins: [curl]}\n    primaryEnv: D_KEY\nsetup:\n  collect_secrets:\n    - env_var: E_KEY\n---\nbody\n",
        )
        .expect("a good header");
        assert_eq!(header.env, ["A_KEY", "B_KEY", "C_KEY", "D_KEY", "E_KEY"]);
        assert_eq!(header.bins, ["curl", "jq"]);
        assert_eq!(header.tools, ["Bash(git add:*)", "Read"]);
        assert!(!header.hooks);
    }

    #[test]
    fn aliases_duplicates_and_endless_headers_are_refused() {
        for yaml in [
            "a: &x [1]\nb: [*x, *x]\nname: n\ndescription: d\n",
            "name: a\nname: b\ndescription: d\n",
            "- a\n",
        ] {
            assert!(
                matches!(parse(&format!("---\n{yaml}---\nx")), Err(HeaderError::Syntax { .. })),
                "{yaml}"
            );
        }
        let long = format!("---\nname: a\ndescription: b\nx: {}\n---\n", "y".repeat(MAX_BYTES));
        assert!(matches!(parse(&long), Err(HeaderError::TooLarge { .. })));
        assert_eq!(parse("no fences"), Err(HeaderError::NoFences));
        assert_eq!(parse("---\nname: a\n"), Err(HeaderError::NoFences));
        assert_eq!(
            parse("---\nname: a\n---\n"),
            Err(HeaderError::Missing { field: "description" })
        );
    }

    /// As in the library, which lists such a skill as broken (D-16).
    #[test]
    fn d_16_a_plain_value_with_a_colon_is_refused_with_what_to_do() {
        for yaml in ["description: Fix CI: rerun what didn't pass", "description: `x` runs"] {
            let error = parse(&format!("---\nname: ci\n{yaml}\n---\nx")).expect_err("refused");
            assert!(
                error.to_string().contains("description must stand in quotes"),
                "{error}"
            );
        }
        let quoted = "---\nname: ci\ndescription: \"Fix CI: rerun what didn't pass\"\n---\nx";
        assert_eq!(
            parse(quoted).expect("read").description,
            "Fix CI: rerun what didn't pass"
        );
    }

    #[test]
    fn fences_are_lines_and_not_text_within_a_value() {
        let text = "---\nname: a\ndescription: \"b --- c\"\n---\nbody";
        let (range, body) = locate(text).expect("fences");
        assert_eq!(&text[range], "name: a\ndescription: \"b --- c\"\n");
        assert_eq!(&text[body..], "body");
    }
}
