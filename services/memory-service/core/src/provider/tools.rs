//! The tools of a provider: schemas in one form, and no name that is ours.

use std::collections::BTreeSet;

use serde_json::{Map, Value};

/// Names of built-in tools. They would win anyway; a foreign one of the same name would still take their calls somewhere.
pub const BUILT_IN: [&str; 16] = [
    "clarify",
    "delegate_task",
    "memory",
    "read_file",
    "run_command",
    "schedule",
    "schedule_create",
    "schedule_delete",
    "schedule_list",
    "session_search",
    "skill_manage",
    "skill_view",
    "skills_list",
    "todo",
    "web_fetch",
    "web_search",
];

/// Most tools, and the largest schema, in bytes.
const MOST_TOOLS: usize = 16;
const MOST_BYTES: usize = 16 * 1024;

/// A tool in the one form in which it is passed on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolSchema {
    /// Its name.
    pub name: String,
    /// What it does.
    pub description: String,
    /// JSON schema of its arguments.
    pub parameters_json: String,
}

/// Why a provider's tools are refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ToolError {
    /// A schema is none.
    #[error("tool {position} has no usable schema: {problem}")]
    Malformed {
        /// Its position, from 1.
        position: usize,
        /// What is wrong.
        problem: &'static str,
    },
    /// The name is a built-in tool's.
    #[error("tool {name} has the name of a built-in one")]
    BuiltIn {
        /// The name.
        name: String,
    },
    /// Two tools have the same name.
    #[error("tool {name} is there twice")]
    Twice {
        /// The name.
        name: String,
    },
    /// There are too many.
    #[error("{count} tools are more than {MOST_TOOLS}")]
    TooMany {
        /// How many.
        count: usize,
    },
}

/// The tools in one form, or why none of them is taken.
pub fn accept(schemas: &[String]) -> Result<Vec<ToolSchema>, ToolError> {
    if schemas.len() > MOST_TOOLS {
        return Err(ToolError::TooMany { count: schemas.len() });
    }
    let mut names = BTreeSet::new();
    let mut tools = Vec::with_capacity(schemas.len());
    for (position, schema) in (1..).zip(schemas) {
        let tool = read(schema).map_err(|problem| ToolError::Malformed { position, problem })?;
        if BUILT_IN.contains(&tool.name.as_str()) {
            return Err(ToolError::BuiltIn { name: tool.name });
        }
        if !names.insert(tool.name.clone()) {
            return Err(ToolError::Twice { name: tool.name });
        }
        tools.push(tool);
    }
    Ok(tools)
}

fn read(schema: &str) -> Result<ToolSchema, &'static str> {
    if schema.len() > MOST_BYTES {
        return Err("it is too long");
    }
    let value: Value = serde_json::from_str(schema).map_err(|_| "it is no JSON")?;
    let mut object = into_object(value)?;
    // Bare, or wrapped as a function, once or more often.
    while !object.contains_key("name") {
        object = into_object(object.remove("function").ok_or("it has no name")?)?;
    }
    let text = |value: Option<Value>| match value {
        Some(Value::String(text)) => Some(text),
        _ => None,
    };
    let name = text(object.remove("name")).ok_or("its name is no text")?;
    let is_name = (1..=64).contains(&name.len())
        && name
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-'));
    if !is_name {
        return Err("its name is not 1 to 64 letters, digits, underscores and hyphens");
    }
    let parameters = match object.remove("parameters") {
        None => Value::Object(Map::from_iter([("type".to_owned(), Value::from("object"))])),
        Some(parameters @ Value::Object(_)) => parameters,
        Some(_) => return Err("its parameters are no schema"),
    };
    Ok(ToolSchema {
        name,
        description: text(object.remove("description")).unwrap_or_default(),
        parameters_json: parameters.to_string(),
    })
}

fn into_object(value: Value) -> Result<Map<String, Value>, &'static str> {
    match value {
        Value::Object(object) => Ok(object),
        _ => Err("it is no object"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn accepted(schemas: &[&str]) -> Result<Vec<ToolSchema>, ToolError> {
        accept(&schemas.iter().map(|schema| (*schema).to_owned()).collect::<Vec<_>>())
    }

    /// `M-16`.
    #[test]
    fn a_schema_is_taken_bare_or_wrapped() {
        let bare = r#"{"name":"recall_more","description":"d","parameters":{"type":"object","properties":{}}}"#;
        let wrapped = format!(r#"{{"type":"function","function":{bare}}}"#);
        let twice = format!(r#"{{"type":"function","function":{wrapped}}}"#);
        let one = accepted(&[bare]).unwrap();
        assert_eq!(one[0].name, "recall_more");
        assert_eq!(accepted(&[&wrapped]).unwrap(), one);
        assert_eq!(accepted(&[&twice]).unwrap(), one);
    }

    /// `M-15`.
    #[test]
    fn a_built_in_name_and_a_second_one_are_refused_at_the_door() {
        assert_eq!(
            accepted(&[r#"{"name":"memory"}"#]),
            Err(ToolError::BuiltIn {
                name: "memory".to_owned()
            })
        );
        assert_eq!(
            accepted(&[r#"{"name":"a"}"#, r#"{"function":{"name":"a"}}"#]),
            Err(ToolError::Twice { name: "a".to_owned() })
        );
        for bad in [
            "",
            "[]",
            "{}",
            r#"{"name":1}"#,
            r#"{"name":"a b"}"#,
            r#"{"name":"a","parameters":[]}"#,
            r#"{"function":1}"#,
        ] {
            assert!(
                matches!(accepted(&[bad]), Err(ToolError::Malformed { position: 1, .. })),
                "{bad}"
            );
        }
        assert!(matches!(
            accept(&vec![r#"{"name":"a"}"#.to_owned(); 17]),
            Err(ToolError::TooMany { .. })
        ));
    }
}
