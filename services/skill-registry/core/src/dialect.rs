//! The extension fields of a front matter, in whichever dialect they are written (`S-2`): at the top, under `metadata`,
//! under a vendor's name in `metadata`, in the older and the newer form.
//!
//! What is read is what decides: where a skill makes sense, what it needs, how it may be opened. Nothing here makes a
//! skill unreadable: a field of a wrong type is left out and named, and a value that nobody knows hides nothing.

use serde_json::{Map, Value};

use crate::header::{Declared, Header, Variable};
use crate::name::Category;

/// Most entries that are read of one list.
const MOST: usize = 100;

/// Platforms that can be told apart; whatever else a skill names is no platform and filters nothing.
const PLATFORMS: [&str; 6] = ["linux", "macos", "windows", "android", "freebsd", "wsl"];

/// Reads every extension field of `fields` into `header`.
pub(crate) fn read(fields: &Map<String, Value>, header: &mut Header) {
    let reader = Reader::new(fields);
    header.dialects = reader.dialects();
    let mut problems = Vec::new();
    reader.place(header, &mut problems);
    reader.needs(header, &mut problems);
    reader.variables(header, &mut problems);
    reader.config(header, &mut problems);
    reader.opening(header);
    header.problems = problems;
}

/// The places where a field may stand, nearest first.
struct Reader<'a> {
    top: &'a Map<String, Value>,
    metadata: Option<&'a Map<String, Value>>,
    hermes: Option<&'a Map<String, Value>>,
    openclaw: Option<&'a Map<String, Value>>,
}

impl<'a> Reader<'a> {
    fn new(top: &'a Map<String, Value>) -> Self {
        let metadata = top.get("metadata").and_then(Value::as_object);
        let vendor = |names: &[&str]| {
            let of = |name: &&str| {
                metadata
                    .and_then(|metadata| metadata.get(*name))
                    .and_then(Value::as_object)
            };
            names.iter().find_map(of)
        };
        Self {
            top,
            metadata,
            hermes: vendor(&["hermes"]),
            openclaw: vendor(&["openclaw", "clawdbot", "clawdis"]),
        }
    }

