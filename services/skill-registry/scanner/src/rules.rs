//! The rules, read from the data files in `rules/`. A rule is a pattern over the levelled view of a text; a check is
//! found by code and has its words here as well, so that all of them are told in one way.
//!
//! How to write a rule:
//! * Judge intent, not mention: ask for the order, the target, the disguise.
//! * `anchors` are literals of which any match contains one. They are searched for once over the whole text; a rule
//!   without a hit costs nothing. Patterns see lower case, single blanks, and a window around the anchor.
//! * `needs` are literals of which the window must hold one as well, for rules whose anchors are common words.
//! * `shape = "command"` (the default) keeps the window on the anchor's line; in `"prose"` a blank also matches line ends.
//! * `known` is matched against the match alone: addresses that make it harmless. `unless` is matched against the words
//!   around it, in prose only before and after, in code only before.
//! * `hits` and `misses` are the rule's tests; they are run against the rule by itself.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use aho_corasick::{AhoCorasick, AhoCorasickKind};
use regex::bytes::{Regex, RegexBuilder};
use serde::Deserialize;
use steward_base::hash::sha256_parts;

use crate::report::Severity;
use crate::split::Place;

const FRAGMENTS: &str = include_str!("../rules/fragments.toml");
const CHECKS: &str = include_str!("../rules/checks.toml");
const POPULAR: &str = include_str!("../rules/popular.toml");
const FILES: [&str; 5] = [
    include_str!("../rules/exfiltration.toml"),
    include_str!("../rules/injection.toml"),
    include_str!("../rules/staged.toml"),
    include_str!("../rules/commands.toml"),
    include_str!("../rules/supply.toml"),
];

/// Why the rules cannot be used. They are embedded, so that a test of this crate sees it first.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RuleError {
    /// A data file cannot be read.
    #[error("a rule file is not what it should be: {problem}")]
    Syntax {
        /// What the reader says.
        problem: String,
    },
    /// A pattern does not compile.
    #[error("rule {rule} has a pattern that does not compile: {problem}")]
    Pattern {
        /// The rule.
        rule: String,
        /// What the compiler says.
        problem: String,
    },
    /// Two rules have one id, or a rule has no anchor.
    #[error("rule {rule} is not usable: {problem}")]
    Rule {
        /// The rule.
        rule: String,
        /// What is wrong.
        problem: &'static str,
    },
}

