//! The text as a model reads it: the view that patterns are matched against, with the way back to the original.
//!
//! Compatibility forms are unfolded, accents and invisible characters dropped, look-alike letters of other scripts
//! replaced, case and runs of white space levelled. Nothing shown to anyone comes from here.

use std::cell::OnceCell;
use std::sync::atomic::{AtomicU32, Ordering};

use unicode_normalization::UnicodeNormalization;
use unicode_normalization::char::is_combining_mark;

use crate::unicode::is_ignorable;

/// Longest unfolding that is followed, in characters. The longest that could spell something for a model has five; the
/// ligatures beyond (one of them eighteen letters) stay as they are, so that no text swells under the scan.
const LONGEST_UNFOLDING: usize = 5;

/// A levelled text, with the way back to the original for those who need it.
pub(crate) struct View<'t> {
    original: &'t str,
    text: String,
    /// For each byte of `text` the character of the original that it came from, by its first byte. Made when a match has
    /// to be shown, which is hardly ever.
    origins: OnceCell<Vec<usize>>,
}

impl<'t> View<'t> {
    pub(crate) fn of(original: &'t str) -> Self {
        let mut text = Vec::with_capacity(original.len());
        level(original, &mut text);
        Self {
            original,
            text: into_string(text),
            origins: OnceCell::new(),
        }
    }

    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    /// The bytes of the original from which the bytes `start..end` of the view came.
    pub(crate) fn original_range(&self, start: usize, end: usize) -> (usize, usize) {
        let origins = self.origins.get_or_init(|| {
            let mut traced = Traced::default();
            level(self.original, &mut traced);
            traced.origins
        });
        let first = origins.get(start).copied().unwrap_or(0);
        let last = end
            .checked_sub(1)
            .and_then(|last| origins.get(last))
            .copied()
            .unwrap_or(first);
        let length = self
            .original
            .get(last..)
            .and_then(|rest| rest.chars().next())
            .map_or(0, char::len_utf8);
        (first, last + length)
    }
}

/// Where a levelled text goes, byte by byte.
trait Sink {
    fn last(&self) -> Option<u8>;
    fn push(&mut self, byte: u8, origin: usize);
    fn pop(&mut self);
}

impl Sink for Vec<u8> {
    fn last(&self) -> Option<u8> {
        <[u8]>::last(self).copied()
    }

    fn push(&mut self, byte: u8, _origin: usize) {
        Self::push(self, byte);
    }

    fn pop(&mut self) {
        Self::pop(self);
    }
}

/// The text again, with the origin of each byte.
#[derive(Default)]
struct Traced {
    last: Vec<u8>,
    origins: Vec<usize>,
}

impl Sink for Traced {
    fn last(&self) -> Option<u8> {
        <[u8]>::last(&self.last).copied()
    }

    fn push(&mut self, byte: u8, origin: usize) {
        self.last.push(byte);
        self.origins.push(origin);
    }

    fn pop(&mut self) {
        self.last.pop();
        self.origins.pop();
    }
}

/// What an ASCII byte becomes: itself in lower case, a blank, a line end, or 0 where it is dropped.
const ASCII: [u8; 128] = {
    let mut table = [0; 128];
    let (mut index, mut byte): (usize, u8) = (0, 0);
    while index < table.len() {
        table[index] = match byte {
            b'\n' => b'\n',
            b'\t' | b'\r' => b' ',
            0..=0x1f | 0x7f => 0,
            other => other.to_ascii_lowercase(),
        };
        index += 1;
        byte += 1;
    }
    table
};

fn level<S: Sink>(original: &str, sink: &mut S) {
    let bytes = original.as_bytes();
    let mut at = 0;
    while let Some(&byte) = bytes.get(at) {
        if let Some(&levelled) = ASCII.get(usize::from(byte)) {
            match levelled {
                0 => {}
                b' ' | b'\n' => blank(sink, levelled, at),
                other => sink.push(other, at),
            }
            at += 1;
            continue;
        }
        let Some(character) = original.get(at..).and_then(|rest| rest.chars().next()) else {
            return;
        };
        push_character(sink, character, at);
        at += character.len_utf8();
    }
}

/// A run of blanks is one blank, or one line end if there is one in it.
fn blank<S: Sink>(sink: &mut S, byte: u8, origin: usize) {
    match sink.last() {
        Some(b' ') if byte == b'\n' => sink.pop(),
        Some(b' ' | b'\n') => return,
        _ => {}
    }
    sink.push(byte, origin);
}

fn push_character<S: Sink>(sink: &mut S, character: char, origin: usize) {
    match known(character) {
        DROPPED => {}
        SEVERAL => unfold(character, |part| put(sink, part, origin)),
        one => put(sink, char::from_u32(one).unwrap_or(character), origin),
    }
}

fn put<S: Sink>(sink: &mut S, character: char, origin: usize) {
    if character.is_whitespace() {
        let line_ends = matches!(character, '\n' | '\u{2028}' | '\u{2029}');
        return blank(sink, if line_ends { b'\n' } else { b' ' }, origin);
    }
    let mut buffer = [0; 4];
    for byte in character.encode_utf8(&mut buffer).bytes() {
        sink.push(byte, origin);
    }
}