    /// The specification puts extensions under `metadata`; older files have them at the top.
    fn find(&self, field: &str) -> Option<&'a Value> {
        let nested = [self.metadata, self.hermes];
        self.top
            .get(field)
            .or_else(|| nested.into_iter().flatten().find_map(|map| map.get(field)))
    }

    fn openclaw_requires(&self, field: &str) -> Option<&'a Value> {
        self.openclaw?.get("requires")?.get(field)
    }

    fn dialects(&self) -> Vec<String> {
        let has = |names: &[&str]| names.iter().any(|name| self.top.contains_key(*name));
        let in_metadata =
            |test: &dyn Fn(&str) -> bool| self.metadata.is_some_and(|map| map.keys().any(|key| test(key)));
        let found = [
            (
                "hermes",
                self.hermes.is_some()
                    || has(&["platforms", "required_environment_variables", "setup", "prerequisites"]),
            ),
            ("openclaw", self.openclaw.is_some()),
            (
                "claude",
                has(&["disable-model-invocation", "user-invocable", "argument-hint", "hooks"]),
            ),
            ("codex", in_metadata(&|key| key == "short-description")),
            ("gh", in_metadata(&|key| key.starts_with("github-"))),
        ];
        found
            .into_iter()
            .filter(|(_, is)| *is)
            .map(|(name, _)| name.to_owned())
            .collect()
    }

    /// Category, platforms, environments, tags.
    fn place(&self, header: &mut Header, problems: &mut Vec<String>) {
        if let Some(value) = self.find("category") {
            match value.as_str().map(Category::parse) {
                Some(Ok(category)) => header.category = category,
                _ => problems.push("`category` is left out: it must be ids joined by `/`".to_owned()),
            }
        }
        let mut platforms = self.list("platforms", problems);
        platforms.extend(
            self.openclaw
                .and_then(|map| map.get("os"))
                .and_then(names)
                .unwrap_or_default(),
        );
        let known = platforms
            .iter()
            .map(|name| canonical_platform(name))
            .collect::<Vec<_>>();
        let unknown = known.iter().filter(|name| !PLATFORMS.contains(&name.as_str()));
        let unknown = unknown.cloned().collect::<Vec<_>>();
        if unknown.is_empty() {
            header.platforms = platforms;
        } else {
            // A word that is no platform would keep the skill from being seen anywhere.
            problems.push(format!("`platforms` is left out: it names {}", unknown.join(", ")));
        }
        header.environments = self.list("environments", problems);
        header.tags = self.list("tags", problems);
    }

    /// Tools and programs.
    fn needs(&self, header: &mut Header, problems: &mut Vec<String>) {
        header.requires_tools = self.list("requires_tools", problems);
        header.fallback_for = self.list("fallback_for", problems);
        header.fallback_for.extend(self.list("fallback_for_tools", problems));
        let toolsets = ["requires_toolsets", "fallback_for_toolsets"];
        problems.extend(
            toolsets
                .into_iter()
                .filter(|field| self.find(field).is_some())
                .map(|field| format!("`{field}` is left out: sets of tools are not told apart here, only tools")),
        );
        let older = self.find("prerequisites").and_then(|value| value.get("commands"));
        let sources = [older, self.openclaw_requires("bins"), self.openclaw_requires("anyBins")];
        header.programs = sources
            .into_iter()
            .flatten()
            .filter_map(names)
            .flatten()
            .take(MOST)
            .collect();
    }

    fn variables(&self, header: &mut Header, problems: &mut Vec<String>) {
        let mut found = Vec::new();
        if let Some(value) = self.find("required_environment_variables") {
            match variables(value) {
                Some(list) => found.extend(list),
                None => problems.push(not_a_list("required_environment_variables")),
            }
        }
        let older = [("prerequisites", "env_vars"), ("setup", "collect_secrets")];
        for (outer, inner) in older {
            let value = self.find(outer).and_then(|value| value.get(inner));
            found.extend(value.and_then(variables).unwrap_or_default());
        }
        let openclaw = [
            self.openclaw_requires("env"),
            self.openclaw.and_then(|map| map.get("envVars")),
        ];
        found.extend(openclaw.into_iter().flatten().filter_map(variables).flatten());
        let primary = self.openclaw.and_then(|map| map.get("primaryEnv")).and_then(variables);
        found.extend(primary.unwrap_or_default());
        let help = self
            .find("setup")
            .and_then(|value| value.get("help"))
            .and_then(Value::as_str);
        for mut variable in found.into_iter().take(MOST) {
            if !is_variable(&variable.name) {
                let name = crate::index::neutral(&variable.name);
                problems.push(format!(
                    "the environment variable {name:?} is left out: no system has such a name"
                ));
                continue;
            }
            if variable.help.is_empty() {
                variable.help = short(help.unwrap_or_default());
            }
            match header.variables.iter_mut().find(|other| other.name == variable.name) {
                // Named twice: needed is needed, and the fuller words stay.
                Some(other) => {
                    other.optional &= variable.optional;
                    if other.prompt.is_empty() {
                        other.prompt = variable.prompt;
                    }
                }
                None => header.variables.push(variable),
            }
        }
        header.variables.sort_by(|one, other| one.name.cmp(&other.name));
        let required = header.variables.iter().filter(|variable| !variable.optional);
        header.required_environment_variables = required.map(|variable| variable.name.clone()).collect();
    }

    fn config(&self, header: &mut Header, problems: &mut Vec<String>) {
        let Some(value) = self.find("config") else { return };
        let Some(list) = value.as_array() else {
            problems.push(not_a_list("config"));
            return;
        };
        for item in list.iter().take(MOST) {
            let key = text(item, &["key"]);
            if is_key(&key) {
                header.config.push(Declared {
                    key,
                    description: text(item, &["description", "prompt"]),
                    default: item.get("default").map(plain).unwrap_or_default(),
                });
            } else {
                problems.push("an entry of `config` is left out: it has no usable `key`".to_owned());
            }
        }
    }

    /// How it may be opened.
    fn opening(&self, header: &mut Header) {
        let is = |field: &str, value: bool| self.top.get(field).and_then(Value::as_bool) == Some(value);
        header.manual_only = is("disable-model-invocation", true);
        header.no_command = is("user-invocable", false);
    }

    fn list(&self, field: &str, problems: &mut Vec<String>) -> Vec<String> {
        let Some(value) = self.find(field) else {
            return Vec::new();
        };
        names(value).unwrap_or_else(|| {
            problems.push(not_a_list(field));
            Vec::new()
        })
    }
}

fn not_a_list(field: &str) -> String {
    format!("`{field}` is left out: it must be a list of names")
}

