//! Words of scripts that put blanks between them: folding, camelCase parts, names like `C++`.

use std::iter::Peekable;
use std::ops::ControlFlow;
use std::str::CharIndices;

use unicode_normalization::UnicodeNormalization;
use unicode_normalization::char::{decompose_canonical, is_combining_mark};

use super::scripts::{Class, class_of, drops_marks, is_filler, is_letter_mark};
use super::stem::stem;
use super::{MAX_TOKEN, Purpose, STEM_MARK, Scratch, Token};

/// More parts than this are not a name that a person would search by its parts.
const MAX_PARTS: usize = 8;

/// Emits the word that starts here: the whole, and in documents the runs of its camelCase parts beside it.
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
    let end = read_word(text, rest, &mut scratch.word, &mut scratch.cuts);
    if scratch.word.is_empty() {
        return ControlFlow::Continue(());
    }
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
            colocated: purpose != Purpose::Query,
        };
        if purpose != Purpose::Query {
            sink(Token {
                text: &scratch.word,
                colocated: false,
                ..named
            })?;
        }
        sink(named)?;
    }
    if purpose == Purpose::Index
        && scratch.cuts.is_empty()
        && let Some(mut stem) = stem(&scratch.word)
    {
        stem.push(STEM_MARK);
        sink(Token {
            text: &stem,
            start,
            end,
            colocated: true,
        })?;
    }
    if purpose == Purpose::Query || scratch.cuts.is_empty() || scratch.cuts.len() >= MAX_PARTS {
        return ControlFlow::Continue(());
    }
    camel_parts(&scratch.word, &scratch.cuts, start, end, sink)
}

/// Every run of parts: `get`, `getuser`, `user`, `username` and `name` in `getUserName`.
fn camel_parts<F>(word: &str, cuts: &[usize], start: usize, end: usize, sink: &mut F) -> ControlFlow<()>
where
    F: FnMut(Token<'_>) -> ControlFlow<()>,
{
    let inner = cuts.iter().copied().filter(|&cut| cut < word.len());
    let starts = std::iter::once(0).chain(inner.clone());
    for (skipped, from) in starts.enumerate() {
        for to in inner.clone().skip(skipped).chain([word.len()]) {
            let is_whole = from == 0 && to == word.len();
            if to - from > 1 && !is_whole {
                sink(Token {
                    text: &word[from..to],
                    start,
                    end,
                    colocated: true,
                })?;
            }
        }
    }
    ControlFlow::Continue(())
}

/// Reads a word into `folded` and its camelCase boundaries into `cuts`; returns the end of the word in the text.
fn read_word(text: &str, rest: &mut Peekable<CharIndices<'_>>, folded: &mut String, cuts: &mut Vec<usize>) -> usize {
    let start = rest.peek().map_or(0, |&(at, _)| at);
    let mut end = start;
    let mut is_ascii = true;
    while let Some((at, character)) = rest.next_if(|&(_, next)| belongs(next)) {
        if class_of(character) != Class::Invisible {
            end = at + character.len_utf8();
        }
        is_ascii &= character.is_ascii();
    }
    folded.clear();
    cuts.clear();
    let word = &text[start..end];
    if is_ascii {
        fold(word.chars(), folded, cuts);
    } else {
        // The same word must be the same token however it is composed, and whatever invisible signs it came with.
        let visible = word.chars().filter(|&sign| class_of(sign) != Class::Invisible);
        fold(visible.nfkc(), folded, cuts);
    }
    end
}

/// Whether a character that follows a letter goes on with its word.
fn belongs(character: char) -> bool {
    matches!(class_of(character), Class::Word | Class::Invisible)
        || (!character.is_ascii() && is_combining_mark(character))
}

/// Lower case, marks dropped where they are not part of the letter.
fn fold(characters: impl Iterator<Item = char>, folded: &mut String, cuts: &mut Vec<usize>) {
    let mut characters = characters.peekable();
    let mut previous: Option<char> = None;
    while let Some(character) = characters.next() {
        if character.is_ascii_lowercase() {
            folded.push(character);
            previous = Some(character);
            continue;
        }
        if is_filler(character) {
            continue;
        }
        if !character.is_ascii() && is_combining_mark(character) {
            if is_letter_mark(character) || !previous.is_some_and(drops_marks) {
                folded.push(character);
            }
            continue;
        }
        let next_is_lower = characters.peek().is_some_and(|next| next.is_lowercase());
        if previous.is_some_and(|before| starts_part(before, character, next_is_lower)) {
            cuts.push(folded.len());
        }
        push_lower(folded, character);
        previous = Some(character);
    }
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

fn push_lower(out: &mut String, character: char) {
    if character.is_ascii() {
        out.push(character.to_ascii_lowercase());
        return;
    }
    let drops_marks = drops_marks(character);
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
            // Written without its dots as often as with them.
            'ё' => out.push('е'),
            _ if drops_marks && is_combining_mark(lower) => {}
            _ if drops_marks => out.push(base_letter(lower)),
            _ => out.push(lower),
        }
    }
}

/// The letter under the diacritics of a Latin or Greek letter; any other character itself.
fn base_letter(character: char) -> char {
    let mut base = None;
    decompose_canonical(character, |part| {
        base.get_or_insert(part);
    });
    // Where a hamza sits makes another letter of Arabic.
    let is_arabic = matches!(character as u32, 0x0600..=0x08FF);
    base.filter(|_| !is_arabic).unwrap_or(character)
}
