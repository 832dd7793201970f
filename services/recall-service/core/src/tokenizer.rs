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
//!   neighbours is a second token at the same position. A query of two or more characters is cut into pairs and closed
//!   by its last character, which makes it a phrase over exactly the characters typed: one character is findable, and
//!   a highlight covers what was asked for and nothing else.
//! - **pictographs**: one token each, symbols of icon fonts too; skin tones are dropped.
//!
//! Canonically equal texts have the same tokens, and signs that show nothing (joiners, break hints, variation selectors,
//! direction marks) change no token.
//!
//! What is not here: stemming, stop words, dictionaries. They would make some texts unfindable.

mod scripts;
#[cfg(test)]
mod tests;
mod words;

use std::iter::Peekable;
use std::ops::ControlFlow;
use std::str::CharIndices;

use scripts::{Class, class_of, continues_unit, is_invisible};
use unicode_normalization::UnicodeNormalization;

/// Version of the rules in this module. An index that was built by another one has to be rebuilt.
pub const VERSION: u32 = 2;

/// The name under which the index tables ask for this tokenizer.
pub const NAME: &str = "steward";

/// Longest token in bytes; what is longer (a key, a base64 line) is cut here on both sides alike.
pub const MAX_TOKEN: usize = 128;

/// What the tokens are for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Purpose {
    /// Text that is stored and searched in.
    Document,
    /// Text that is searched for. Never emits colocated tokens: FTS5 would read them as alternatives.
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
            Class::Invisible | Class::Other => {
                rest.next();
            }
        }
    }
    ControlFlow::Continue(())
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
                colocated: purpose == Purpose::Document,
            };
            if purpose == Purpose::Document {
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
        let visible = text[start..end].chars().filter(|&sign| !is_invisible(sign));
        folded.extend(visible.nfkc());
    } else {
        folded.push(first);
    }
    words::cut_at_limit(folded);
    Some(Unit { start, end, buffer })
}
