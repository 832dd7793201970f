//! Characters that deceive the eye: invisible ones, ones that change the order of reading, look-alikes, and blanks that
//! push text out of sight.

use std::ops::Range;

use steward_guard::unicode;

use crate::split::{Parts, Place};
use crate::view::look_alike;

/// A place in a text, the check that speaks of it, and what hidden characters spell.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Deceit {
    pub(crate) check: &'static str,
    pub(crate) range: Range<usize>,
    pub(crate) spells: Option<String>,
}

/// Most deceits that are told of one text.
const MOST: usize = 20;
const COLUMNS: usize = 200;
const LINES: usize = 50;

pub(crate) fn deceits(text: &str, parts: &Parts, script: bool) -> Vec<Deceit> {
    let mut found = Vec::new();
    if has_invisible(text) {
        invisible(text, &mut found);
    }
    if !text.is_ascii() && text.chars().any(may_look_alike) {
        mixed(text, parts, script, &mut found);
    }
    pushed(text, &mut found);
    found.truncate(MOST);
    found
}

fn has_invisible(text: &str) -> bool {
    text.bytes()
        .any(|byte| byte < 0x20 && !matches!(byte, b'\t' | b'\n' | b'\r' | 0x0c))
        || !text.is_ascii()
            && text
                .chars()
                .any(|character| !character.is_ascii() && unicode::is_ignorable(character))
}

fn invisible(text: &str, found: &mut Vec<Deceit>) {
    let mut strays: Option<Deceit> = None;
    for finding in unicode::check(text) {
        let range = finding.start..finding.end;
        let shown = text.get(range.clone()).unwrap_or_default();
        let check = match finding.rule {
            "tag-character" => "tag-characters",
            "bidi-control" => "bidi-controls",
            "stray-variation-selector" if shown.chars().count() > 1 => "selector-run",
            "control-character" if shown.contains('\u{1b}') || shown.contains('\u{8}') => "terminal-control",
            _ if is_inside_word(text, &range) => "split-word",
            _ => "stray-invisible",
        };
        let deceit = Deceit {
            check,
            spells: spelled(shown),
            range,
        };
        if check == "stray-invisible" {
            // One is enough to know.
            strays.get_or_insert(deceit);
        } else {
            found.push(deceit);
        }
    }
    found.extend(strays);
}

fn is_inside_word(text: &str, range: &Range<usize>) -> bool {
    let before = text.get(..range.start).and_then(|before| before.chars().next_back());
    let after = text.get(range.end..).and_then(|after| after.chars().next());
    before.is_some_and(|character| character.is_ascii_alphabetic())
        && after.is_some_and(|character| character.is_ascii_alphabetic())
}

/// What tag characters or variation selectors spell.
fn spelled(shown: &str) -> Option<String> {
    let bytes: Vec<u8> = shown
        .chars()
        .filter_map(|character| match u32::from(character) {
            code @ 0xe0020..=0xe007e => u8::try_from(code - 0xe0000).ok(),
            code @ 0xfe00..=0xfe0f => u8::try_from(code - 0xfe00).ok(),
            code @ 0xe0100..=0xe01ef => u8::try_from(code - 0xe0100 + 16).ok(),
            _ => None,
        })
        .collect();
    let text = String::from_utf8(bytes).ok()?;
    (text.len() >= 4).then_some(text)
}

/// Words in which letters that look Latin stand between Latin ones, in code, addresses and prose.
fn mixed(text: &str, parts: &Parts, script: bool, found: &mut Vec<Deceit>) {
    let mut start = None;
    let mut deceives = false;
    let mut latin = 0;
    let mut foreign_letter = false;
    for (at, character) in text.char_indices().chain([(text.len(), ' ')]) {
        if character.is_alphanumeric() || matches!(character, '.' | '-' | '\u{200b}') {
            start.get_or_insert(at);
            if character.is_ascii_alphabetic() {
                latin += 1;
            } else if !character.is_ascii() && character.is_alphabetic() {
                if is_look_alike(character) {
                    deceives = true;
                } else {
                    foreign_letter = true;
                }
            }
            continue;
        }
        if let Some(first) = start.take()
            && deceives
        {
            let word = text.get(first..at).unwrap_or_default();
            let in_code = script || matches!(parts.place(first), Place::Code | Place::Script);
            let address = word.contains('.') && !word.ends_with('.') && !foreign_letter;
            if (latin >= 2 || latin > 0 && in_code || address && !word.starts_with('.'))
                && !foreign_letter
                && (latin > 0 || address)
            {
                found.push(Deceit {
                    check: "mixed-scripts",
                    range: first..at,
                    spells: Some(word.chars().map(look_alike).collect()),
                });
            }
        }
        deceives = false;
        foreign_letter = false;
        latin = 0;
    }
}

