//! The engine: a first pass finds near which places a rule can match at all, a second where in them all pieces of a match stand
//! behind each other; only there a rule is tried.

mod pieces;
#[cfg(test)]
mod tests;
mod tries;

use std::ops::Range;
use std::sync::{LazyLock, OnceLock};

use aho_corasick::automaton::Automaton;
use aho_corasick::{Anchored, PatternID, dfa};
use regex_automata::meta::Regex;
use regex_automata::{Anchored as Anchor, Input};

use crate::rules::{self, Negation, Rule, Shape};
use crate::view::View;
use crate::{Finding, Scope};

use self::pieces::{Branch, Pieces, Set, Spelled};
use self::tries::{Prints, Tries};

/// Most findings of one rule in one text. More of the same tell nothing new.
const MOST_PER_RULE: usize = 8;
/// How far before a match a negation is looked for, in bytes of the view.
const NEGATION_REACH: usize = 48;

/// Finds what matches the rules of `scope`, in the order of the text.
///
/// The time taken is linear in the length of `text`: one pass finds the anchors of all rules at once, and a rule is tried
/// near its own anchors only. Where these are everywhere, as somebody may arrange to keep us busy, another pass finds where
/// matches can begin for all that their pieces say, and from there a rule reads no further than it still fits, and nothing that
/// it has read before.
pub fn scan(text: &str, scope: Scope) -> Vec<Finding> {
    let mut findings = find(text, scope, &mut Effort::default());
    findings.sort_unstable();
    findings
}

/// What a scan took, in things that can be counted.
#[derive(Debug, Default, Clone, Copy)]
struct Effort {
    /// Bytes through which a rule was searched for wherever it may begin.
    searched: usize,
    /// Places at which a rule was tried because it could begin there.
    tried: usize,
    /// Such places that were passed over, since the same text had been tried before.
    known: usize,
}

fn find(text: &str, scope: Scope, effort: &mut Effort) -> Vec<Finding> {
    let view = View::of(text);
    let mut findings = Vec::new();
    let places = ENGINE.places(view.text(), scope);
    let near: usize = places.iter().flatten().map(Range::len).sum();
    if near > view.text().len() * CALM + CALM_BYTES {
        let starts = ENGINE.starts(view.text(), &places);
        let prints = Prints::of(view.text().as_bytes(), ENGINE.longest);
        for ((prepared, places), starts) in ENGINE.rules.iter().zip(&places).zip(&starts) {
            let mut tries = Tries::new(starts, &prints);
            prepared.find(&view, places, Some(&mut tries), &mut findings);
            effort.tried += tries.tried;
            effort.known += tries.known;
        }
    } else {
        effort.searched += near;
        for (prepared, places) in ENGINE.rules.iter().zip(&places) {
            prepared.find(&view, places, None, &mut findings);
        }
    }
    findings
}

/// How much may stand near anchors, rule by rule, in lengths of the text and in bytes, before beginnings are looked for.
const CALM: usize = 4;
const CALM_BYTES: usize = 16 * 1024;

static ENGINE: LazyLock<Engine> = LazyLock::new(Engine::new);

/// The words that a pass over the text looks for, each with the rule that it belongs to.
struct Words {
    automaton: dfa::DFA,
    owners: Vec<usize>,
}

struct Engine {
    rules: Vec<Prepared>,
    /// Any match holds one of these.
    anchors: Words,
    /// What any match holds, in order.
    pieces: Pieces,
    /// Longest stretch that a rule is tried on, in bytes of the view.
    longest: usize,
}

struct Prepared {
    rule: &'static Rule,
    pattern: String,
    /// Longest match, in bytes of the view, and a little more, so that the edge of a place is never in a match.
    reach: usize,
    /// The ways in which it can match.
    branches: Vec<Branch<Set>>,
    /// Compiled when it is first needed.
    regex: OnceLock<Regex>,
}

/// What a match may look at beyond its own ends: a word boundary, a line end.
const EDGE: usize = 8;

/// Tells of every word that stands in `text`, also inside another, by the end of each.
fn each_hit(automaton: &impl Automaton, text: &str, mut tell: impl FnMut(PatternID, usize)) {
    // Both automata can be walked like that; one that cannot finds nothing, which every test would see.
    let Ok(mut state) = automaton.start_state(Anchored::No) else {
        return;
    };
    for (at, byte) in text.bytes().enumerate() {
        state = automaton.next_state(Anchored::No, state, byte);
        if automaton.is_special(state) && automaton.is_match(state) {
            for index in 0..automaton.match_len(state) {
                tell(automaton.match_pattern(state, index), at + 1);
            }
        }
    }
}

