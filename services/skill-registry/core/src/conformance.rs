//! How well files follow the Agent Skills specification: the strict rules of its validator, and advice (`S-1`). Pure.
//!
//! A report decides nothing. Reading is lenient ([`crate::header`]); this says where another reader would not be. The
//! specification's validator reads a narrow kind of YAML, so that its departures are found in the lines and not in what
//! they mean.

use serde_json::{Map, Value};
use unicode_normalization::UnicodeNormalization as _;

use crate::header::{self, Split};
use crate::path::SkillPath;
use crate::record::Files;

/// How much a finding weighs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// The specification's validator refuses it.
    Error,
    /// Advice is not followed, or another reader sees something else.
    Warning,
}

/// A place where a skill departs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// Stable id.
    pub rule: &'static str,
    /// How much it weighs.
    pub severity: Severity,
    /// File.
    pub path: String,
    /// Line from 1; 0 for the whole file.
    pub line: u32,
    /// A sentence.
    pub message: String,
}

/// The whole report.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Report {
    /// Dialects whose fields were understood.
    pub dialects: Vec<String>,
    /// What was found, by path and line.
    pub findings: Vec<Finding>,
}

impl Report {
    /// Whether the strict rules are met.
    pub fn conforms(&self) -> bool {
        self.findings.iter().all(|finding| finding.severity != Severity::Error)
    }

    /// In one line, for a listing; empty when there is nothing to say.
    pub fn summary(&self) -> String {
        let count = |severity| {
            self.findings
                .iter()
                .filter(|finding| finding.severity == severity)
                .count()
        };
        let (errors, warnings) = (count(Severity::Error), count(Severity::Warning));
        let mut parts = Vec::new();
        if !self.dialects.is_empty() {
            parts.push(format!("dialect {}", self.dialects.join(", ")));
        }
        if errors > 0 {
            parts.push(format!("{errors} departures from the specification"));
        }
        if warnings > 0 {
            parts.push(format!("{warnings} pieces of advice not followed"));
        }
        parts.join("; ")
    }
}

/// Fields that the specification knows.
const FIELDS: [&str; 6] = [
    "name",
    "description",
    "license",
    "compatibility",
    "metadata",
    "allowed-tools",
];
const MAX_NAME: usize = 64;
const MAX_DESCRIPTION: usize = 1_024;
const MAX_COMPATIBILITY: usize = 500;
/// Advice: more lines than this belong into files of their own.
const ADVISED_LINES: usize = 500;
/// Findings of one report; more say nothing new.
const MOST: usize = 200;

/// Judges `files` that stand in a folder called `folder`; empty if that is not known.
pub fn check(files: &Files, folder: &str) -> Report {
    let mut judge = Judge::default();
    let Some(bytes) = files.get(&SkillPath::skill_md()) else {
        judge.error("skill-md", 0, "there is no SKILL.md");
        return judge.report;
    };
    let Ok(text) = std::str::from_utf8(bytes) else {
        judge.error("utf-8", 0, "SKILL.md is not valid UTF-8");
        return judge.report;
    };
    if text.starts_with('\u{feff}') {
        judge.error("byte-order-mark", 1, "a byte-order mark stands before the front matter");
    }
    match header::split(text) {
        Err(problem) => judge.error("front-matter", 1, &problem.to_string()),
        Ok(split) => judge.skill_md(text, split, folder),
    }
    judge.files(files);
    judge.report.findings.sort_by(|one, other| {
        (one.path != crate::path::SKILL_MD, &one.path, one.line).cmp(&(
            other.path != crate::path::SKILL_MD,
            &other.path,
            other.line,
        ))
    });
    judge.report
}

#[derive(Default)]
struct Judge {
    report: Report,
}

impl Judge {
    fn add(&mut self, rule: &'static str, severity: Severity, path: &str, line: u32, message: &str) {
        if self.report.findings.len() < MOST {
            self.report.findings.push(Finding {
                rule,
                severity,
                path: path.to_owned(),
                line,
                message: message.to_owned(),
            });
        }
    }

