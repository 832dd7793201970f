//! Cuts text into the tokens of the recall index, for documents and for queries alike (`Q-7`).
//!
//! Pure and safe: SQLite is not in here. The server hands this function to FTS5 through a small C shim, the in-memory
//! store and the highlighter call it directly, so that all of them agree on what a word is.
//!
//! Three kinds of text are told apart:
//! - **words**: runs of letters and digits of scripts that put blanks between words. Lower-cased, full-width folded,
//!   diacritics dropped where they do not make another letter. `foo_bar`, `a-b`, `x.y::z` and paths come out as their
//!   parts at successive positions, so that the whole is a phrase; every run of the parts of a camelCase word stands
//!   beside the whole at the same position.
//! - **dense scripts** (Han, kana, Hangul, Thai, Lao, Khmer, Myanmar, …): every character is a token, and each pair of
//!   neighbours is a second token at the same position. A query of two or more characters is cut into its pairs, closed by
//!   the last character where something follows it, which makes it a phrase over exactly the characters typed: one character
//!   is findable, and a highlight covers what was asked for and nothing else. At its end the last pair says it all, and to
//!   ask for a frequent character besides would cost more than all the pairs.
//! - **pictographs**: one token each, symbols of icon fonts too; skin tones are dropped.
//!
//! Canonically equal texts have the same tokens, and signs that show nothing (joiners, break hints, variation selectors,
//! direction marks) change no token.
//!
//! In the index, a plain word whose ending can go has its stem beside it, marked so that it is no word: a question in plain
//! words finds `deployed` with `deploying`, while whoever asks for one form gets that form. The day of a message comes as
//! text in which each part is marked, and no word of a text is taken for one.
//!
//! What is not here: stop words, dictionaries. They would make some texts unfindable.

mod alike;
mod scripts;
mod stem;
#[cfg(test)]
mod tests;
mod words;

use std::iter::Peekable;
use std::ops::{ControlFlow, Range};
use std::str::CharIndices;

use steward_base::Timestamp;

use scripts::{Class, class_of, continues_unit, is_invisible};
use unicode_normalization::UnicodeNormalization;
use unicode_normalization::char::is_combining_mark;

/// Version of the rules in this module. An index that was built by another one has to be rebuilt.
pub const VERSION: u32 = 4;

/// The name under which the index tables ask for this tokenizer.
pub const NAME: &str = "steward";

/// Longest token in bytes; what is longer (a key, a base64 line) is cut here on both sides alike.
pub const MAX_TOKEN: usize = 128;

/// Before a word of a query: other forms of it will do.
pub const LOOSE: char = '\u{1}';
/// The same, and other words for the same thing will do, too.
pub const ALIKE: char = '\u{3}';
/// Before a part of a day; see [`day_text`].
pub const DAY_MARK: char = '\u{2}';
/// After a stem, which no word has.
const STEM_MARK: char = '\u{1}';

/// What the tokens are for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Purpose {
    /// Text that is stored and searched in.
    Document,
    /// The same with stems beside words.
    Index,
    /// Text that is searched for. Emits colocated tokens only for a word behind
    /// [`LOOSE`] or [`ALIKE`]: FTS5 reads them as alternatives.
    Query,
}

/// One token.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Token<'a> {
    /// Folded text, never empty.
    pub text: &'a str,
    /// First byte in the input, on a character boundary.
    pub start: usize,
    /// One past the last byte in the input, on a character boundary. Both bounds never decrease from one token that is
    /// not colocated to the next.
    pub end: usize,
    /// Whether it stands at the position of the token before it rather than at the next one.
    pub colocated: bool,
}

/// Buffers to be reused from call to call.
#[derive(Debug, Default)]
pub struct Scratch {
    pub(self) word: String,
    pub(self) part: String,
    pub(self) cuts: Vec<usize>,
    units: [String; 2],
    pair: String,
}

