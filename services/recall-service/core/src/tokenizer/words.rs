//! Words of scripts that put blanks between them: folding, camelCase parts, names like `C++`.

use std::iter::Peekable;
use std::ops::ControlFlow;
use std::str::CharIndices;

use unicode_normalization::UnicodeNormalization;
use unicode_normalization::char::{decompose_canonical, is_combining_mark};

use super::scripts::{Class, class_of, is_latin};
use super::{MAX_TOKEN, Purpose, Scratch, Token};

/// More parts than this are not a name that a person would search by its parts.
const MAX_PARTS: usize = 8;

/// Emits the word that starts here: the whole, and in documents its camelCase parts and tails beside it.
pub(super) fn word<F>(
    text: &str,
    rest: &mut Peekable<CharIndices<'_>>,
    purpose: Purpose,
    scratch: &mut Scratch,
    sink: &mut F,
) -> ControlFlow<()>
where
    F: FnMut(Token<'_>) -> ControlFlow<()>,
{
    let start = rest.peek().map_or(0, |&(at, _)| at);
    let end = read_word(rest, &mut scratch.word, &mut scratch.cuts).unwrap_or(start);
    let suffix = language_suffix(&text[end..]);
    cut_at_limit(&mut scratch.word);
    if suffix.is_empty() {
        sink(Token {
            text: &scratch.word,
            start,
            end,
            colocated: false,
        })?;
    } else {
        for _ in suffix.chars() {
            rest.next();
        }
        scratch.part.clear();
        scratch.part.push_str(&scratch.word);
        scratch.part.push_str(suffix);
        let named = Token {
            text: &scratch.part,
            start,
            end: end + suffix.len(),
            colocated: purpose == Purpose::Document,
        };
        if purpose == Purpose::Document {
            sink(Token {
                text: &scratch.word,
                colocated: false,
                ..named
            })?;
        }
        sink(named)?;
    }
    if purpose == Purpose::Query || scratch.cuts.is_empty() || scratch.cuts.len() >= MAX_PARTS {
        return ControlFlow::Continue(());
    }
    camel_parts(&scratch.word, &scratch.cuts, start, end, sink)
}

/// Every part, and every tail from a part on: `get`, `user`, `name` and `username` in `getUserName`.
fn camel_parts<F>(word: &str, cuts: &[usize], start: usize, end: usize, sink: &mut F) -> ControlFlow<()>
where
    F: FnMut(Token<'_>) -> ControlFlow<()>,
{
    let mut from = 0;
    for &to in cuts.iter().filter(|&&cut| cut < word.len()).chain([&word.len()]) {
        if to - from > 1 {
            sink(Token {
                text: &word[from..to],
                start,
                end,
                colocated: true,
            })?;
        }
        if from > 0 && to < word.len() {
            sink(Token {
                text: &word[from..],
                start,
                end,
                colocated: true,
            })?;
        }
        from = to;
    }
    ControlFlow::Continue(())
}

/// Reads a word into `folded` and its camelCase boundaries into `cuts`; returns the end of the word in the text.
fn read_word(rest: &mut Peekable<CharIndices<'_>>, folded: &mut String, cuts: &mut Vec<usize>) -> Option<usize> {
    folded.clear();
    cuts.clear();
    let mut end = None;
    let mut previous: Option<char> = None;
    let mut has_marks = false;
    while let Some((at, character)) =
        rest.next_if(|&(_, next)| class_of(next) == Class::Word || (previous.is_some() && is_combining_mark(next)))
    {
        end = Some(at + character.len_utf8());
        if is_combining_mark(character) {
            if !previous.is_some_and(is_latin) {
                folded.push(character);
                has_marks = true;
            }
            continue;
        }
        let next_is_lower = rest.peek().is_some_and(|&(_, next)| next.is_lowercase());
        if previous.is_some_and(|before| starts_part(before, character, next_is_lower)) {
            cuts.push(folded.len());
        }
        fold_into(folded, character);
        previous = Some(character);
    }
    if has_marks {
        // The same word typed with precomposed letters must be the same token.
        *folded = folded.nfc().collect();
        cuts.clear();
    }
    end
}

/// A boundary inside camelCase: `aB`, `1B`, and the last capital of a run before a lower-case letter (`HTTPServer`).
fn starts_part(before: char, character: char, next_is_lower: bool) -> bool {
    character.is_uppercase()
        && (before.is_lowercase() || before.is_numeric() || (before.is_uppercase() && next_is_lower))
}

/// The end of names like `C++` and `C#`, where punctuation makes the name.
fn language_suffix(after: &str) -> &str {
    let suffix = if after.starts_with("++") {
        "++"
    } else if after.starts_with('#') {
        "#"
    } else {
        return "";
    };
    let next = after[suffix.len()..].chars().next();
    if next.is_some_and(|character| class_of(character) == Class::Word || matches!(character, '+' | '#')) {
        ""
    } else {
        suffix
    }
}

/// Cuts a token at the length limit, on a character boundary.
pub(super) fn cut_at_limit(token: &mut String) {
    if token.len() > MAX_TOKEN {
        let at = token.floor_char_boundary(MAX_TOKEN);
        token.truncate(at);
    }
}

/// Lower case, full-width to ASCII, Latin without diacritics; other scripts keep their marks.
fn fold_into(out: &mut String, character: char) {
    if character.is_ascii() {
        out.push(character.to_ascii_lowercase());
    } else if has_compatibility_form(character) {
        for plain in std::iter::once(character).nfkc() {
            push_lower(out, plain);
        }
    } else {
        push_lower(out, character);
    }
}

fn push_lower(out: &mut String, character: char) {
    let latin = is_latin(character);
    for lower in character.to_lowercase() {
        match lower {
            'ß' => out.push_str("ss"),
            'æ' => out.push_str("ae"),
            'œ' => out.push_str("oe"),
            'ø' => out.push('o'),
            'ł' => out.push('l'),
            'đ' | 'ð' => out.push('d'),
            'ı' => out.push('i'),
            'ς' => out.push('σ'),
            _ if latin && is_combining_mark(lower) => {}
            _ => out.push(base_letter(lower)),
        }
    }
}

/// The ASCII letter under the diacritics of a Latin letter; any other character itself.
fn base_letter(character: char) -> char {
    let mut base = None;
    decompose_canonical(character, |part| {
        base.get_or_insert(part);
    });
    base.filter(char::is_ascii).unwrap_or(character)
}

fn has_compatibility_form(character: char) -> bool {
    matches!(character as u32, 0xFF01..=0xFF5E | 0x2100..=0x214F | 0x2460..=0x24FF | 0xFB00..=0xFB06
        | 0x00AA | 0x00B2..=0x00B3 | 0x00B5 | 0x00B9..=0x00BA | 0x2070..=0x209C | 0x1D400..=0x1D7FF)
}