/// Cyrillic, Armenian, Cherokee and Greek letters that pass for Latin ones, and phonetic letters that do.
fn is_look_alike(character: char) -> bool {
    may_look_alike(character) && look_alike(character).is_ascii_alphabetic()
}

fn may_look_alike(character: char) -> bool {
    matches!(
        character,
        '\u{250}'..='\u{2af}' | '\u{370}'..='\u{58f}' | '\u{13a0}'..='\u{13fd}' | '\u{1d00}'..='\u{1d7f}' | '\u{a700}'..='\u{a7ff}'
    )
}

/// Text behind a long run of blanks, or behind very many empty lines.
fn pushed(text: &str, found: &mut Vec<Deceit>) {
    let mut start = 0;
    let mut empty = 0_usize;
    for line in text.split('\n') {
        let blank = line.len() < 400 && line.trim_ascii().is_empty();
        let first = (!blank && empty > LINES).then(|| line.len() - line.trim_start().len());
        let far = if line.len() > COLUMNS {
            behind_blanks(line)
        } else {
            None
        };
        // Alignment of a table or a figure is mostly punctuation.
        if let Some(at) = first.or(far)
            && line
                .get(at..)
                .is_some_and(|rest| rest.starts_with(char::is_alphanumeric))
        {
            found.push(Deceit {
                check: "pushed-out-of-sight",
                range: start + at..start + line.len(),
                spells: None,
            });
            if found.len() > MOST {
                return;
            }
        }
        empty = if blank { empty + 1 } else { 0 };
        start += line.len() + 1;
    }
}

/// Where text goes on behind more blanks than a screen is wide.
fn behind_blanks(line: &str) -> Option<usize> {
    let mut blanks = 0;
    for (at, byte) in line.bytes().enumerate() {
        if matches!(byte, b' ' | b'\t') {
            blanks += 1;
        } else if blanks > COLUMNS {
            return Some(at);
        } else {
            blanks = 0;
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::content::Kind;

    fn checks(text: &str) -> Vec<&'static str> {
        deceits(text, &Parts::of(text, Kind::Markdown), false)
            .iter()
            .map(|deceit| deceit.check)
            .collect()
    }

    #[test]
    fn what_deceives_the_eye_is_found() {
        let tags: String = "run it"
            .chars()
            .filter_map(|c| char::from_u32(0xe0000 + u32::from(c)))
            .collect();
        let selectors: String = "send"
            .bytes()
            .filter_map(|b| char::from_u32(0xe0100 + u32::from(b) - 16))
            .collect();
        for (text, check) in [
            (format!("hello{tags}"), "tag-characters"),
            (format!("x{selectors}"), "selector-run"),
            ("a\u{202e}b".to_owned(), "bidi-controls"),
            ("ig\u{200b}nore".to_owned(), "split-word"),
            ("\u{feff}text".to_owned(), "stray-invisible"),
            ("a\u{1b}[8mb".to_owned(), "terminal-control"),
            ("use сurl here".to_owned(), "mixed-scripts"),
            ("`gіthub.com/x`".to_owned(), "mixed-scripts"),
            (format!("a{}b", " ".repeat(300)), "pushed-out-of-sight"),
            (format!("a{}b", "\n".repeat(80)), "pushed-out-of-sight"),
        ] {
            assert_eq!(checks(&text), [check], "{text:?}");
        }
        let spelled = deceits(&format!("hello{tags}"), &Parts::of("", Kind::Data), false);
        assert_eq!(spelled[0].spells.as_deref(), Some("run it"));
    }

    #[test]
    fn honest_writing_of_any_script_passes() {
        for text in [
            "Привет, мир. Это навык.",
            "Καλημέρα κόσμε",
            "你好 世界 hello",
            "Δt and σ_x and µs and 50 Ω",
            "naïve café Ünïcode ﬁne",
            "emoji 👨‍👩‍👧 ❤️ 🏴\u{e0067}\u{e0062}\u{e0065}\u{e006e}\u{e0067}\u{e007f}",
            "HTTP-запрос и API",
            "می\u{200c}خواهم",
        ] {
            assert_eq!(checks(text), Vec::<&str>::new(), "{text}");
        }
    }
}
