//! The text as a model reads it: the view that patterns are matched against, with the way back to the original.
//!
//! Compatibility forms are unfolded, accents and invisible characters dropped, look-alike letters of other scripts
//! replaced, case and runs of white space levelled. Nothing shown to anyone comes from here.

use unicode_normalization::UnicodeNormalization;
use unicode_normalization::char::is_combining_mark;

use crate::unicode::is_ignorable;

/// A levelled text and, for each of its bytes, where it came from.
pub(crate) struct View<'t> {
    original: &'t str,
    text: String,
    origins: Vec<usize>,
}

impl<'t> View<'t> {
    pub(crate) fn of(original: &'t str) -> Self {
        let mut view = Self {
            original,
            text: String::with_capacity(original.len()),
            origins: Vec::new(),
        };
        view.origins.reserve(original.len());
        for (offset, character) in original.char_indices() {
            view.push(offset, character);
        }
        view
    }

    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    /// The bytes of the original from which the bytes `start..end` of the view came.
    pub(crate) fn original_range(&self, start: usize, end: usize) -> (usize, usize) {
        let first = self.origins.get(start).copied().unwrap_or(0);
        let last = end
            .checked_sub(1)
            .and_then(|last| self.origins.get(last))
            .copied()
            .unwrap_or(first);
        let length = self
            .original
            .get(last..)
            .and_then(|rest| rest.chars().next())
            .map_or(0, char::len_utf8);
        (first, last + length)
    }

    fn push(&mut self, offset: usize, character: char) {
        if is_ignorable(character) {
            return;
        }
        if character.is_ascii() {
            self.push_levelled(offset, character.to_ascii_lowercase());
            return;
        }
        for part in std::iter::once(character)
            .nfkd()
            .filter(|part| !is_combining_mark(*part))
        {
            for lower in part.to_lowercase() {
                self.push_levelled(offset, look_alike(lower));
            }
        }
    }

    fn push_levelled(&mut self, offset: usize, character: char) {
        if character.is_whitespace() {
            let line_ends = matches!(character, '\n' | '\u{2028}' | '\u{2029}');
            match self.text.as_bytes().last() {
                Some(b' ') if line_ends => {
                    self.text.pop();
                    self.origins.pop();
                }
                Some(b' ' | b'\n') => return,
                _ => {}
            }
            self.text.push(if line_ends { '\n' } else { ' ' });
            self.origins.push(offset);
            return;
        }
        self.text.push(character);
        self.origins.resize(self.text.len(), offset);
    }
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

    proptest! {
        #[test]
        fn every_range_is_on_boundaries_of_the_original(original in "\\PC{0,40}[ \\n]{0,3}\\PC{0,20}") {
            let view = View::of(&original);
            prop_assert_eq!(view.text.len(), view.origins.len());
            for (at, character) in view.text.char_indices() {
                let (start, end) = view.original_range(at, at + character.len_utf8());
                prop_assert!(original.get(start..end).is_some_and(|slice| !slice.is_empty()));
            }
        }
    }
}