/// One name for a platform, whoever names it.
pub(crate) fn canonical_platform(name: &str) -> String {
    let name = name.trim().to_lowercase();
    match name.as_str() {
        "darwin" | "osx" | "mac" => "macos".to_owned(),
        "win32" | "win" => "windows".to_owned(),
        "termux" => "android".to_owned(),
        _ => name,
    }
}

/// A list of names: texts, one text with commas, or objects that carry a `name`.
fn names(value: &Value) -> Option<Vec<String>> {
    match value {
        Value::Null => Some(Vec::new()),
        Value::String(text) => Some(
            text.split(',')
                .map(str::trim)
                .filter(|name| !name.is_empty())
                .take(MOST)
                .map(str::to_owned)
                .collect(),
        ),
        Value::Array(items) => items.iter().take(MOST).map(item_name).collect(),
        Value::Bool(_) | Value::Number(_) | Value::Object(_) => None,
    }
}

fn item_name(item: &Value) -> Option<String> {
    let name = match item {
        Value::String(text) => text.trim(),
        Value::Number(number) => return Some(number.to_string()),
        other => other
            .get("name")
            .or_else(|| other.get("env_var"))
            .and_then(Value::as_str)?
            .trim(),
    };
    if name.is_empty() { None } else { Some(name.to_owned()) }
}

/// Variables: names as in [`names`], or objects with more to say, or a map from names to such objects.
fn variables(value: &Value) -> Option<Vec<Variable>> {
    match value {
        Value::Array(items) => items.iter().take(MOST).map(variable).collect(),
        Value::Object(map) if map.contains_key("name") || map.contains_key("env_var") => Some(vec![variable(value)?]),
        Value::Object(map) => Some(
            map.iter()
                .take(MOST)
                .map(|(name, item)| Variable {
                    name: name.clone(),
                    ..described(item)
                })
                .collect(),
        ),
        other => Some(names(other)?.into_iter().map(named).collect()),
    }
}

fn variable(item: &Value) -> Option<Variable> {
    Some(Variable {
        name: item_name(item)?,
        ..described(item)
    })
}

fn named(name: String) -> Variable {
    Variable {
        name,
        ..Variable::default()
    }
}

fn described(item: &Value) -> Variable {
    let is = |field: &str, value: bool| item.get(field).and_then(Value::as_bool) == Some(value);
    Variable {
        name: String::new(),
        prompt: text(item, &["prompt", "description"]),
        help: text(item, &["help", "provider_url", "url"]),
        optional: is("optional", true) || is("required", false),
    }
}

fn text(item: &Value, fields: &[&str]) -> String {
    let found = fields.iter().find_map(|field| item.get(*field)).and_then(Value::as_str);
    short(found.unwrap_or_default())
}

fn plain(value: &Value) -> String {
    match value {
        Value::String(text) => short(text),
        Value::Number(_) | Value::Bool(_) => value.to_string(),
        Value::Null | Value::Array(_) | Value::Object(_) => String::new(),
    }
}

/// Texts for people are kept short; they are shown beside a question and nowhere else.
fn short(text: &str) -> String {
    crate::index::cut(&crate::index::neutral(text), 300)
}

fn is_variable(name: &str) -> bool {
    let mut characters = name.chars();
    let starts_well = characters
        .next()
        .is_some_and(|first| first.is_ascii_alphabetic() || first == '_');
    starts_well && name.len() <= 128 && characters.all(|letter| letter.is_ascii_alphanumeric() || letter == '_')
}

