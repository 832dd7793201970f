//! Reading what a model wrote as the arguments of a call: strictly, and with every problem named at once, in words that
//! the model can act on. Nothing is guessed, coerced or dropped (`D-36`, `D-45`).

use serde_json::{Map, Value};

/// Most characters of an unknown name or word that a problem repeats.
const SHOWN: usize = 60;

/// The arguments of one call while they are being read.
#[derive(Debug)]
pub(crate) struct Arguments {
    values: Map<String, Value>,
    known: Vec<&'static str>,
    problems: Vec<String>,
    /// Put before field names in problems, for the parts of a batch.
    prefix: String,
}

impl Arguments {
    /// Parses the text that the model wrote. No text at all is no arguments.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        if text.trim().is_empty() {
            return Ok(Self::of(Map::new(), String::new()));
        }
        match serde_json::from_str(text) {
            Ok(Value::Object(values)) => Ok(Self::of(values, String::new())),
            Ok(_) => Err("the arguments must be one JSON object".to_owned()),
            Err(error) => Err(format!("the arguments are not valid JSON: {error}")),
        }
    }

    fn of(values: Map<String, Value>, prefix: String) -> Self {
        Self {
            values,
            known: Vec::new(),
            problems: Vec::new(),
            prefix,
        }
    }

    fn take(&mut self, name: &'static str) -> Option<Value> {
        self.known.push(name);
        self.values.remove(name).filter(|value| !value.is_null())
    }

    /// Records a problem that concerns the field `name`.
    pub(crate) fn wrong(&mut self, name: &str, what: impl AsRef<str>) {
        let problem = format!("`{}{name}` {}", self.prefix, what.as_ref());
        self.problems.push(problem);
    }

    /// A text, if it is there.
    pub(crate) fn text(&mut self, name: &'static str) -> Option<String> {
        if let Value::String(text) = self.take(name)? {
            return Some(text);
        }
        self.wrong(name, "must be a text");
        None
    }

    /// A text that must be there and hold more than blanks. `why` says what needs it.
    pub(crate) fn required(&mut self, name: &'static str, why: &str) -> String {
        if self.is_absent(name) {
            self.known.push(name);
            self.wrong(name, format!("is missing or blank; {why} needs it"));
            return String::new();
        }
        let text = self.text(name);
        if text.as_ref().is_some_and(|text| text.trim().is_empty()) {
            self.wrong(name, format!("is missing or blank; {why} needs it"));
        }
        text.unwrap_or_default()
    }

    /// A text that must be there but may be empty.
    pub(crate) fn present(&mut self, name: &'static str, why: &str) -> String {
        if self.is_absent(name) {
            self.known.push(name);
            self.wrong(name, format!("is missing; {why}"));
            return String::new();
        }
        self.text(name).unwrap_or_default()
    }

    fn is_absent(&self, name: &str) -> bool {
        self.values.get(name).is_none_or(Value::is_null)
    }

    /// One of a closed list of words.
    pub(crate) fn choice<T: Copy>(&mut self, name: &'static str, choices: &[(&str, T)]) -> Option<T> {
        let word = self.text(name)?;
        let found = choices
            .iter()
            .find(|(choice, _)| *choice == word.trim())
            .map(|(_, value)| *value);
        if found.is_none() {
            self.wrong(name, format!("must be {}", words(choices)));
        }
        found
    }

    /// One of a closed list of words that must be there.
    pub(crate) fn required_choice<T: Copy>(&mut self, name: &'static str, choices: &[(&str, T)]) -> Option<T> {
        if self.is_absent(name) {
            self.known.push(name);
            self.wrong(name, format!("is missing; it must be {}", words(choices)));
            return None;
        }
        self.choice(name, choices)
    }

    /// Yes or no.
    pub(crate) fn flag(&mut self, name: &'static str) -> Option<bool> {
        let flag = self.take(name)?.as_bool();
        if flag.is_none() {
            self.wrong(name, "must be true or false");
        }
        flag
    }

    /// A whole number from `least` to `most`.
    pub(crate) fn number(&mut self, name: &'static str, least: u64, most: u64) -> Option<u64> {
        let number = self
            .take(name)?
            .as_u64()
            .filter(|number| (least..=most).contains(number));
        if number.is_none() {
            let range = if most == u64::MAX {
                format!("of at least {least}")
            } else {
                format!("from {least} to {most}")
            };
            self.wrong(name, format!("must be a whole number {range}"));
        }
        number
    }

    /// A list of texts.
    pub(crate) fn texts(&mut self, name: &'static str) -> Vec<String> {
        let texts = match self.take(name) {
            None => return Vec::new(),
            Some(Value::Array(items)) => items
                .into_iter()
                .map(|item| {
                    if let Value::String(text) = item {
                        Some(text)
                    } else {
                        None
                    }
                })
                .collect::<Option<Vec<_>>>(),
            Some(_) => None,
        };
        texts.unwrap_or_else(|| {
            self.wrong(name, "must be a list of texts");
            Vec::new()
        })
    }

    /// A list of objects, each read by `read`; their problems become this call's.
    pub(crate) fn objects<T>(&mut self, name: &'static str, mut read: impl FnMut(&mut Self) -> Option<T>) -> Vec<T> {
        let items = match self.take(name) {
            None => return Vec::new(),
            Some(Value::Array(items)) => items,
            Some(_) => {
                self.wrong(name, "must be a list");
                return Vec::new();
            }
        };
        let mut read_items = Vec::new();
        for (index, item) in items.into_iter().enumerate() {
            let Value::Object(values) = item else {
                self.wrong(name, format!("item {} must be an object", index + 1));
                continue;
            };
            let mut part = Self::of(values, format!("{name}[{index}]."));
            read_items.extend(read(&mut part));
            self.problems.extend(part.problems());
        }
        read_items
    }

    /// Whether nothing was wrong so far.
    pub(crate) fn is_sound(&self) -> bool {
        self.problems.is_empty()
    }

    /// All problems, those of fields that nobody reads included. Empty when the call can be made.
    pub(crate) fn problems(mut self) -> Vec<String> {
        let unknown: Vec<String> = self.values.keys().cloned().collect();
        for name in unknown {
            let known = self.known.join("`, `");
            self.wrong(&shown(&name), format!("is not an argument here; there are `{known}`"));
        }
        self.problems
    }
}

