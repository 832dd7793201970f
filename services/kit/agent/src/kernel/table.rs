//! The offered tools, as far as the kernel has to know them: which names exist and which need arguments.

use std::collections::BTreeMap;

use serde::Deserialize;
use steward_model::{ModelError, parse_tools};

#[derive(Debug)]
pub(super) struct ToolTable {
    requires_arguments: BTreeMap<String, bool>,
}

#[derive(Deserialize)]
struct Schema {
    #[serde(default)]
    required: Vec<String>,
}

impl ToolTable {
    pub(super) fn read(tools_json: &str) -> Result<Self, ModelError> {
        let tools = parse_tools(tools_json)?;
        let needs = |schema: &str| serde_json::from_str::<Schema>(schema).is_ok_and(|read| !read.required.is_empty());
        let requires_arguments = tools
            .into_iter()
            .map(|tool| (tool.name, needs(tool.input_schema.get())))
            .collect();
        Ok(Self { requires_arguments })
    }

    /// The offered tool that a written name means: itself, or its half when it was written twice.
    pub(super) fn resolve<'a>(&self, written: &'a str) -> Option<&'a str> {
        if self.requires_arguments.contains_key(written) {
            return Some(written);
        }
        let (left, right) = written.split_at_checked(written.len() / 2)?;
        (left == right && self.requires_arguments.contains_key(left)).then_some(left)
    }

    pub(super) fn requires_arguments(&self, name: &str) -> bool {
        self.requires_arguments.get(name).copied().unwrap_or(false)
    }

    pub(super) fn names(&self) -> String {
        let names: Vec<&str> = self.requires_arguments.keys().map(String::as_str).take(60).collect();
        names.join(", ")
    }
}

/// A name that any provider takes back in a history.
pub(super) fn storable_name(written: &str) -> String {
    let name: String = written
        .chars()
        .take(64)
        .map(|character| {
            if character.is_ascii_alphanumeric() || "-_".contains(character) {
                character
            } else {
                '_'
            }
        })
        .collect();
    if name.is_empty() { "unnamed".to_owned() } else { name }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_doubled_name_is_mended_and_others_are_not() {
        let tools = r#"[{"name":"write_file","input_schema":{"required":["path"]}},{"name":"now","input_schema":{}}]"#;
        let table = ToolTable::read(tools).expect("readable");
        assert_eq!(table.resolve("write_filewrite_file"), Some("write_file"));
        assert_eq!(table.resolve("write_fil"), None);
        assert_eq!(table.resolve("ü"), None);
        assert!(table.requires_arguments("write_file") && !table.requires_arguments("now"));
        assert_eq!(table.names(), "now, write_file");
        assert_eq!(
            (storable_name("a b/ü").as_str(), storable_name("").as_str()),
            ("a_b__", "unnamed")
        );
    }
}