    fn error(&mut self, rule: &'static str, line: u32, message: &str) {
        self.add(rule, Severity::Error, crate::path::SKILL_MD, line, message);
    }

    fn warn(&mut self, rule: &'static str, line: u32, message: &str) {
        self.add(rule, Severity::Warning, crate::path::SKILL_MD, line, message);
    }

    fn skill_md(&mut self, text: &str, split: Split<'_>, folder: &str) {
        self.yaml(split.yaml);
        match header::read_fields(split.yaml) {
            Err(problem) => self.error("front-matter", 1, &problem.to_string()),
            Ok(fields) => self.fields(&fields, split.yaml, folder),
        }
        if let Ok(header) = header::parse(text) {
            for problem in &header.problems {
                self.warn("extension", 0, problem);
            }
            self.report.dialects = header.dialects;
        }
        if split.body.trim().is_empty() {
            self.warn("body", 0, "no text follows the front matter");
        }
        let lines = text.lines().count();
        if lines > ADVISED_LINES {
            let message =
                format!("has {lines} lines; what goes beyond {ADVISED_LINES} is better kept in files of its own");
            self.warn("length", 0, &message);
        }
    }

    /// The narrow YAML of the validator: no flow style, no anchors, no tags; and its way to find the end.
    fn yaml(&mut self, yaml: &str) {
        let mut block: Option<usize> = None;
        for (index, line) in yaml.lines().enumerate() {
            let number = u32::try_from(index + 2).unwrap_or(u32::MAX);
            if line.contains("---") {
                let message =
                    "`---` stands inside the front matter: readers that look for it anywhere end the front matter here";
                self.warn("inner-fence", number, message);
            }
            let indent = line.len() - line.trim_start().len();
            if block.is_some_and(|outer| indent > outer || line.trim().is_empty()) {
                continue;
            }
            block = None;
            let value = value_of(line);
            match value.chars().next() {
                Some('[' | '{') => self.error(
                    "flow-style",
                    number,
                    "lists and maps are written in flow style, `[…]` or `{…}`",
                ),
                Some('&' | '*') => self.error("anchor", number, "anchors and aliases are not read"),
                Some('!') => self.error("tag", number, "tags are not read"),
                Some('|' | '>') => block = Some(indent),
                _ => {}
            }
        }
    }

    fn fields(&mut self, fields: &Map<String, Value>, yaml: &str, folder: &str) {
        let line = |field: &str| line_of(yaml, field);
        for field in fields.keys().filter(|field| !FIELDS.contains(&field.as_str())) {
            let message = format!(
                "the field `{}` is not part of the specification; extensions go under `metadata`",
                crate::index::neutral(field)
            );
            self.error("unknown-field", line(field), &message);
        }
        self.name(fields.get("name"), line("name"), folder);
        match fields.get("description").map(as_text) {
            None | Some(None) => self.error(
                "description",
                line("description"),
                "there is no `description`, or it is no text",
            ),
            Some(Some(text)) if text.trim().is_empty() => {
                self.error("description", line("description"), "the description is empty");
            }
            Some(Some(text)) => {
                let length = text.trim().chars().count();
                if length > MAX_DESCRIPTION {
                    let message =
                        format!("the description has {length} characters; the specification allows {MAX_DESCRIPTION}");
                    self.error("description", line("description"), &message);
                }
            }
        }
        if let Some(value) = fields.get("compatibility") {
            let length = value.as_str().map(|text| text.chars().count());
            if length.is_none_or(|length| length > MAX_COMPATIBILITY) {
                let message = format!("`compatibility` must be a text of at most {MAX_COMPATIBILITY} characters");
                self.error("compatibility", line("compatibility"), &message);
            }
        }
        if let Some(value) = fields.get("metadata") {
            match value.as_object() {
                None => self.error(
                    "metadata",
                    line("metadata"),
                    "`metadata` must be a map from texts to texts",
                ),
                Some(map) if map.values().any(|value| value.is_object() || value.is_array()) => {
                    self.warn(
                        "metadata",
                        line("metadata"),
                        "`metadata` holds more than texts, which the specification does not provide for",
                    );
                }
                Some(_) => {}
            }
        }
        if fields.get("allowed-tools").is_some_and(|value| !value.is_string()) {
            self.error(
                "allowed-tools",
                line("allowed-tools"),
                "`allowed-tools` must be one text with blanks between the tools",
            );
        }
    }

