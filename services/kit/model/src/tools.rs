//! The stored form of a tool list: one JSON array whose bytes depend on the tools alone, not on the order in which they
//! were registered (`P-3`).

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::error::ModelError;

/// One tool as the model sees it.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct ToolSpec {
    /// Name, unique in the list.
    pub name: String,
    /// What it does and when to use it.
    #[serde(default)]
    pub description: String,
    /// JSON schema of its arguments; the bytes are kept as they are.
    pub input_schema: Box<RawValue>,
}

impl ToolSpec {
    /// A tool whose schema is given as a JSON value.
    ///
    /// # Errors
    /// [`ModelError::InvalidRequest`] when the schema cannot be written as JSON.
    pub fn new(
        name: impl Into<String>,
        description: impl Into<String>,
        schema: &serde_json::Value,
    ) -> Result<Self, ModelError> {
        let input_schema = serde_json::value::to_raw_value(schema).map_err(invalid)?;
        Ok(Self {
            name: name.into(),
            description: description.into(),
            input_schema,
        })
    }
}

/// The stored form of a tool list: sorted by name, no blanks outside the schemas.
///
/// # Errors
/// [`ModelError::InvalidRequest`] when two tools share a name.
pub fn canonical_tools(tools: &[ToolSpec]) -> Result<Arc<str>, ModelError> {
    let mut sorted: Vec<&ToolSpec> = tools.iter().collect();
    sorted.sort_by(|left, right| left.name.cmp(&right.name));
    if let Some(pair) = sorted.windows(2).find(|pair| pair[0].name == pair[1].name) {
        return Err(ModelError::InvalidRequest {
            what: format!("two tools are named {}", pair[0].name),
        });
    }
    Ok(serde_json::to_string(&sorted).map_err(invalid)?.into())
}

/// Reads a stored tool list; empty text is an empty list.
///
/// # Errors
/// [`ModelError::InvalidRequest`] when it is not a JSON array of tools.
pub fn parse_tools(tools_json: &str) -> Result<Vec<ToolSpec>, ModelError> {
    if tools_json.trim().is_empty() {
        return Ok(Vec::new());
    }
    serde_json::from_str(tools_json).map_err(invalid)
}

#[expect(clippy::needless_pass_by_value, reason = "the shape that map_err wants")]
fn invalid(error: serde_json::Error) -> ModelError {
    ModelError::InvalidRequest {
        what: format!("the tool list is not readable: {error}"),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn tool(name: &str) -> ToolSpec {
        ToolSpec::new(
            name,
            "does it",
            &json!({"type": "object", "properties": {"z": {}, "a": {}}}),
        )
        .expect("a schema")
    }

    #[test]
    fn the_order_of_registration_leaves_no_trace() {
        let one = canonical_tools(&[tool("b"), tool("a")]).expect("distinct");
        let two = canonical_tools(&[tool("a"), tool("b")]).expect("distinct");
        assert_eq!(one, two);
        assert!(
            one.find(r#""z""#) < one.find(r#""a":{}"#),
            "a schema keeps its own key order"
        );
        assert_eq!(
            canonical_tools(&parse_tools(&one).expect("readable")).expect("distinct"),
            one
        );
    }

    #[test]
    fn two_tools_of_one_name_are_refused() {
        assert!(canonical_tools(&[tool("a"), tool("a")]).is_err());
        assert!(parse_tools("").expect("empty is fine").is_empty());
        assert!(parse_tools("{").is_err());
    }
}
