//! Cuts a query into words, quoted phrases and signs. Nothing fails here: what is not a sign is a word.

use std::ops::Range;

use crate::tokenizer::{self, Purpose};

const OPEN_CURLY: char = '\u{201c}';
const CLOSE_CURLY: char = '\u{201d}';

/// One piece of a query.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Item<'a> {
    Word {
        text: &'a str,
        prefix: bool,
    },
    Quoted {
        text: String,
        prefix: bool,
    },
    /// A quote that is never closed.
    OpenQuote,
    And,
    Or,
    Not,
    OpenGroup,
    CloseGroup,
}

impl Item<'_> {
    /// Whether it says how to search rather than what for. Parentheses alone say nothing: people put them into sentences.
    pub(super) fn is_operator(&self) -> bool {
        matches!(
            self,
            Self::Word { prefix: true, .. } | Self::Quoted { prefix: true, .. } | Self::And | Self::Or | Self::Not
        )
    }
}

/// What stands in the quotes, where the whole is one question in quotes: that is a sentence which somebody copied, and no
/// phrase that was said word for word.
pub(super) fn quoted_question(text: &str) -> Option<&str> {
    let text = text.trim();
    let inner = text
        .strip_prefix(['"', OPEN_CURLY])
        .and_then(|text| text.strip_suffix(['"', CLOSE_CURLY]))?;
    let is_question = inner.trim_end().ends_with(['?', '？']);
    (is_question && !inner.contains(['"', OPEN_CURLY, CLOSE_CURLY])).then_some(inner)
}

/// The pieces of `text`, reading operators, quotes, parentheses and stars.
pub(super) fn items(text: &str) -> Vec<Item<'_>> {
    let mut items = Vec::new();
    let mut rest = text;
    loop {
        rest = rest.trim_start_matches(|sign| is_blank(sign) && sign != OPEN_CURLY);
        let Some(first) = rest.chars().next() else { return items };
        let after = &rest[first.len_utf8()..];
        match first {
            '"' | OPEN_CURLY => {
                let quoted = if first == '"' { quoted(after) } else { curly(after) };
                // A curly quote that nobody closes parts words and nothing else.
                items.extend((first == '"' && quoted.is_none()).then_some(Item::OpenQuote));
                rest = quoted.as_ref().map_or(after, |(_, after)| after);
                items.extend(quoted.map(|(item, _)| item));
            }
            '(' => {
                items.push(Item::OpenGroup);
                rest = after;
            }
            ')' => {
                items.push(Item::CloseGroup);
                rest = after;
            }
            _ => {
                let end = rest.find(ends_word).unwrap_or(rest.len());
                items.push(word(&rest[..end]));
                rest = &rest[end..];
            }
        }
    }
}

/// The words of `text` when no sign in it means anything.
pub(super) fn literal_words(text: &str) -> Vec<&str> {
    text.split(|sign| ends_word(sign) || sign == '*')
        .filter(|word| !word.is_empty())
        .collect()
}

/// The pieces that a term is cut into when it is looked for less strictly: each run of a dense script, and what stands
/// between two of them.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Segment<'a> {
    /// A run of dense script.
    Dense(&'a str),
    /// Words and identifiers.
    Words(&'a str),
}

/// Whether this is a character of Chinese, each of which says something.
pub(super) const fn is_han(sign: char) -> bool {
    matches!(sign as u32, 0x3400..=0x4dbf | 0x4e00..=0x9fff | 0xf900..=0xfaff | 0x2_0000..=0x3_ffff)
}

/// The segments of `text`.
pub(super) fn segments(text: &str) -> Vec<Segment<'_>> {
    let mut segments: Vec<(bool, Range<usize>)> = Vec::new();
    for token in tokenizer::positions(text, Purpose::Query) {
        let dense = text[token.start..].starts_with(tokenizer::is_dense);
        match segments.last_mut() {
            Some((was_dense, range)) if *was_dense == dense && (!dense || token.start <= range.end) => {
                range.end = token.end;
            }
            _ => segments.push((dense, token.start..token.end)),
        }
    }
    let of = |(dense, range): (bool, Range<usize>)| {
        let text = &text[range];
        if dense {
            Segment::Dense(text)
        } else {
            Segment::Words(text)
        }
    };
    segments.into_iter().map(of).collect()
}

fn word(text: &str) -> Item<'_> {
    match text {
        "AND" => Item::And,
        "OR" => Item::Or,
        "NOT" => Item::Not,
        _ => match text.strip_suffix('*') {
            Some(stem) if !stem.is_empty() && !stem.contains('*') => Item::Word {
                text: stem,
                prefix: true,
            },
            _ => Item::Word { text, prefix: false },
        },
    }
}

/// A quoted phrase and what comes after it; a doubled quote inside stands for one. `None` without a closing quote.
fn quoted(after_quote: &str) -> Option<(Item<'_>, &str)> {
    let mut text = String::new();
    let mut rest = after_quote;
    loop {
        let at = rest.find('"')?;
        text.push_str(&rest[..at]);
        rest = &rest[at + 1..];
        if !rest.starts_with('"') {
            break;
        }
        text.push('"');
        rest = &rest[1..];
    }
    let (prefix, rest) = rest.strip_prefix('*').map_or((false, rest), |after| (true, after));
    Some((Item::Quoted { text, prefix }, rest))
}

/// A phrase in curly quotes, as word processors and phones write them, and what comes after it.
fn curly(after_quote: &str) -> Option<(Item<'_>, &str)> {
    let (text, rest) = after_quote.split_once(CLOSE_CURLY)?;
    let text = text.to_owned();
    Some((Item::Quoted { text, prefix: false }, rest))
}

fn ends_word(sign: char) -> bool {
    is_blank(sign) || matches!(sign, '"' | '(' | ')')
}

/// What stands between words: blanks, and punctuation that never holds an identifier together. Dots, slashes, hyphens and
/// the like do, so that `src/main.rs` stays one phrase.
fn is_blank(sign: char) -> bool {
    sign.is_whitespace()
        || sign.is_control()
        || matches!(sign, ';' | '|'
            | '¡' | '«' | '»' | '¿' | '\u{2013}'..='\u{2015}' | '\u{201c}'..='\u{201f}' | '…' | '‹' | '›'
            | '\u{3001}'..='\u{3002}' | '\u{3008}'..='\u{3011}' | '\u{3014}'..='\u{301f}'
            | '！' | '＂' | '（' | '）' | '，' | '；' | '？' | '［' | '］' | '｛' | '｜' | '｝' | '｟'..='､')
}