    /// As the validator does: normalised, lower case, letters and digits of any script, single hyphens.
    fn name(&mut self, value: Option<&Value>, line: u32, folder: &str) {
        let Some(name) = value
            .and_then(as_text)
            .map(|text| text.trim().nfkc().collect::<String>())
        else {
            self.error("name", line, "there is no `name`, or it is no text");
            return;
        };
        let length = name.chars().count();
        if length == 0 || length > MAX_NAME {
            self.error(
                "name",
                line,
                &format!("the name has {length} characters; 1 to {MAX_NAME} are allowed"),
            );
        }
        if name.to_lowercase() != name {
            self.error("name", line, "the name is not in lower case");
        }
        if !name.chars().all(|letter| letter.is_alphanumeric() || letter == '-') {
            self.error(
                "name",
                line,
                "the name holds other signs than letters, digits and hyphens",
            );
        } else if !name.is_ascii() {
            self.warn("name-script", line, "the name holds letters beyond a to z, which the specification's text does not allow although its validator does");
        }
        if name.starts_with('-') || name.ends_with('-') || name.contains("--") {
            self.error(
                "name",
                line,
                "the name begins or ends with a hyphen, or has two in a row",
            );
        }
        if !folder.is_empty() && folder.nfkc().collect::<String>() != name {
            self.error(
                "name-folder",
                line,
                &format!("the name is {name:?} and the folder {folder:?}; they must be the same"),
            );
        }
    }

    fn files(&mut self, files: &Files) {
        for path in files.keys() {
            let (name, is_top) = match path.as_str().rsplit_once('/') {
                Some((_, name)) => (name, false),
                None => (path.as_str(), true),
            };
            if !path.is_skill_md() && name.eq_ignore_ascii_case(crate::path::SKILL_MD) {
                let message = if is_top {
                    "stands beside SKILL.md and is taken for it elsewhere"
                } else {
                    "would make a skill of its own of this folder; files inside a skill are never skills"
                };
                self.add("inner-skill", Severity::Warning, path.as_str(), 0, message);
            }
        }
    }
}

fn as_text(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        // To a reader for which everything is a text, 2024 is one.
        Value::Number(number) => Some(number.to_string()),
        Value::Bool(_) | Value::Null | Value::Array(_) | Value::Object(_) => None,
    }
}

/// What stands behind the key, or behind the dash of a list.
fn value_of(line: &str) -> &str {
    let mut rest = line.trim_start();
    while let Some(item) = rest.strip_prefix("- ") {
        rest = item.trim_start();
    }
    let quoted = rest.starts_with(['"', '\'', '#']);
    match rest.find(": ") {
        Some(colon) if !quoted => rest.get(colon + 2..).unwrap_or_default().trim_start(),
        _ => rest,
    }
}

