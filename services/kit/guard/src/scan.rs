//! The engine: one pass finds which rules can match at all, one pass for each of those finds where.

#[cfg(test)]
mod tests;

use std::sync::{LazyLock, OnceLock};

use aho_corasick::AhoCorasick;
use regex::bytes::{Regex, RegexBuilder};

use crate::rules::{self, Negation, Rule, Shape};
use crate::view::View;
use crate::{Finding, Scope};

/// Most findings of one rule in one text. More of the same tell nothing new.
const MOST_PER_RULE: usize = 8;
/// How far before a match a negation is looked for, in bytes of the view.
const NEGATION_REACH: usize = 48;

/// Finds what matches the rules of `scope`, in the order of the text.
///
/// The time taken is linear in the length of `text`, with the number of rules as the largest possible factor.
pub fn scan(text: &str, scope: Scope) -> Vec<Finding> {
    let view = View::of(text);
    let mut findings = Vec::new();
    for index in ENGINE.candidates(view.text()) {
        if let Some(prepared) = ENGINE.rules.get(index).filter(|prepared| prepared.rule.scope <= scope) {
            prepared.find(&view, &mut findings);
        }
    }
    findings.sort_unstable();
    findings
}

static ENGINE: LazyLock<Engine> = LazyLock::new(Engine::new);

struct Engine {
    rules: Vec<Prepared>,
    anchors: AhoCorasick,
    /// For each anchor the rule that it belongs to.
    owners: Vec<usize>,
}

struct Prepared {
    rule: &'static Rule,
    /// Compiled when its anchor is first met.
    regex: OnceLock<Regex>,
}

impl Engine {
    #[expect(
        clippy::expect_used,
        reason = "the anchors are constants, and a test builds the engine"
    )]
    fn new() -> Self {
        let rules: Vec<Prepared> = rules::all()
            .map(|rule| Prepared {
                rule,
                regex: OnceLock::new(),
            })
            .collect();
        let mut owners = Vec::new();
        let mut anchors = Vec::new();
        for (index, prepared) in rules.iter().enumerate() {
            for anchor in prepared.rule.anchors {
                owners.push(index);
                anchors.push(*anchor);
            }
        }
        let anchors = AhoCorasick::new(anchors).expect("a valid set of anchors");
        Self { rules, anchors, owners }
    }

    /// The rules of which an anchor occurs, each once.
    fn candidates(&self, text: &str) -> Vec<usize> {
        let mut seen = vec![false; self.rules.len()];
        for hit in self.anchors.find_overlapping_iter(text) {
            if let Some(slot) = self
                .owners
                .get(hit.pattern().as_usize())
                .and_then(|owner| seen.get_mut(*owner))
            {
                *slot = true;
            }
        }
        seen.iter()
            .enumerate()
            .filter_map(|(index, seen)| seen.then_some(index))
            .collect()
    }
}

impl Prepared {
    fn find(&self, view: &View<'_>, findings: &mut Vec<Finding>) {
        let text = view.text().as_bytes();
        let regex = self.regex.get_or_init(|| compile(self.rule));
        let matches = regex.find_iter(text).filter(|found| {
            self.rule.negation == Negation::Ignored || !is_warned_of(text.get(..found.start()).unwrap_or_default())
        });
        for found in matches.take(MOST_PER_RULE) {
            let (start, end) = view.original_range(found.start(), found.end());
            findings.push(Finding {
                start,
                end,
                category: self.rule.category,
                rule: self.rule.id,
                severity: self.rule.severity,
            });
        }
    }
}

#[expect(
    clippy::expect_used,
    reason = "the patterns are constants, and a test compiles each of them"
)]
fn compile(rule: &Rule) -> Regex {
    let (pattern, dot_is_all) = match rule.shape {
        Shape::Prose => (rule.pattern.replace(' ', r"\s"), true),
        Shape::Command => (rule.pattern.to_owned(), false),
    };
    let built = RegexBuilder::new(&pattern)
        .unicode(false)
        .dot_matches_new_line(dot_is_all)
        .build();
    built.expect("a valid pattern")
}

/// Whether the words just before a match warn of it, as in "never run …". "Do not hesitate to run …" does not warn.
fn is_warned_of(before: &[u8]) -> bool {
    #[expect(
        clippy::expect_used,
        reason = "the pattern is a constant, and every scan that matches uses it"
    )]
    static WARNING: LazyLock<Regex> = LazyLock::new(|| {
        let pattern = r"(?:\b(?:never|do not|don't|must not|mustn't|should not|shouldn't|avoid|cannot|refuses? to|instead of|rather than|prevents?|blocks?|forbids?|forbidden to|denies|against)\b|不要|切勿|禁止|避免|防止|不得|不能)([^.!?;\n]{0,24})$";
        RegexBuilder::new(pattern)
            .unicode(false)
            .build()
            .expect("a valid pattern")
    });
    const PUSHES: [&[u8]; 6] = [b"hesitate", b"forget", b"fail", b"wait", b"worry", b"ask"];
    let reach = before
        .get(before.len().saturating_sub(NEGATION_REACH)..)
        .unwrap_or_default();
    let Some(between) = WARNING.captures(reach).and_then(|found| found.get(1)) else {
        return false;
    };
    !PUSHES
        .iter()
        .any(|push| between.as_bytes().windows(push.len()).any(|window| window == *push))
}