/// Emits the tokens of `text` to `sink`, in order, until the text ends or `sink` breaks.
pub fn tokenize<F>(text: &str, purpose: Purpose, scratch: &mut Scratch, sink: &mut F) -> ControlFlow<()>
where
    F: FnMut(Token<'_>) -> ControlFlow<()>,
{
    if purpose != Purpose::Query {
        return walk(text, purpose, scratch, sink);
    }
    for (mark, instead) in [(LOOSE, forms as fn(&str) -> Vec<String>), (ALIKE, alike)] {
        if let Some(word) = text.strip_prefix(mark) {
            return loose(word, instead, sink);
        }
    }
    without_last_closing(text, scratch, sink)
}

/// The tokens of a query, but the character that closes a pair only where another token follows.
fn without_last_closing<F>(text: &str, scratch: &mut Scratch, sink: &mut F) -> ControlFlow<()>
where
    F: FnMut(Token<'_>) -> ControlFlow<()>,
{
    let mut before = 0..0;
    let mut held: Option<(String, Range<usize>)> = None;
    walk(text, Purpose::Query, scratch, &mut |token: Token<'_>| {
        if let Some((text, Range { start, end })) = held.take() {
            sink(Token {
                text: &text,
                start,
                end,
                colocated: false,
            })?;
        }
        let closes = token.start > before.start && token.end == before.end;
        before = token.start..token.end;
        if closes {
            held = Some((token.text.to_owned(), before.clone()));
            return ControlFlow::Continue(());
        }
        sink(token)
    })
}

fn walk<F>(text: &str, purpose: Purpose, scratch: &mut Scratch, sink: &mut F) -> ControlFlow<()>
where
    F: FnMut(Token<'_>) -> ControlFlow<()>,
{
    let mut rest = text.char_indices().peekable();
    while let Some(&(start, character)) = rest.peek() {
        match class_of(character) {
            Class::Dense => dense_run(text, &mut rest, purpose, scratch, sink)?,
            Class::Word => words::word(text, &mut rest, purpose, scratch, sink)?,
            Class::Pictograph => {
                rest.next();
                let end = start + character.len_utf8();
                sink(Token {
                    text: &text[start..end],
                    start,
                    end,
                    colocated: false,
                })?;
            }
            Class::Other if character == DAY_MARK => {
                rest.next();
                let mut end = start + 1;
                while let Some((at, _)) = rest.next_if(|(_, next)| next.is_ascii_alphanumeric()) {
                    end = at + 1;
                }
                sink(Token {
                    text: &text[start..end.min(start + MAX_TOKEN)],
                    start,
                    end,
                    colocated: false,
                })?;
            }
            Class::Invisible | Class::Other => {
                rest.next();
            }
        }
    }
    ControlFlow::Continue(())
}

/// A word of a query, and beside it what else it may be in the index.
fn loose<F>(word: &str, instead: fn(&str) -> Vec<String>, sink: &mut F) -> ControlFlow<()>
where
    F: FnMut(Token<'_>) -> ControlFlow<()>,
{
    for token in positions(word, Purpose::Query) {
        let at = Token {
            text: &token.text,
            start: token.start + LOOSE.len_utf8(),
            end: token.end + LOOSE.len_utf8(),
            colocated: false,
        };
        sink(at)?;
        for form in instead(&token.text) {
            sink(Token {
                text: &form,
                colocated: true,
                ..at
            })?;
        }
    }
    ControlFlow::Continue(())
}

/// What stands in the index for other forms of a folded word.
pub fn forms(word: &str) -> Vec<String> {
    let mut found = regular_forms(word);
    let stem = stem::stem(word);
    for form in alike::irregular(word, stem.as_deref().unwrap_or(word)) {
        add(&mut found, word, form);
    }
    found
}

/// The same, and what stands there for other words that say the same.
pub fn alike(word: &str) -> Vec<String> {
    let mut found = forms(word);
    let stem = stem::stem(word);
    for other in alike::alike(word, stem.as_deref().unwrap_or(word)) {
        add(&mut found, word, other);
        for form in forms(other) {
            if form != word && !found.contains(&form) {
                found.push(form);
            }
        }
    }
    found
}

/// Another word in any form that rules lead to.
fn add(found: &mut Vec<String>, word: &str, other: &str) {
    for form in std::iter::once(other.to_owned()).chain(regular_forms(other)) {
        if form != word && !found.contains(&form) {
            found.push(form);
        }
    }
}

fn regular_forms(word: &str) -> Vec<String> {
    match stem::stem(word) {
        Some(stem) => vec![format!("{stem}{STEM_MARK}"), stem],
        None if word.len() > 2 && word.bytes().all(|letter| letter.is_ascii_lowercase()) => {
            vec![format!("{word}{STEM_MARK}")]
        }
        None => Vec::new(),
    }
}

/// The day of a moment in UTC, as the index has it.
pub fn day_text(at: Timestamp) -> String {
    let (year, month, day) = civil(at.as_micros().div_euclid(86_400_000_000));
    format!("{DAY_MARK}y{year:04}{DAY_MARK}m{month:02}{DAY_MARK}d{day:02}")
}

/// The date of a day that is counted from 1970, by way of years that begin in March.
const fn civil(days: i64) -> (i64, i64, i64) {
    let shifted = days + 719_468;
    let era = shifted.div_euclid(146_097);
    let of_era = shifted.rem_euclid(146_097);
    let year_of_era = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted_month = (5 * of_year + 2) / 153;
    let day = of_year - (153 * shifted_month + 2) / 5 + 1;
    let month = if shifted_month < 10 {
        shifted_month + 3
    } else {
        shifted_month - 9
    };
    let year = year_of_era + era * 400 + if month <= 2 { 1 } else { 0 };
    (year, month, day)
}

/// Whether this is a character of a script without blanks, each of which is a token.
pub fn is_dense(character: char) -> bool {
    scripts::is_dense(character)
}

/// The tokens of `text` as owned values: position, folded text and byte range.
pub fn positions(text: &str, purpose: Purpose) -> Vec<PlacedToken> {
    let mut placed: Vec<PlacedToken> = Vec::new();
    let mut next = 0;
    let _ = tokenize(text, purpose, &mut Scratch::default(), &mut |token: Token<'_>| {
        let position = if token.colocated { next - 1 } else { next };
        next = position + 1;
        placed.push(PlacedToken {
            position,
            text: token.text.to_owned(),
            start: token.start,
            end: token.end,
        });
        ControlFlow::Continue(())
    });
    placed
}

/// A token with its position in the text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlacedToken {
    /// Counts from 0; colocated tokens share one.
    pub position: usize,
    /// Folded text.
    pub text: String,
    /// First byte in the input.
    pub start: usize,
    /// One past the last byte in the input.
    pub end: usize,
}

/// One character of a dense script with the marks that belong to it.
#[derive(Debug, Clone, Copy)]
struct Unit {
    start: usize,
    end: usize,
    /// Which of the two buffers holds its folded text.
    buffer: usize,
}

fn dense_run<F>(
    text: &str,
    rest: &mut Peekable<CharIndices<'_>>,
    purpose: Purpose,
    scratch: &mut Scratch,
    sink: &mut F,
) -> ControlFlow<()>
where
    F: FnMut(Token<'_>) -> ControlFlow<()>,
{
    let mut previous: Option<Unit> = None;
    let mut count = 0_usize;
    while let Some(unit) = next_unit(text, rest, count % 2, &mut scratch.units) {
        count += 1;
        if let Some(before) = previous {
            scratch.pair.clear();
            scratch.pair.push_str(&scratch.units[before.buffer]);
            scratch.pair.push_str(&scratch.units[unit.buffer]);
            let pair = Token {
                text: &scratch.pair,
                start: before.start,
                end: unit.end,
                colocated: purpose != Purpose::Query,
            };
            if purpose != Purpose::Query {
                sink(single(&scratch.units, before))?;
            }
            sink(pair)?;
        }
        previous = Some(unit);
    }
    previous.map_or(ControlFlow::Continue(()), |last| sink(single(&scratch.units, last)))
}

fn single(units: &[String; 2], unit: Unit) -> Token<'_> {
    Token {
        text: &units[unit.buffer],
        start: unit.start,
        end: unit.end,
        colocated: false,
    }
}

fn next_unit(text: &str, rest: &mut Peekable<CharIndices<'_>>, buffer: usize, units: &mut [String; 2]) -> Option<Unit> {
    let (start, first) = rest.next_if(|&(_, character)| class_of(character) == Class::Dense)?;
    let mut end = start + first.len_utf8();
    let mut composed = false;
    while let Some((at, next)) = rest.next_if(|&(_, next)| is_invisible(next) || continues_unit(next)) {
        if !is_invisible(next) {
            end = at + next.len_utf8();
            composed = true;
        }
    }
    let folded = &mut units[buffer];
    folded.clear();
    if composed || scripts::has_compatibility_form(first) {
        // Marks of other scripts have nothing to stand on where a run begins with a mark, whichever of them comes first.
        let on_nothing = is_combining_mark(first);
        let is_part = |sign: char| !is_invisible(sign) && (!on_nothing || class_of(sign) == Class::Dense);
        folded.extend(text[start..end].chars().filter(|&sign| is_part(sign)).nfkc());
    } else {
        folded.push(first);
    }
    words::cut_at_limit(folded);
    Some(Unit { start, end, buffer })
}