impl Words {
    #[expect(
        clippy::expect_used,
        reason = "the words are constants, and a test builds the engine"
    )]
    fn new(words: impl Iterator<Item = (usize, Vec<u8>)>) -> Self {
        let (owners, words): (Vec<usize>, Vec<Vec<u8>>) = words.unzip();
        let automaton = dfa::DFA::new(words).expect("a valid set of words");
        Self { automaton, owners }
    }

    /// Tells of where the words stand, each with its rule, in the order of their ends.
    fn find(&self, text: &str, mut tell: impl FnMut(usize, Range<usize>)) {
        each_hit(&self.automaton, text, |word, end| {
            if let Some(owner) = self.owners.get(word.as_usize()) {
                tell(*owner, end - self.automaton.pattern_len(word)..end);
            }
        });
    }
}

impl Engine {
    fn new() -> Self {
        let (mut rules, branches): (Vec<Prepared>, Vec<_>) = rules::all().map(prepare).unzip();
        let (pieces, branches) = Pieces::of(branches);
        for (rule, branches) in rules.iter_mut().zip(branches) {
            rule.branches = branches;
        }
        let anchors = rules.iter().enumerate().flat_map(|(index, prepared)| {
            let anchors = prepared.rule.anchors.iter();
            anchors.map(move |anchor| (index, anchor.as_bytes().to_vec()))
        });
        let anchors = Words::new(anchors);
        let longest = rules.iter().map(|prepared| prepared.reach.saturating_add(EDGE)).max();
        Self {
            longest: longest.unwrap_or_default(),
            rules,
            anchors,
            pieces,
        }
    }

    /// For each rule the stretches of `text` in which a match can lie: apart from each other, in their order.
    fn places(&self, text: &str, scope: Scope) -> Vec<Vec<Range<usize>>> {
        let mut places: Vec<Vec<Range<usize>>> = vec![Vec::new(); self.rules.len()];
        self.anchors.find(text, |owner, hit| {
            if let (Some(prepared), Some(places)) = (self.rules.get(owner), places.get_mut(owner))
                && prepared.rule.scope <= scope
            {
                let end = hit.end.saturating_add(prepared.reach).min(text.len());
                join(places, hit.start.saturating_sub(prepared.reach)..end);
            }
        });
        places
    }

    /// For each rule where in its places a match can begin, in order.
    fn starts(&self, text: &str, places: &[Vec<Range<usize>>]) -> Vec<Vec<usize>> {
        let near = || self.rules.iter().zip(places).filter(|(_, places)| !places.is_empty());
        let words = self
            .pieces
            .places(text, near().flat_map(|(prepared, _)| &prepared.branches));
        let of_rule = |(prepared, places): (&Prepared, &Vec<Range<usize>>)| {
            let mut starts = Vec::new();
            if !places.is_empty() {
                for branch in &prepared.branches {
                    branch.starts(&words, places, &mut starts);
                }
            }
            starts.sort_unstable();
            starts.dedup();
            starts
        };
        self.rules.iter().zip(places).map(of_rule).collect()
    }
}

/// Adds a stretch that ends behind all that are there.
fn join(places: &mut Vec<Range<usize>>, mut place: Range<usize>) {
    while let Some(last) = places.last() {
        if last.end < place.start {
            break;
        }
        place.start = place.start.min(last.start);
        places.pop();
    }
    places.push(place);
}

impl Prepared {
    /// Tries the rule in `places`: at the beginnings in them, in order, if they are known.
    fn find(
        &self,
        view: &View<'_>,
        places: &[Range<usize>],
        mut tries: Option<&mut Tries<'_>>,
        findings: &mut Vec<Finding>,
    ) {
        let text = view.text().as_bytes();
        let mut found = 0;
        for place in places {
            let mut from = place.start;
            while let Some((start, end)) = self.next(text, from..place.end, tries.as_deref_mut()) {
                from = end;
                if self.negation_excuses(text, start) {
                    continue;
                }
                let (start, end) = view.original_range(start, end);
                findings.push(Finding {
                    start,
                    end,
                    category: self.rule.category,
                    rule: self.rule.id,
                    severity: self.rule.severity,
                });
                found += 1;
                if found == MOST_PER_RULE {
                    return;
                }
            }
        }
    }

