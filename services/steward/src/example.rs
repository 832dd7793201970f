//! The settings file as an example: every setting with what it means and its default, made from the schema, so that it can
//! not say anything else than the code. `deploy/config` holds a copy; a test compares them.

use std::fmt::Write as _;

use serde_json::{Map, Value};

use crate::config::Config;

/// Longest line of a comment.
const WIDTH: usize = 118;
const REFERENCE: &str = "#/$defs/";

/// The JSON Schema of the settings file.
pub fn schema() -> Value {
    schemars::schema_for!(Config).to_value()
}

/// The example: loading it gives the defaults.
pub fn toml() -> String {
    let schema = schema();
    let defaults = serde_json::to_value(Config::default()).unwrap_or_default();
    let mut text = String::from(
        "# All settings of Steward with their defaults. A setting that is commented out is unset. The same file serves one\n\
         # process and five. Layers, later ones win: these defaults, a file (--config or STEWARD_CONFIG), the environment\n\
         # (STEWARD__SECTION__KEY, for example STEWARD__AGENT__MODEL__NAME), flags. `steward config example` prints this.\n",
    );
    let document = Document { schema: &schema };
    document.table(&mut text, "", &schema, &defaults);
    text
}

struct Document<'a> {
    schema: &'a Value,
}

impl Document<'_> {
    /// Writes the settings of a table, then the tables in it: TOML wants them in this order.
    fn table(&self, text: &mut String, path: &str, schema: &Value, defaults: &Value) {
        let none = Map::new();
        let properties = schema["properties"].as_object().unwrap_or(&none);
        let mut tables = Vec::new();
        for (name, property) in properties {
            let default = &defaults[name];
            if let Some(inner) = self.table_of(property) {
                tables.push((name, property, inner, default));
                continue;
            }
            text.push('\n');
            comment(text, property);
            self.choices(text, property);
            // Writing to a string cannot fail.
            let _ = match literal(default) {
                Some(value) => writeln!(text, "{name} = {value}"),
                None => writeln!(text, "# {name} ="),
            };
        }
        for (name, property, inner, default) in tables {
            let path = if path.is_empty() {
                name.clone()
            } else {
                format!("{path}.{name}")
            };
            text.push('\n');
            comment(
                text,
                if property.get("description").is_some() {
                    property
                } else {
                    inner
                },
            );
            let _ = writeln!(text, "[{path}]");
            self.table(text, &path, inner, default);
        }
    }

    /// The schema that a property refers to, if it is that of a table.
    fn table_of(&self, property: &Value) -> Option<&Value> {
        let inner = self.referred(property)?;
        inner.get("properties").map(|_| inner)
    }

    fn referred(&self, property: &Value) -> Option<&Value> {
        let name = property["$ref"].as_str()?.strip_prefix(REFERENCE)?;
        self.schema["$defs"].get(name)
    }

    /// The words that may stand here, where only some may.
    fn choices(&self, text: &mut String, property: &Value) {
        let Some(options) = self.referred(property).and_then(|inner| inner["oneOf"].as_array()) else {
            return;
        };
        for option in options {
            if let Some(word) = option["const"].as_str() {
                let meaning = option["description"].as_str().unwrap_or_default();
                let _ = writeln!(text, "#   {word:?}: {}", one_line(meaning));
            }
        }
    }
}

fn comment(text: &mut String, property: &Value) {
    let description = one_line(property["description"].as_str().unwrap_or_default());
    let mut line = String::from("#");
    for word in description.split(' ').filter(|word| !word.is_empty()) {
        if line.chars().count() + 1 + word.chars().count() > WIDTH {
            let _ = writeln!(text, "{line}");
            line = String::from("#");
        }
        line.push(' ');
        line.push_str(word);
    }
    if line.len() > 1 {
        let _ = writeln!(text, "{line}");
    }
}

fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// A default as TOML; `None` for what is unset.
fn literal(value: &Value) -> Option<String> {
    match value {
        Value::Null => None,
        Value::Bool(value) => Some(value.to_string()),
        Value::Number(number) => Some(number.to_string()),
        // JSON's escapes are among those of TOML's basic strings.
        Value::String(_) => Some(value.to_string()),
        Value::Array(items) => {
            let items: Option<Vec<_>> = items.iter().map(literal).collect();
            items.map(|items| format!("[{}]", items.join(", ")))
        }
        // A table without keys is written as one of its own, or not at all.
        Value::Object(fields) if fields.is_empty() => None,
        Value::Object(fields) => {
            let fields = fields
                .iter()
                .filter_map(|(name, value)| Some(format!("{name:?} = {}", literal(value)?)));
            Some(format!("{{ {} }}", fields.collect::<Vec<_>>().join(", ")))
        }
    }
}
