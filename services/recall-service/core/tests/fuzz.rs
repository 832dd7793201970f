//! Long runs with broken input: what is typed as a query, and what is cut into words. `cargo test -p steward-recall-core --test
//! fuzz -- --ignored` runs ten minutes each; `steward_testkit::fuzz` says how long a run lasts and how one is repeated. A short
//! run of the same is part of every test run.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]

use std::ops::ControlFlow;

use steward_recall_core::query::matching::Searchable;
use steward_recall_core::query::{MAX_QUERY, Query};
use steward_recall_core::search::{MATCH_END, MATCH_START, snippet};
use steward_recall_core::tokenizer::{self, MAX_TOKEN, Purpose, Scratch, Token, tokenize};
use steward_testkit::fuzz::{Source, long_run, short_run};

/// Pieces that readers of queries and of words stumble over.
const PIECES: [&str; 48] = [
    "\"",
    "\"\"",
    "“",
    "”",
    "(",
    ")",
    "((((((((((((((",
    " AND ",
    " OR ",
    " NOT ",
    "NEAR(",
    "*",
    "^",
    "-",
    "+",
    ":",
    "{",
    "}",
    "\0",
    "\u{1}",
    "\u{2}",
    "\u{e000}",
    "\u{200d}",
    "\u{fe0f}",
    "\u{ad}",
    "\u{301}",
    "\u{ff9e}",
    "\u{3099}",
    "e\u{301}\u{323}",
    "ﬁ",
    "Ａ１",
    "部署",
    "方案？",
    "《",
    "》",
    "가",
    "\u{1100}\u{1161}\u{11a8}",
    "ｶﾞ",
    "ก็",
    "👩\u{200d}💻",
    "🏽",
    "getUserName",
    "src/main.rs",
    "C++",
    "it's",
    "user@example.com",
    "5月4日",
    "on May 4th, 2023",
];

/// Any character, the odd planes included, but mostly one of those that are typed.
fn character(source: &mut Source) -> char {
    let code = match source.below(6) {
        0 => usize::from(b'a') + source.below(26),
        1 => source.below(0x80),
        2 => source.below(0x800),
        3 => 0x4e00 + source.below(0x5200),
        4 => source.below(0x1_0000),
        _ => source.below(0x11_0000),
    };
    u32::try_from(code).ok().and_then(char::from_u32).unwrap_or(' ')
}

fn text(source: &mut Source, pieces: usize) -> String {
    let mut text = String::new();
    for _ in 0..source.below(pieces) {
        match source.below(5) {
            0 | 1 => text.push_str(PIECES[source.below(PIECES.len())]),
            2 => text.push(' '),
            3 => {
                for _ in 0..source.below(12) {
                    text.push(character(source));
                }
            }
            _ => {
                let again = source.one_of(&PIECES).repeat(source.below(20));
                text.push_str(&again);
            }
        }
    }
    text
}

/// What is typed, a text to look at with it, and what an index could say of how often words occur.
#[derive(Debug)]
struct Typed {
    query: String,
    text: String,
    counts: Vec<u64>,
}

fn typed(source: &mut Source) -> Typed {
    Typed {
        query: text(source, 24).chars().take(MAX_QUERY).collect(),
        text: text(source, 24),
        counts: (0..=source.below(8)).map(|_| source.number() % 20_000).collect(),
    }
}

fn written(source: &mut Source) -> String {
    text(source, 40)
}

/// Whether `text` is made of quoted strings, operators and parentheses, as FTS5 reads them.
fn is_well_formed(text: &str) -> bool {
    let (mut depth, mut rest, mut wants_term) = (0_usize, text, true);
    loop {
        rest = rest.trim_start_matches(' ');
        let operator = ["AND ", "OR ", "NOT "]
            .iter()
            .find_map(|operator| rest.strip_prefix(operator));
        if rest.is_empty() {
            return depth == 0 && !wants_term;
        } else if let Some(after) = operator.filter(|_| !wants_term) {
            (rest, wants_term) = (after, true);
        } else if let Some(after) = rest.strip_prefix('(').filter(|_| wants_term) {
            (rest, depth) = (after, depth + 1);
        } else if let Some(after) = rest.strip_prefix(')').filter(|_| !wants_term && depth > 0) {
            (rest, depth) = (after, depth - 1);
        } else if let Some(after) = rest.strip_prefix('"').filter(|_| wants_term) {
            let Some(after) = after_quote(after) else { return false };
            (rest, wants_term) = (after.strip_prefix(" *").unwrap_or(after), false);
        } else {
            return false;
        }
    }
}