    /// The first match in a stretch of the text.
    fn next(&self, text: &[u8], stretch: Range<usize>, tries: Option<&mut Tries<'_>>) -> Option<(usize, usize)> {
        let regex = self.regex.get_or_init(|| compile(self.rule, &self.pattern));
        let input = Input::new(text);
        let Some(tries) = tries else {
            let found = regex.search(&input.range(stretch))?;
            return Some((found.start(), found.end()));
        };
        while let Some(start) = tries.next(&stretch) {
            let end = start.saturating_add(self.reach).min(stretch.end);
            // What a match may look at before itself belongs to what was read. Where there is less of it, at the start of the
            // text, nothing is like it.
            let read = start.checked_sub(EDGE).map(|from| from..end);
            if read.as_ref().is_some_and(|read| tries.is_known(text, read)) {
                continue;
            }
            let input = input.clone().anchored(Anchor::Yes).range(start..end);
            if let Some(found) = regex.search_half(&input) {
                return Some((start, found.offset()));
            }
            if let Some(read) = read {
                tries.remember(read);
            }
        }
        None
    }

    fn negation_excuses(&self, text: &[u8], start: usize) -> bool {
        self.rule.negation == Negation::Excuses && is_warned_of(text.get(..start).unwrap_or_default())
    }
}

fn is_dot_all(rule: &Rule) -> bool {
    rule.shape == Shape::Prose
}

/// What is known of a rule before it is compiled, and the ways in which it can match.
#[expect(
    clippy::expect_used,
    reason = "the patterns are constants, and a test prepares each of them"
)]
fn prepare(rule: &'static Rule) -> (Prepared, Vec<Branch<Spelled>>) {
    let pattern = match rule.shape {
        Shape::Prose => in_prose(rule.pattern),
        Shape::Command => rule.pattern.to_owned(),
    };
    let parsed = regex_syntax::ParserBuilder::new()
        .unicode(false)
        .utf8(false)
        .dot_matches_new_line(is_dot_all(rule))
        .build()
        .parse(&pattern)
        .expect("a valid pattern");
    let reach = parsed
        .properties()
        .maximum_len()
        .map_or(usize::MAX, |longest| longest + EDGE);
    let prepared = Prepared {
        rule,
        pattern,
        reach,
        branches: Vec::new(),
        regex: OnceLock::new(),
    };
    (prepared, Branch::all(&parsed))
}

/// A pattern in which a blank matches a line end too: no other blanks are left in a view.
fn in_prose(pattern: &str) -> String {
    let mut spelled = String::with_capacity(pattern.len() * 2);
    let (mut escaped, mut in_class) = (false, false);
    for character in pattern.chars() {
        match character {
            ' ' if in_class => spelled.push_str(r" \n"),
            ' ' => spelled.push_str(r"[ \n]"),
            other => spelled.push(other),
        }
        match character {
            '[' if !escaped => in_class = true,
            ']' if !escaped => in_class = false,
            _ => {}
        }
        escaped = character == '\\' && !escaped;
    }
    spelled
}

#[expect(
    clippy::expect_used,
    reason = "the patterns are constants, and a test compiles each of them"
)]
fn compile(rule: &Rule, pattern: &str) -> Regex {
    let syntax = regex_automata::util::syntax::Config::new()
        .unicode(false)
        .utf8(false)
        .dot_matches_new_line(is_dot_all(rule));
    let config = Regex::config().utf8_empty(false);
    Regex::builder()
        .syntax(syntax)
        .configure(config)
        .build(pattern)
        .expect("a valid pattern")
}

/// Whether the words just before a match warn of it, as in "never run …". "Do not hesitate to run …" does not warn.
fn is_warned_of(before: &[u8]) -> bool {
    #[expect(
        clippy::expect_used,
        reason = "the pattern is a constant, and every scan that matches uses it"
    )]
    static WARNING: LazyLock<regex::bytes::Regex> = LazyLock::new(|| {
        let pattern = r"(?:\b(?:never|do not|don't|must not|mustn't|should not|shouldn't|avoid|cannot|refuses? to|instead of|rather than|prevents?|blocks?|forbids?|forbidden to|denies|against)\b|不要|切勿|禁止|避免|防止|不得|不能)([^.!?;\n]{0,24})$";
        regex::bytes::RegexBuilder::new(pattern)
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