fn is_key(key: &str) -> bool {
    let fits = |letter: char| letter.is_ascii_alphanumeric() || matches!(letter, '_' | '.' | '-');
    !key.is_empty() && key.len() <= 64 && key.chars().all(fits)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::header::parse;

    fn header(fields: &str) -> Header {
        parse(&format!("---\nname: a\ndescription: b\n{fields}\n---\nbody")).unwrap()
    }

    fn named_ones(header: &Header) -> Vec<(&str, bool)> {
        header
            .variables
            .iter()
            .map(|variable| (variable.name.as_str(), variable.optional))
            .collect()
    }

    /// `S-2`.
    #[test]
    fn the_fields_of_hermes_are_read() {
        let header = header(
            "platforms: [macos, linux]\nmetadata:\n  hermes:\n    tags: [mail, post]\n    category: office\n    \
             requires_tools: [terminal]\n    fallback_for_tools: [browser]\n    requires_toolsets: [web]\n    config:\n      \
             - key: mail.folder\n        description: Where mail goes\n        default: ${HOME}/mail\n      - description: x\n\
             required_environment_variables:\n  - name: MAIL_TOKEN\n    prompt: Token of the mail server\n    \
             provider_url: https://mail.example/token\n  - env_var: MAIL_HOST\n    optional: true\n\
             setup:\n  help: See the manual\n  collect_secrets:\n    - env_var: MAIL_PIN\n      prompt: PIN\n\
             prerequisites:\n  env_vars: [MAIL_HOST]\n  commands: [mutt, curl]",
        );
        assert_eq!(header.dialects, ["hermes"]);
        assert_eq!((header.platforms.len(), header.category.as_str()), (2, "office"));
        assert_eq!(
            (header.requires_tools, header.fallback_for),
            (vec!["terminal".to_owned()], vec!["browser".to_owned()])
        );
        assert_eq!(header.programs, ["mutt", "curl"]);
        assert_eq!(header.tags, ["mail", "post"]);
        assert_eq!(
            header.required_environment_variables,
            ["MAIL_HOST", "MAIL_PIN", "MAIL_TOKEN"]
        );
        let token = &header.variables[2];
        assert_eq!(
            (token.prompt.as_str(), token.help.as_str()),
            ("Token of the mail server", "https://mail.example/token")
        );
        assert_eq!(header.variables[1].help, "See the manual");
        // A default is a text, and nothing in it is expanded.
        assert_eq!(
            (header.config.len(), header.config[0].default.as_str()),
            (1, "${HOME}/mail")
        );
        assert_eq!(header.problems.len(), 2, "{:?}", header.problems);
    }

    #[test]
    fn the_fields_of_openclaw_are_read_under_each_of_its_names() {
        for name in ["openclaw", "clawdbot", "clawdis"] {
            let header = header(&format!(
                "metadata: {{\"{name}\": {{\"os\": [\"darwin\"], \"primaryEnv\": \"API_KEY\", \"requires\": \
                 {{\"env\": [\"HOST\"], \"bins\": [\"jq\"], \"anyBins\": [\"rg\"]}}, \
                 \"envVars\": [{{\"name\": \"COLOUR\", \"required\": false}}]}}}}"
            ));
            assert_eq!(header.dialects, ["openclaw"]);
            assert_eq!(
                (header.platforms.clone(), header.programs.clone()),
                (vec!["darwin".to_owned()], vec!["jq".to_owned(), "rg".to_owned()])
            );
            assert_eq!(
                named_ones(&header),
                [("API_KEY", false), ("COLOUR", true), ("HOST", false)]
            );
            assert_eq!(header.required_environment_variables, ["API_KEY", "HOST"]);
        }
    }

    #[test]
    fn the_fields_of_claude_codex_and_gh_are_read() {
        let manual = header("disable-model-invocation: true\nuser-invocable: false");
        assert!(manual.manual_only && manual.no_command);
        assert_eq!(manual.dialects, ["claude"]);
        let plain = header("metadata:\n  short-description: Short\n  github-repo: o/r");
        assert_eq!(plain.dialects, ["codex", "gh"]);
        assert!(!plain.manual_only && !plain.no_command);
    }

    #[test]
    fn a_word_that_is_no_platform_hides_nothing() {
        let odd = header("platforms: [linux, platform-agnostic]");
        assert_eq!((odd.platforms.len(), odd.problems.len()), (0, 1));
        assert_eq!(header("platforms: [Termux, win32, OSX]").problems, Vec::<String>::new());
    }

    #[test]
    fn names_that_no_system_has_and_endless_lists_are_left_out() {
        let bad = header("required_environment_variables: [\"A B\", 7UP, \"PATH;rm\", OK_1]");
        assert_eq!(bad.required_environment_variables, ["OK_1"]);
        assert_eq!(bad.problems.len(), 3, "{:?}", bad.problems);
        let many = (0..1_000).map(|at| format!("V{at}")).collect::<Vec<_>>().join(", ");
        assert_eq!(
            header(&format!("required_environment_variables: [{many}]"))
                .variables
                .len(),
            MOST
        );
    }

    #[test]
    fn what_is_declared_twice_is_needed_when_one_of_the_two_says_so() {
        let twice = header(
            "required_environment_variables:\n  TOKEN:\n    optional: true\n    prompt: Give it\nprerequisites:\n  env_vars: [TOKEN]",
        );
        assert_eq!(named_ones(&twice), [("TOKEN", false)]);
        assert_eq!(twice.variables[0].prompt, "Give it");
    }
}