/// What comes behind the end of a quoted string, in which a doubled quote stands for one.
fn after_quote(mut rest: &str) -> Option<&str> {
    loop {
        let at = rest.find('"')?;
        rest = &rest[at + 1..];
        match rest.strip_prefix('"') {
            Some(after) => rest = after,
            None => return Some(rest),
        }
    }
}

fn query(
    Typed {
        query: typed,
        text,
        counts,
    }: &Typed,
) {
    let Some(query) = Query::parse(typed) else { return };
    for query in [vec![query.clone()], query.widened()].concat() {
        let matching = query.to_match();
        assert!(is_well_formed(&matching), "{typed:?} became {matching}");
        assert!(!matching.contains('\0'), "{typed:?}");
        assert_eq!(query.weights().len(), query.terms().len());
        let counts: Vec<u64> = counts
            .iter()
            .copied()
            .cycle()
            .take(query.alternatives().len())
            .collect();
        let rarest = query.rarest(&counts);
        assert!(is_well_formed(&rarest.query.to_match()), "{typed:?}");
        assert!((1..=rarest.query.terms().len()).contains(&rarest.scored), "{typed:?}");
        let ranges = Searchable::new(text, &query).ranges();
        assert!(
            ranges.windows(2).all(|two| two[0].end < two[1].start),
            "{typed:?} in {text:?}"
        );
        for range in ranges {
            assert!(text.is_char_boundary(range.start) && text.is_char_boundary(range.end));
        }
        let shown = snippet(text, &query);
        assert_eq!(shown.matches(MATCH_START).count(), shown.matches(MATCH_END).count());
    }
    // What is typed is found where it stands, unless signs in it meant something.
    let words: Vec<&str> = typed.split_whitespace().collect();
    if let [word] = words[..]
        && word.chars().all(char::is_alphanumeric)
        && let Some(query) = Query::parse(word)
    {
        assert!(
            Searchable::new(&format!("before {word} after"), &query).matches(),
            "{word:?}"
        );
    }
}

fn cut(text: &String) {
    let mut scratch = Scratch::default();
    for purpose in [Purpose::Document, Purpose::Index, Purpose::Query] {
        let (mut start, mut end, mut seen) = (0, 0, 0_usize);
        let flow = tokenize(text, purpose, &mut scratch, &mut |token: Token<'_>| {
            assert!(!token.text.is_empty() && token.text.len() <= 2 * MAX_TOKEN, "{text:?}");
            assert!(token.start < token.end && token.end <= text.len(), "{text:?}");
            assert!(
                text.is_char_boundary(token.start) && text.is_char_boundary(token.end),
                "{text:?}"
            );
            assert!(seen > 0 || !token.colocated, "{text:?}");
            if !token.colocated {
                assert!(token.start >= start && token.end >= end, "{text:?}");
                (start, end) = (token.start, token.end);
            }
            seen += 1;
            ControlFlow::Continue(())
        });
        assert!(flow.is_continue());
        // Buffers that were used before change nothing.
        let again = tokenizer::positions(text, purpose);
        assert_eq!(again.len(), seen, "{text:?}");
    }
    // Whoever stops is not asked again.
    let mut asked = 0;
    let stopped = tokenize(text, Purpose::Index, &mut scratch, &mut |_| {
        asked += 1;
        ControlFlow::Break(())
    });
    assert!(asked <= 1 && stopped.is_break() == (asked == 1));
}

/// `Q-8`
#[test]
fn a_short_run_of_typed_text_makes_no_syntax_error() {
    short_run(3_000, typed, query);
}

/// `Q-7`
#[test]
fn a_short_run_of_text_is_cut_on_character_boundaries() {
    short_run(3_000, written, cut);
}

#[test]
#[ignore = "runs for ten minutes"]
fn whatever_is_typed_is_a_query_without_a_syntax_error() {
    long_run(typed, query);
}

#[test]
#[ignore = "runs for ten minutes"]
fn whatever_is_written_is_cut_on_character_boundaries() {
    long_run(written, cut);
}