/// What a finding says whichever way it was found.
#[derive(Debug, Clone, Deserialize)]
pub(crate) struct Words {
    pub(crate) id: String,
    pub(crate) title: String,
    pub(crate) severity: Severity,
    pub(crate) category: String,
    pub(crate) ast: Vec<String>,
    pub(crate) ave: Vec<String>,
    pub(crate) fix: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Shape {
    #[default]
    Command,
    Prose,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Negation {
    Excuses,
    #[default]
    Ignored,
}

#[derive(Debug, Deserialize)]
struct Written {
    #[serde(flatten)]
    words: Words,
    #[serde(rename = "in")]
    places: Vec<Place>,
    #[serde(default)]
    shape: Shape,
    #[serde(default)]
    negation: Negation,
    anchors: Vec<String>,
    #[serde(default)]
    needs: Vec<String>,
    pattern: String,
    unless: Option<String>,
    unless_severity: Option<Severity>,
    known: Option<String>,
    known_severity: Option<Severity>,
    hits: Vec<String>,
    misses: Vec<String>,
}

#[derive(Debug, Deserialize)]
struct RuleFile {
    rule: Vec<Written>,
}

#[derive(Debug, Deserialize)]
struct CheckFile {
    check: Vec<Words>,
}

/// Names that are imitated.
#[derive(Debug, Default, Deserialize)]
pub(crate) struct Popular {
    pub(crate) packages: Vec<String>,
    pub(crate) others: Vec<String>,
    pub(crate) publishers: Vec<String>,
}

/// A rule ready to be matched.
#[derive(Debug)]
pub(crate) struct Rule {
    pub(crate) words: Words,
    pub(crate) places: Vec<Place>,
    pub(crate) shape: Shape,
    pub(crate) negation_excuses: bool,
    pub(crate) pattern: Regex,
    /// Literals of which a window must hold one as well; nothing if it need not.
    pub(crate) needs: Option<AhoCorasick>,
    pub(crate) unless: Option<(Regex, Option<Severity>)>,
    pub(crate) known: Option<(Regex, Option<Severity>)>,
    #[cfg_attr(not(test), expect(dead_code, reason = "the rule's own tests"))]
    pub(crate) hits: Vec<String>,
    #[cfg_attr(not(test), expect(dead_code, reason = "the rule's own tests"))]
    pub(crate) misses: Vec<String>,
}

/// All rules, compiled.
#[derive(Debug)]
pub(crate) struct RuleSet {
    pub(crate) rules: Vec<Rule>,
    pub(crate) checks: BTreeMap<String, Words>,
    pub(crate) popular: Popular,
    pub(crate) anchors: AhoCorasick,
    /// The rules of each anchor.
    pub(crate) owners: Vec<Vec<usize>>,
    pub(crate) negation: Regex,
}

impl RuleSet {
    pub(crate) fn load() -> Result<Self, RuleError> {
        let fragments: BTreeMap<String, String> = read(FRAGMENTS)?;
        let mut rules = Vec::new();
        let mut owners: BTreeMap<String, Vec<usize>> = BTreeMap::new();
        let mut checks: BTreeMap<String, Words> = BTreeMap::new();
        for check in read::<CheckFile>(CHECKS)?.check {
            checks.insert(check.id.clone(), check);
        }
        for file in FILES {
            for written in read::<RuleFile>(file)?.rule {
                let id = written.words.id.clone();
                let problem = if written.anchors.is_empty() {
                    Some("it has no anchor")
                } else if checks.contains_key(&id) || rules.iter().any(|rule: &Rule| rule.words.id == id) {
                    Some("its id is taken")
                } else {
                    None
                };
                if let Some(problem) = problem {
                    return Err(RuleError::Rule { rule: id, problem });
                }
                for anchor in &written.anchors {
                    owners.entry(anchor.clone()).or_default().push(rules.len());
                }
                rules.push(compile(written, &fragments)?);
            }
        }
        let (anchors, owners): (Vec<String>, Vec<Vec<usize>>) = owners.into_iter().unzip();
        let anchors = AhoCorasick::builder()
            .kind(Some(AhoCorasickKind::DFA))
            .build(&anchors)
            .map_err(|error| RuleError::Syntax {
                problem: error.to_string(),
            })?;
        let negation = r"\b(?:never|not|don't|avoid|cannot|can't|shouldn't|mustn't|without|refuse to|instead of|rather than|no need to|nobody should)\b[^.!?;:\n]{0,48}$";
        Ok(Self {
            rules,
            checks,
            popular: read(POPULAR)?,
            anchors,
            owners,
            negation: regex("negation", negation)?,
        })
    }
}

/// Digest of the data.
pub(crate) fn digest() -> &'static str {
    static DIGEST: LazyLock<String> = LazyLock::new(|| {
        let data = FILES.iter().chain([&FRAGMENTS, &CHECKS, &POPULAR]);
        sha256_parts(data.map(|file| file.as_bytes()))
    });
    &DIGEST
}

fn read<T: serde::de::DeserializeOwned>(text: &str) -> Result<T, RuleError> {
    toml::from_str(text).map_err(|error| RuleError::Syntax {
        problem: error.to_string(),
    })
}

fn compile(written: Written, fragments: &BTreeMap<String, String>) -> Result<Rule, RuleError> {
    let id = written.words.id.clone();
    let prose = written.shape == Shape::Prose;
    let build = |pattern: &str| {
        let mut whole = pattern.to_owned();
        for (name, fragment) in fragments {
            whole = whole.replace(&format!("{{{{{name}}}}}"), fragment);
        }
        if whole.contains("{{") && !whole.contains("\\{\\{") && !whole.contains("\\{{") {
            return Err(RuleError::Pattern {
                rule: id.clone(),
                problem: "it names a fragment that does not exist".to_owned(),
            });
        }
        regex(&id, &if prose { with_line_ends(&whole) } else { whole })
    };
    let needs = match written.needs.as_slice() {
        [] => None,
        needs => Some(AhoCorasick::new(needs).map_err(|error| RuleError::Syntax {
            problem: error.to_string(),
        })?),
    };
    Ok(Rule {
        needs,
        pattern: build(&written.pattern)?,
        unless: match &written.unless {
            Some(unless) => Some((build(unless)?, written.unless_severity)),
            None => None,
        },
        known: match &written.known {
            Some(known) => Some((build(known)?, written.known_severity)),
            None => None,
        },
        places: written.places,
        shape: written.shape,
        negation_excuses: written.negation == Negation::Excuses,
        hits: written.hits,
        misses: written.misses,
        words: written.words,
    })
}

/// Patterns see bytes: the view is levelled, so that ASCII classes suffice, and they stay fast on any script.
fn regex(rule: &str, pattern: &str) -> Result<Regex, RuleError> {
    RegexBuilder::new(pattern)
        .unicode(false)
        .multi_line(true)
        .size_limit(32 << 20)
        .dfa_size_limit(8 << 20)
        .build()
        .map_err(|error| RuleError::Pattern {
            rule: rule.to_owned(),
            problem: error.to_string(),
        })
}

/// A blank outside a class matches up to three blanks or line ends.
fn with_line_ends(pattern: &str) -> String {
    let mut out = String::with_capacity(pattern.len() * 2);
    let mut characters = pattern.chars().peekable();
    let mut in_class = false;
    while let Some(character) = characters.next() {
        match character {
            '\\' => {
                out.push('\\');
                out.extend(characters.next());
            }
            '[' => {
                in_class = true;
                out.push('[');
            }
            ']' => {
                in_class = false;
                out.push(']');
            }
            ' ' if !in_class => match characters.peek() {
                Some('?') => {
                    characters.next();
                    out.push_str(r"\s{0,3}");
                }
                Some('*' | '+' | '{') => out.push_str(r"\s"),
                _ => out.push_str(r"\s{1,3}"),
            },
            other => out.push(other),
        }
    }
    out
}