/// What the model wrote, short enough to be repeated to it.
pub(crate) fn shown(text: &str) -> String {
    match text.char_indices().nth(SHOWN) {
        Some((end, _)) => format!("{}...", &text[..end]),
        None => text.to_owned(),
    }
}

fn words<T>(choices: &[(&str, T)]) -> String {
    let words: Vec<String> = choices.iter().map(|(word, _)| format!("`{word}`")).collect();
    match words.as_slice() {
        [only] => only.clone(),
        [most @ .., last] => format!("{} or {last}", most.join(", ")),
        [] => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_problem_is_named_at_once() {
        let mut arguments = Arguments::parse(r#"{"action":"burn","limit":-1,"all":"yes","extra":1,"name":7}"#).unwrap();
        assert_eq!(arguments.required_choice("action", &[("add", 1), ("remove", 2)]), None);
        assert_eq!(arguments.number("limit", 1, 10), None);
        assert_eq!(arguments.flag("all"), None);
        assert_eq!(arguments.required("name", "a view"), "");
        assert_eq!(arguments.required("path", "a view"), "");
        assert_eq!(
            arguments.problems(),
            [
                "`action` must be `add` or `remove`",
                "`limit` must be a whole number from 1 to 10",
                "`all` must be true or false",
                "`name` must be a text",
                "`path` is missing or blank; a view needs it",
                "`extra` is not an argument here; there are `action`, `limit`, `all`, `name`, `path`",
            ]
        );
    }

    #[test]
    fn text_that_is_not_an_object_is_refused_and_no_text_is_no_arguments() {
        assert!(Arguments::parse("{\"a\":").unwrap_err().contains("not valid JSON"));
        assert!(Arguments::parse("[1]").is_err());
        assert!(Arguments::parse(" ").unwrap().problems().is_empty());
    }

    /// `D-45`: whatever a model writes, nothing is guessed and the answer stays short.
    #[test]
    fn hostile_values_are_refused_and_not_repeated_at_length() {
        let hostile = [
            "\"7\"",
            "7.0",
            "7.5",
            "-7",
            "1e3",
            "18446744073709551616",
            "[7]",
            "{\"n\":7}",
            "true",
            "[[[[null]]]]",
        ];
        for value in hostile {
            let mut arguments = Arguments::parse(&format!("{{\"n\":{value}}}")).unwrap();
            assert_eq!(arguments.number("n", 1, 100), None, "{value}");
            assert_eq!(
                arguments.problems(),
                ["`n` must be a whole number from 1 to 100"],
                "{value}"
            );
        }
        for value in ["\"true\"", "1", "0", "[]"] {
            let mut arguments = Arguments::parse(&format!("{{\"b\":{value}}}")).unwrap();
            assert_eq!((arguments.flag("b"), arguments.problems().len()), (None, 1), "{value}");
        }
        for value in ["[\"a\",null]", "[[\"a\"]]", "\"a\"", "{\"0\":\"a\"}", "[1]"] {
            let mut arguments = Arguments::parse(&format!("{{\"l\":{value}}}")).unwrap();
            assert!(
                arguments.texts("l").is_empty() && arguments.problems().len() == 1,
                "{value}"
            );
        }
        let mut absent = Arguments::parse(r#"{"n":null,"b":null,"l":null,"t":null}"#).unwrap();
        assert_eq!(
            (absent.number("n", 1, 2), absent.flag("b"), absent.text("t")),
            (None, None, None)
        );
        assert!(
            absent.texts("l").is_empty() && absent.problems().is_empty(),
            "null is not given"
        );
        let deep = format!("{{\"a\":{}{}}}", "[".repeat(500), "]".repeat(500));
        assert!(Arguments::parse(&deep).is_err());
        let long = Arguments::parse(&format!("{{\"{}\":1}}", "ü".repeat(5_000)))
            .unwrap()
            .problems();
        assert!(long[0].chars().count() < 150, "{}", long[0]);
    }

    #[test]
    fn parts_of_a_list_name_their_place() {
        let mut arguments = Arguments::parse(r#"{"operations":[{"content":"a"},{"content":1},3]}"#).unwrap();
        let read = arguments.objects("operations", |part| part.text("content"));
        assert_eq!(read, ["a"]);
        assert_eq!(
            arguments.problems(),
            [
                "`operations[1].content` must be a text",
                "`operations` item 3 must be an object"
            ]
        );
    }
}