/// The levelled forms of a character beyond ASCII.
fn unfold(character: char, mut take: impl FnMut(char)) {
    // A syllable of Hangul falls apart into letters that no rule knows.
    let is_syllable = matches!(character, '\u{ac00}'..='\u{d7a3}');
    if is_syllable || std::iter::once(character).nfkd().nth(LONGEST_UNFOLDING).is_some() {
        return take(character);
    }
    let parts = std::iter::once(character).nfkd();
    for part in parts.filter(|part| !is_combining_mark(*part)) {
        for lower in part.to_lowercase() {
            take(look_alike(lower));
        }
    }
}

const UNKNOWN: u32 = 0;
const DROPPED: u32 = 1;
const SEVERAL: u32 = 2;

/// What each character of the basic plane becomes, as far as it was met: unfolding takes a hundred times as long as
/// looking up. Pages of it that are never touched take no memory.
static KNOWN: [AtomicU32; 0x1_0000] = [const { AtomicU32::new(UNKNOWN) }; 0x1_0000];

fn known(character: char) -> u32 {
    let slot = usize::try_from(u32::from(character))
        .ok()
        .and_then(|index| KNOWN.get(index));
    let before = slot.map_or(UNKNOWN, |slot| slot.load(Ordering::Relaxed));
    if before != UNKNOWN {
        return before;
    }
    let found = work_out(character);
    if let Some(slot) = slot {
        slot.store(found, Ordering::Relaxed);
    }
    found
}

fn work_out(character: char) -> u32 {
    if is_ignorable(character) {
        return DROPPED;
    }
    let (mut count, mut first) = (0, character);
    unfold(character, |part| {
        if count == 0 {
            first = part;
        }
        count += 1;
    });
    match count {
        0 => DROPPED,
        1 => u32::from(first),
        _ => SEVERAL,
    }
}

fn into_string(bytes: Vec<u8>) -> String {
    // Only whole characters were pushed; the lossy form is never needed and costs nothing where it is not.
    String::from_utf8(bytes).unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned())
}

/// The Latin letter or ASCII sign that `character` is commonly mistaken for, or itself. Lower case only.
fn look_alike(character: char) -> char {
    match character {
        'а' | 'α' | 'ɑ' => 'a',
        'в' | 'ь' => 'b',
        'с' | 'ϲ' | 'ᴄ' => 'c',
        'ԁ' => 'd',
        'е' | 'ε' | 'ҽ' => 'e',
        'ɡ' => 'g',
        'һ' | 'н' => 'h',
        'і' | 'ι' | 'ı' | 'ӏ' => 'i',
        'ј' => 'j',
        'к' | 'κ' => 'k',
        'м' => 'm',
        'ո' => 'n',
        'о' | 'ο' | 'σ' | 'օ' => 'o',
        'р' | 'ρ' => 'p',
        'ԛ' => 'q',
        'ѕ' | 'ꜱ' => 's',
        'т' | 'τ' => 't',
        'υ' | 'ս' => 'u',
        'ν' | 'ѵ' => 'v',
        'ԝ' | 'ω' => 'w',
        'х' | 'χ' => 'x',
        'у' | 'γ' | 'ү' => 'y',
        '\u{2018}' | '\u{2019}' | '\u{2bc}' => '\'',
        '\u{201c}' | '\u{201d}' => '"',
        '\u{2010}'..='\u{2015}' | '\u{2212}' => '-',
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn disguises_are_levelled() {
        for (disguised, plain) in [
            ("Ｉｇｎｏｒｅ", "ignore"),
            ("𝐢𝐠𝐧𝐨𝐫𝐞", "ignore"),
            ("іgnоrе", "ignore"),
            ("ig\u{200b}no\u{2060}re", "ignore"),
            ("ïgnóre", "ignore"),
            ("a \t b \r\n\n  c", "a b\nc"),
            ("你好，世界", "你好,世界"),
            ("don’t — “x”", "don't - \"x\""),
        ] {
            assert_eq!(View::of(disguised).text(), plain);
        }
    }

    #[test]
    fn a_range_leads_back_to_the_original() {
        let original = "ab ｃ\u{200b}Ｄ  e";
        let view = View::of(original);
        let at = view.text().find("cd").expect("levelled");
        let (start, end) = view.original_range(at, at + 2);
        assert_eq!(&original[start..end], "ｃ\u{200b}Ｄ");
    }

    #[test]
    fn a_ligature_of_many_letters_does_not_make_a_text_swell() {
        let text = "\u{fdfa}".repeat(100);
        assert!(View::of(&text).text().len() <= text.len());
        assert_eq!(View::of("\u{33c2}\u{2474}").text(), "a.m.(1)");
    }

    proptest! {
        #[test]
        fn every_range_is_on_boundaries_of_the_original(original in "\\PC{0,40}[ \\n]{0,3}\\PC{0,20}") {
            let view = View::of(&original);
            for (at, character) in view.text.char_indices() {
                let (start, end) = view.original_range(at, at + character.len_utf8());
                prop_assert!(original.get(start..end).is_some_and(|slice| !slice.is_empty()));
            }
        }
    }
}
