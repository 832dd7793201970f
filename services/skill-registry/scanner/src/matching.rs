//! Applies the rules to one text: anchors in one pass, then each rule's pattern in the windows around its anchors only.
//! Linear in the length of the text, whatever stands in it.

use std::ops::Range;

use crate::report::Severity;
use crate::rules::{Rule, RuleSet, Shape};
use crate::split::{Parts, Place};
use crate::view::View;

/// Most matches that one rule reports in one text.
const MOST: usize = 8;

/// A match of a rule.
#[derive(Debug)]
pub(crate) struct Match {
    /// Index into the rule set.
    pub(crate) rule: usize,
    pub(crate) severity: Severity,
    /// In the original text.
    pub(crate) range: Range<usize>,
}

/// Where a text stands, which decides which rules apply.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Scene<'p> {
    /// A file, cut into its parts.
    File(&'p Parts),
    /// Text that came out of another: every rule applies, and nothing around it excuses it.
    Revealed,
}

/// Every match of every rule in `text`, whose levelled view is `view`.
pub(crate) fn matches(rules: &RuleSet, text: &str, view: &View, scene: Scene<'_>) -> Vec<Match> {
    let haystack = view.text.as_bytes();
    let mut windows: Vec<Vec<Range<usize>>> = vec![Vec::new(); rules.rules.len()];
    for hit in rules.anchors.find_overlapping_iter(haystack) {
        let owners = rules
            .owners
            .get(hit.pattern().as_usize())
            .map(Vec::as_slice)
            .unwrap_or_default();
        for &rule in owners {
            let (Some(window), Some(found)) = (rules.rules.get(rule), windows.get_mut(rule)) else {
                continue;
            };
            if !may_stand_here(window, view, hit.start(), scene) {
                continue;
            }
            let window = window_around(haystack, hit.start()..hit.end(), window.shape);
            match found.last_mut() {
                Some(last) if window.start <= last.end => last.end = last.end.max(window.end),
                _ => found.push(window),
            }
        }
    }
    let mut found = Vec::new();
    for (index, windows) in windows.iter().enumerate() {
        if let Some(rule) = rules.rules.get(index) {
            let mut left = MOST;
            for window in windows {
                left = matches_in(
                    rules,
                    index,
                    rule,
                    window,
                    &Judged { text, view, scene },
                    left,
                    &mut found,
                );
                if left == 0 {
                    break;
                }
            }
        }
    }
    found
}

/// Comments and headers are rare, and rules for them alone have common words for anchors.
fn may_stand_here(rule: &Rule, view: &View, at: usize, scene: Scene<'_>) -> bool {
    let Scene::File(parts) = scene else { return true };
    let rare = |place: &Place| matches!(place, Place::Comment | Place::Header);
    !rule.places.iter().all(rare) || rule.places.contains(&parts.place(view.original(&(at..at)).start))
}

struct Judged<'t> {
    text: &'t str,
    view: &'t View,
    scene: Scene<'t>,
}

fn matches_in(
    rules: &RuleSet,
    index: usize,
    rule: &Rule,
    window: &Range<usize>,
    text: &Judged<'_>,
    mut left: usize,
    found: &mut Vec<Match>,
) -> usize {
    let haystack = text.view.text.as_bytes();
    let within = haystack.get(window.clone()).unwrap_or_default();
    if rule.needs.as_ref().is_some_and(|needs| !needs.is_match(within)) {
        return left;
    }
    for hit in rule.pattern.find_iter(within) {
        let hit = window.start + hit.start()..window.start + hit.end();
        let range = text.view.original(&hit);
        let place = place_of(text, &hit, &range);
        if place.is_some_and(|place| !rule.places.contains(&place)) {
            continue;
        }
        let Some(severity) = severity(rules, rule, haystack, &hit, place) else {
            continue;
        };
        found.push(Match {
            rule: index,
            severity,
            range,
        });
        left -= 1;
        if left == 0 {
            break;
        }
    }
    left
}