/// The line on which a top-level field begins, from 1 in the whole file; 0 if it cannot be told.
fn line_of(yaml: &str, field: &str) -> u32 {
    let is_it = |line: &str| {
        let key = line.split(':').next().unwrap_or_default();
        key.trim_matches(['"', '\'']) == field
    };
    let found = yaml.lines().position(is_it).map(|index| index + 2);
    found.and_then(|line| u32::try_from(line).ok()).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report(text: &str, folder: &str) -> Report {
        check(
            &Files::from([(SkillPath::skill_md(), text.as_bytes().to_vec())]),
            folder,
        )
    }

    fn rules(text: &str) -> Vec<(&'static str, u32)> {
        report(text, "pdf-merge")
            .findings
            .iter()
            .map(|finding| (finding.rule, finding.line))
            .collect()
    }

    fn with(fields: &str) -> String {
        format!("---\nname: pdf-merge\ndescription: Merge PDF files\n{fields}---\n# PDF\n\nSteps.\n")
    }

    /// `S-1`.
    #[test]
    fn a_skill_by_the_specification_conforms_and_nothing_is_said() {
        let text = with(
            "license: Apache-2.0\ncompatibility: needs qpdf\nmetadata:\n  author: ann\n  version: \"1.0\"\nallowed-tools: Bash(git:*) Read\n",
        );
        let found = report(&text, "pdf-merge");
        assert_eq!(
            (found.conforms(), found.findings.len(), found.summary()),
            (true, 0, String::new())
        );
    }

    #[test]
    fn each_strict_rule_is_told_with_its_line() {
        assert_eq!(rules(&with("version: 1\n")), [("unknown-field", 4)]);
        assert_eq!(
            rules(&with("allowed-tools: [Read]\n")),
            [("flow-style", 4), ("allowed-tools", 4)]
        );
        assert_eq!(rules(&with("compatibility: 7\n")), [("compatibility", 4)]);
        assert_eq!(rules(&with("metadata: x\n")), [("metadata", 4)]);
        assert_eq!(rules(&with("metadata:\n  a: !x y\n")), [("tag", 5)]);
        assert_eq!(
            rules(&with("").replace("pdf-merge", "pdf--merge")),
            [("name", 2), ("name-folder", 2)]
        );
        assert_eq!(
            rules(&with("").replace("name: pdf-merge", "name: Pdf-merge")),
            [("name", 2), ("name-folder", 2)]
        );
        let long = "x".repeat(1_025);
        assert_eq!(rules(&with("").replace("Merge PDF files", &long)), [("description", 3)]);
        assert_eq!(rules("hello"), [("front-matter", 1)]);
        assert_eq!(rules(&format!("\u{feff}{}", with(""))), [("byte-order-mark", 1)]);
    }

    #[test]
    fn what_another_reader_sees_differently_is_a_warning() {
        let found = report(&with("license: \"a --- b\"\n"), "pdf-merge");
        assert!(found.conforms(), "{found:?}");
        assert_eq!(found.findings[0].rule, "inner-fence");
        let block = with("license: |\n  [not flow]\n  &not an anchor\n");
        assert_eq!(rules(&block), []);
        let files = Files::from([
            (SkillPath::skill_md(), with("").into_bytes()),
            (SkillPath::parse("references/x/SKILL.md").unwrap(), b"---".to_vec()),
        ]);
        let found = check(&files, "pdf-merge");
        assert_eq!((found.conforms(), found.findings[0].rule), (true, "inner-skill"));
    }

    #[test]
    fn names_in_other_scripts_pass_the_validator_and_are_told() {
        let text = with("").replace("name: pdf-merge", "name: 文档");
        let found = report(&text, "文档");
        assert!(found.conforms(), "{found:?}");
        assert_eq!(found.findings[0].rule, "name-script");
        // Both sides are normalised before they are compared.
        assert!(report(&with("").replace("name: pdf-merge", "name: cafe\u{301}"), "caf\u{e9}").conforms());
    }

    #[test]
    fn a_report_has_an_end() {
        let fields = (0..2_000).map(|at| format!("x{at}: 1")).collect::<Vec<_>>().join("\n") + "\n";
        assert_eq!(report(&with(&fields), "pdf-merge").findings.len(), MOST);
    }

    proptest::proptest! {
        #[test]
        fn any_bytes_get_a_report(bytes in proptest::collection::vec(0_u8..=255, 0..200), head in 0..3_usize) {
            let mut text = ["", "---\n", "---\nname: a\ndescription: b\n"][head].as_bytes().to_vec();
            text.extend(bytes);
            let found = check(&Files::from([(SkillPath::skill_md(), text.clone())]), "a");
            // What conforms can be read.
            if found.conforms() {
                let read = header::parse_bytes(&text);
                proptest::prop_assert!(matches!(read, Ok(_) | Err(header::HeaderError::EmptyBody)), "{:?}", read);
            }
        }
    }
}
