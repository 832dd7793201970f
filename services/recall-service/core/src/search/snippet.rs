//! The part of a text that matches best, with the matches marked.

use std::borrow::Cow;
use std::ops::Range;

use crate::query::Query;
use crate::query::matching::Searchable;

/// Stands before a match in a snippet. A private-use character, removed from the text itself, so that it is
/// unambiguous.
pub const MATCH_START: char = '\u{e000}';
/// Stands after a match.
pub const MATCH_END: char = '\u{e001}';

/// Length of a snippet in characters, marks not counted.
const LENGTH: usize = 240;
/// Characters shown before the first match.
const LEAD: usize = 60;
/// More matches than this are not looked at.
const MAX_MATCHES: usize = 256;

/// The best part of `text` for `query`: where most matches lie together, the earliest of equals. Without any match, the
/// beginning. An ellipsis stands where text was left out.
pub fn snippet(text: &str, query: &Query) -> String {
    let text = if text.contains([MATCH_START, MATCH_END]) {
        Cow::Owned(text.replace([MATCH_START, MATCH_END], ""))
    } else {
        Cow::Borrowed(text)
    };
    let mut matches = Searchable::new(&text, query).ranges();
    matches.truncate(MAX_MATCHES);
    let boundaries: Vec<usize> = text.char_indices().map(|(at, _)| at).chain([text.len()]).collect();
    let char_at = |byte: usize| boundaries.partition_point(|&at| at < byte);
    let in_chars: Vec<Range<usize>> = matches
        .iter()
        .map(|range| char_at(range.start)..char_at(range.end))
        .collect();

    let total = boundaries.len() - 1;
    let first = best_start(&in_chars).saturating_sub(LEAD);
    let from = first.min(total.saturating_sub(LENGTH));
    let to = (from + LENGTH).min(total);
    let mut out = String::new();
    if from > 0 {
        out.push('…');
    }
    let mut at = boundaries[from];
    for (range, bytes) in in_chars.iter().zip(&matches) {
        if range.start < from || range.start >= to {
            continue;
        }
        let end = bytes.end.min(boundaries[to]);
        out.push_str(&text[at..bytes.start]);
        out.push(MATCH_START);
        out.push_str(&text[bytes.start..end]);
        out.push(MATCH_END);
        at = end;
    }
    out.push_str(&text[at..boundaries[to]]);
    if to < total {
        out.push('…');
    }
    out
}

/// Where the window with the most matches begins.
fn best_start(matches: &[Range<usize>]) -> usize {
    let room = LENGTH - LEAD;
    let reach = |start: usize| {
        matches
            .iter()
            .filter(|range| range.start >= start && range.end <= start + room)
            .count()
    };
    let mut best = (0, 0);
    for range in matches {
        let count = reach(range.start);
        if count > best.0 {
            best = (count, range.start);
        }
    }
    if best.0 == 0 {
        matches.first().map_or(0, |range| range.start)
    } else {
        best.1
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn shown(text: &str, query: &str) -> String {
        snippet(text, &Query::parse(query).unwrap())
            .replace(MATCH_START, "[")
            .replace(MATCH_END, "]")
    }

    #[test]
    fn matches_are_marked_where_they_stand() {
        assert_eq!(shown("我们用人工智能模型", "人工智能"), "我们用[人工智能]模型");
        assert_eq!(shown("call getUserName now", "username"), "call [getUserName] now");
        assert_eq!(shown("a short text", "missing"), "a short text");
    }

    #[test]
    fn the_window_lies_where_most_matches_are() {
        let text = format!("kestrel {} kestrel and kestrel {}", "x ".repeat(300), "y ".repeat(300));
        let shown = shown(&text, "kestrel");
        assert!(shown.contains("[kestrel] and [kestrel]") && shown.starts_with('…') && shown.ends_with('…'));
        assert!(shown.chars().count() <= LENGTH + 2 + 4);
    }

    #[test]
    fn marks_in_the_text_itself_are_no_marks() {
        assert_eq!(shown("a\u{e000}b kestrel", "kestrel"), "ab [kestrel]");
    }

    proptest! {
        #[test]
        fn any_text_has_a_snippet(text in "\\PC{0,400}", word in "[a-z人工0-9]{1,3}") {
            if let Some(query) = Query::parse(&word) {
                let out = snippet(&text, &query);
                prop_assert_eq!(out.matches(MATCH_START).count(), out.matches(MATCH_END).count());
                prop_assert!(out.chars().filter(|&sign| sign != MATCH_START && sign != MATCH_END).count() <= LENGTH + 2);
            }
        }
    }
}