/// The place of a match; nothing for revealed text. A comment line of a script is prose to a machine.
fn place_of(text: &Judged<'_>, hit: &Range<usize>, range: &Range<usize>) -> Option<Place> {
    let Scene::File(parts) = text.scene else { return None };
    // A pattern may begin with the line end before it.
    let shown = text.text.get(range.start..range.end).unwrap_or_default();
    let start = range.start + (shown.len() - shown.trim_start().len()).min(shown.len().saturating_sub(1));
    let place = parts.place(start);
    if matches!(place, Place::Script | Place::Code) {
        let bytes = text.view.text.as_bytes();
        let before = bytes.get(hit.start.saturating_sub(400)..hit.start).unwrap_or_default();
        let line = before
            .iter()
            .rposition(|&byte| byte == b'\n')
            .map_or(before, |at| before.get(at + 1..).unwrap_or_default());
        let line = line.trim_ascii_start();
        if line.starts_with(b"#") && !line.starts_with(b"#!") || line.starts_with(b"//") {
            return Some(Place::Prose);
        }
    }
    Some(place)
}

/// The severity after what excuses the match; nothing if it is no finding at all.
fn severity(
    rules: &RuleSet,
    rule: &Rule,
    haystack: &[u8],
    hit: &Range<usize>,
    place: Option<Place>,
) -> Option<Severity> {
    let own = rule.words.severity;
    let matched = haystack.get(hit.clone()).unwrap_or_default();
    if let Some((known, severity)) = &rule.known
        && known.is_match(matched)
    {
        return *severity;
    }
    let Some(place) = place else { return Some(own) };
    let in_text = matches!(place, Place::Prose | Place::Header | Place::Comment);
    if in_text && rule.negation_excuses {
        let before = haystack
            .get(hit.start.saturating_sub(64)..hit.start)
            .unwrap_or_default();
        if rules.negation.is_match(before) {
            return None;
        }
    }
    if let Some((unless, severity)) = &rule.unless
        && unless.is_match(surroundings(haystack, hit, in_text))
    {
        return *severity;
    }
    Some(own)
}

/// A match with the words around it: up to the line's ends in prose, from the line's beginning to the match in code,
/// where anybody could write an excuse behind it.
fn surroundings<'h>(haystack: &'h [u8], hit: &Range<usize>, in_text: bool) -> &'h [u8] {
    let floor = hit.start.saturating_sub(200);
    let before = haystack.get(floor..hit.start).unwrap_or_default();
    let start = before
        .iter()
        .rposition(|&byte| byte == b'\n')
        .map_or(floor, |at| floor + at + 1);
    let end = if in_text {
        let after = haystack
            .get(hit.end..haystack.len().min(hit.end + 120))
            .unwrap_or_default();
        hit.end + after.iter().position(|&byte| byte == b'\n').unwrap_or(after.len())
    } else {
        // One sign more, for patterns that look at what follows.
        haystack.len().min(hit.end + 1)
    };
    haystack.get(start..end).unwrap_or_default()
}

fn window_around(haystack: &[u8], hit: Range<usize>, shape: Shape) -> Range<usize> {
    match shape {
        Shape::Prose => hit.start.saturating_sub(300)..haystack.len().min(hit.end + 500),
        Shape::Command => {
            let floor = hit.start.saturating_sub(500);
            let ceiling = haystack.len().min(hit.end + 800);
            let before = haystack.get(floor..hit.start).unwrap_or_default();
            let after = haystack.get(hit.end..ceiling).unwrap_or_default();
            let start = before
                .iter()
                .rposition(|&byte| byte == b'\n')
                .map_or(floor, |at| floor + at + 1);
            let end = after
                .iter()
                .position(|&byte| byte == b'\n')
                .map_or(ceiling, |at| hit.end + at);
            start..end
        }
    }
}
