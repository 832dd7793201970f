//! The levelled view of a text, which rules are matched against, with the way back to the original.
//!
//! Compatibility forms are unfolded, invisible characters dropped, look-alikes of other scripts replaced, escaped line
//! ends of shells joined, case and runs of blanks levelled. Line ends stay, since a command ends with its line. Nothing
//! of it is shown to anyone: findings quote the original.

use std::ops::Range;

use unicode_normalization::UnicodeNormalization as _;

/// A levelled text and, for each of its bytes, the offset in the original that it came from.
#[derive(Debug, Default)]
pub(crate) struct View {
    pub(crate) text: String,
    origins: Vec<u32>,
    original_len: usize,
}

impl View {
    pub(crate) fn of(original: &str) -> Self {
        let mut view = Self {
            text: String::with_capacity(original.len()),
            origins: Vec::with_capacity(original.len()),
            original_len: original.len(),
        };
        let bytes = original.as_bytes();
        let mut at = 0;
        while let Some(&byte) = bytes.get(at) {
            match byte {
                b'\\' if bytes.get(at + 1) == Some(&b'\n') => at += 2,
                b'\\' if bytes.get(at + 1..at + 3) == Some(b"\r\n") => at += 3,
                b'\n' => {
                    view.end_line(at);
                    at += 1;
                }
                b' ' | b'\t' | 0x0b | 0x0c => {
                    view.blank(at);
                    at += 1;
                }
                0x21..=0x7e => {
                    let rest = bytes.get(at + 1..).unwrap_or_default();
                    let run = 1 + rest
                        .iter()
                        .take_while(|&&byte| matches!(byte, 0x21..=0x5b | 0x5d..=0x7e))
                        .count();
                    view.run(original.get(at..at + run).unwrap_or_default(), at);
                    at += run;
                }
                // Carriage returns and control codes.
                0..=0x7f => at += 1,
                _ => {
                    let character = original.get(at..).and_then(|rest| rest.chars().next());
                    let character = character.unwrap_or('\u{fffd}');
                    view.other(character, at);
                    at += character.len_utf8();
                }
            }
        }
        view
    }

    /// The bytes of the original from which `range` of the view came.
    pub(crate) fn original(&self, range: &Range<usize>) -> Range<usize> {
        let at = |index: usize| {
            self.origins
                .get(index)
                .map_or(self.original_len, |&offset| offset as usize)
        };
        at(range.start)..at(range.end).max(at(range.start))
    }

    fn ascii(&mut self, byte: u8, at: usize) {
        self.text.push(char::from(byte.to_ascii_lowercase()));
        self.origins.push(offset(at));
    }

    fn run(&mut self, text: &str, at: usize) {
        let start = self.text.len();
        self.text.push_str(text);
        if let Some(added) = self.text.get_mut(start..) {
            added.make_ascii_lowercase();
        }
        self.origins.extend(offset(at)..offset(at + text.len()));
    }

    fn blank(&mut self, at: usize) {
        if !matches!(self.text.as_bytes().last(), Some(b' ' | b'\n')) {
            self.text.push(' ');
            self.origins.push(offset(at));
        }
    }

    fn end_line(&mut self, at: usize) {
        if self.text.as_bytes().last() == Some(&b' ') {
            self.text.pop();
            self.origins.pop();
        }
        self.text.push('\n');
        self.origins.push(offset(at));
    }

    fn other(&mut self, character: char, at: usize) {
        if matches!(character, '\u{2028}' | '\u{2029}' | '\u{85}') {
            self.end_line(at);
            return;
        }
        if character.is_whitespace() {
            self.blank(at);
            return;
        }
        if steward_guard::unicode::is_ignorable(character) {
            return;
        }
        for part in std::iter::once(character).nfkc() {
            let part = look_alike(part);
            if part.is_ascii_whitespace() {
                self.blank(at);
            } else if part.is_ascii() {
                self.ascii(part as u8, at);
            } else {
                for lower in part.to_lowercase() {
                    self.text.push(lower);
                }
                self.origins.resize(self.text.len(), offset(at));
            }
        }
    }
}

/// Texts over 4 GiB do not occur: a skill is far smaller, and the scanner refuses larger files.
fn offset(at: usize) -> u32 {
    u32::try_from(at).unwrap_or(u32::MAX)
}

/// The ASCII sign that a character is confused with by the Unicode tables, typographic quotes and dashes included, or
/// itself.
pub(crate) fn look_alike(character: char) -> char {
    if character.is_ascii() {
        return character;
    }
    match character {
        '\u{2018}' | '\u{2019}' | '\u{2bc}' => return '\'',
        '\u{201c}' | '\u{201d}' => return '"',
        '\u{2010}'..='\u{2015}' | '\u{2212}' => return '-',
        // Ideographs and syllables have no look-alikes that matter and are most of many texts.
        '\u{2e80}'..='\u{9fff}' | '\u{ac00}'..='\u{d7ff}' => return character,
        _ => {}
    }
    let mut buffer = [0; 4];
    let mut skeleton = unicode_security::skeleton(character.encode_utf8(&mut buffer));
    match (skeleton.next(), skeleton.next()) {
        (Some(only), None) if only.is_ascii() => only,
        _ => character,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn disguises_are_levelled() {
        for (disguised, plain) in [
            ("Ｃurl", "curl"),
            ("сurl", "curl"),
            ("c\u{200b}u\u{2060}rl", "curl"),
            ("cu\\\nrl x", "curl x"),
            ("cu\\\r\nrl x", "curl x"),
            ("𝐢𝐠𝐧𝐨𝐫𝐞", "ignore"),
            ("a \t b \r\n  c", "a b\nc"),
            ("don’t — “x”", "don't - \"x\""),
            ("你好", "你好"),
        ] {
            assert_eq!(View::of(disguised).text, plain, "{disguised:?}");
        }
    }

    #[test]
    fn a_range_leads_back_to_the_original() {
        let original = "ab ｃ\u{200b}Ｄ  e";
        let view = View::of(original);
        let at = view.text.find("cd").expect("levelled");
        let range = view.original(&(at..at + 2));
        assert_eq!(&original[range], "ｃ\u{200b}Ｄ");
    }

    proptest! {
        #[test]
        fn every_range_is_within_the_original_and_on_boundaries(original in "\\PC{0,40}[ \\\\\\n]{0,4}\\PC{0,20}") {
            let view = View::of(&original);
            prop_assert_eq!(view.text.len(), view.origins.len());
            for (at, character) in view.text.char_indices() {
                let range = view.original(&(at..at + character.len_utf8()));
                prop_assert!(original.get(range).is_some());
            }
        }
    }
}
