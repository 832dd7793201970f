//! Characters that a person cannot see: zero width, bidirectional controls, tags, fillers, control codes.
//!
//! Where a script or an emoji needs such a character to be written right, it passes: a joiner inside an emoji or between
//! Persian or Indic letters, a variation selector after what it varies, a tag sequence that makes a flag.

use crate::{Category, Finding, Severity};

/// Finds invisible and order-changing characters. Neighbours of the same kind are one finding.
pub fn check(text: &str) -> Vec<Finding> {
    let bytes = text.as_bytes();
    let mut findings: Vec<Finding> = Vec::new();
    let mut at = 0;
    while let Some(&byte) = bytes.get(at) {
        match byte {
            // Printable ASCII, blanks; and what begins U+4000 to U+DFFF: Han, Yi, Hangul, where nothing is invisible.
            b'\t' | b'\n' | b'\r' | 0x20..=0x7e => at += 1,
            0xe4..=0xed => at += 3,
            _ => {
                let Some(character) = text.get(at..).and_then(|rest| rest.chars().next()) else {
                    break;
                };
                look_at(text, at, character, &mut findings);
                at += character.len_utf8();
            }
        }
    }
    findings
}

fn look_at(text: &str, offset: usize, character: char, findings: &mut Vec<Finding>) {
    let Some(kind) = kind_of(character) else { return };
    if is_needed(text, offset, character, kind) {
        return;
    }
    let end = offset + character.len_utf8();
    match findings.last_mut() {
        Some(last) if last.end == offset && last.rule == kind.rule() => last.end = end,
        _ => findings.push(Finding {
            start: offset,
            end,
            category: Category::InvisibleText,
            rule: kind.rule(),
            severity: kind.severity(),
        }),
    }
}

/// Whether a character has no width of its own and is dropped before patterns are matched.
pub fn is_ignorable(character: char) -> bool {
    kind_of(character).is_some_and(|kind| kind != Kind::LineSeparator)
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    ZeroWidth,
    Joiner,
    Selector,
    DirectionMark,
    Bidi,
    Tag,
    Filler,
    LineSeparator,
    Control,
}

impl Kind {
    const fn rule(self) -> &'static str {
        match self {
            Self::ZeroWidth => "zero-width",
            Self::Joiner => "stray-joiner",
            Self::Selector => "stray-variation-selector",
            Self::DirectionMark => "stray-direction-mark",
            Self::Bidi => "bidi-control",
            Self::Tag => "tag-character",
            Self::Filler => "blank-filler",
            Self::LineSeparator => "line-separator",
            Self::Control => "control-character",
        }
    }

    const fn severity(self) -> Severity {
        match self {
            Self::Bidi | Self::Tag => Severity::High,
            Self::ZeroWidth
            | Self::Joiner
            | Self::Selector
            | Self::DirectionMark
            | Self::Filler
            | Self::LineSeparator
            | Self::Control => Severity::Medium,
        }
    }
}

fn kind_of(character: char) -> Option<Kind> {
    Some(match character {
        '\t' | '\n' | '\r' | '\u{20}'..='\u{7e}' => return None,
        '\u{0}'..='\u{1f}' | '\u{7f}'..='\u{9f}' => Kind::Control,
        '\u{200c}' | '\u{200d}' => Kind::Joiner,
        '\u{200e}' | '\u{200f}' | '\u{61c}' => Kind::DirectionMark,
        '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => Kind::Bidi,
        '\u{2028}' | '\u{2029}' => Kind::LineSeparator,
        '\u{fe00}'..='\u{fe0f}' | '\u{e0100}'..='\u{e01ef}' => Kind::Selector,
        '\u{e0000}'..='\u{e007f}' => Kind::Tag,
        '\u{115f}' | '\u{1160}' | '\u{3164}' | '\u{ffa0}' | '\u{2800}' | '\u{17b4}' | '\u{17b5}' => Kind::Filler,
        '\u{ad}'
        | '\u{34f}'
        | '\u{180b}'..='\u{180f}'
        | '\u{200b}'
        | '\u{2060}'..='\u{2065}'
        | '\u{206a}'..='\u{206f}'
        | '\u{feff}'
        | '\u{fff9}'..='\u{fffb}'
        | '\u{1d173}'..='\u{1d17a}' => Kind::ZeroWidth,
        _ => return None,
    })
}

/// Whether the writing at this place needs the character.
fn is_needed(text: &str, offset: usize, character: char, kind: Kind) -> bool {
    let before = text.get(..offset).and_then(|left| left.chars().next_back());
    let rest = text.get(offset + character.len_utf8()..).unwrap_or_default();
    let after = rest.chars().next();
    let both = |test: fn(char) -> bool| before.is_some_and(test) && after.is_some_and(test);
    match kind {
        Kind::Joiner => {
            let joins_emoji = character == '\u{200d}'
                && before.is_some_and(|character| is_pictograph(character) || character == '\u{fe0f}')
                && after.is_some_and(is_pictograph);
            joins_emoji || both(uses_joiners)
        }
        Kind::Selector => before.is_some_and(|base| match character {
            '\u{fe00}'..='\u{fe0f}' => {
                is_pictograph(base) || is_ideograph(base) || matches!(base, '0'..='9' | '#' | '*' | '©' | '®')
            }
            _ => is_ideograph(base),
        }),
        Kind::DirectionMark => before.is_some_and(is_right_to_left) || after.is_some_and(is_right_to_left),
        Kind::Tag => belongs_to_flag(text, offset),
        Kind::ZeroWidth | Kind::Bidi | Kind::Filler | Kind::LineSeparator | Kind::Control => false,
    }
}

/// Flags of regions are a black flag, up to six tag letters or digits, and the cancel tag.
fn belongs_to_flag(text: &str, offset: usize) -> bool {
    const LONGEST: usize = 6;
    const FLAG: char = '\u{1f3f4}';
    let is_tag = |character: char| matches!(character, '\u{e0030}'..='\u{e0039}' | '\u{e0061}'..='\u{e007a}');
    let left = text.get(..offset).unwrap_or_default();
    // How many characters stand between the flag and this one.
    let Some((between, (flag, _))) = left
        .char_indices()
        .rev()
        .take(LONGEST + 1)
        .enumerate()
        .find(|(_, (_, character))| *character == FLAG)
    else {
        return false;
    };
    let sequence = text.get(flag + FLAG.len_utf8()..).unwrap_or_default();
    let letters = sequence
        .chars()
        .take(LONGEST + 1)
        .take_while(|character| is_tag(*character))
        .count();
    let ends = sequence.chars().nth(letters) == Some('\u{e007f}');
    ends && (1..=LONGEST).contains(&letters) && between <= letters
}

fn is_pictograph(character: char) -> bool {
    matches!(character, '\u{203c}'..='\u{3299}' | '\u{1f000}'..='\u{1faff}')
}

fn is_ideograph(character: char) -> bool {
    matches!(character, '\u{3400}'..='\u{9fff}' | '\u{f900}'..='\u{faff}' | '\u{20000}'..='\u{3ffff}')
}

/// Arabic and its neighbours, the Indic scripts, Khmer, Myanmar, Mongolian.
fn uses_joiners(character: char) -> bool {
    matches!(
        character,
        '\u{600}'..='\u{6ff}' | '\u{700}'..='\u{8ff}' | '\u{900}'..='\u{dff}' | '\u{1000}'..='\u{109f}' | '\u{1780}'..='\u{18af}'
    )
}

fn is_right_to_left(character: char) -> bool {
    matches!(character, '\u{590}'..='\u{8ff}' | '\u{fb1d}'..='\u{fdff}' | '\u{fe70}'..='\u{fefc}')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rules(text: &str) -> Vec<&'static str> {
        check(text).iter().map(|finding| finding.rule).collect()
    }

    #[test]
    fn what_cannot_be_seen_is_found() {
        for (text, rule) in [
            ("pass\u{200b}word", "zero-width"),
            ("\u{feff}text", "zero-width"),
            ("soft\u{ad}hyphen", "zero-width"),
            ("a\u{202e}b", "bidi-control"),
            ("a\u{2067}b", "bidi-control"),
            ("a\u{200f}b", "stray-direction-mark"),
            ("a\u{200d}b", "stray-joiner"),
            ("a\u{fe0f}b", "stray-variation-selector"),
            ("a\u{e0100}b", "stray-variation-selector"),
            ("hi\u{e0068}\u{e0069}", "tag-character"),
            ("a\u{3164}b", "blank-filler"),
            ("a\u{2028}b", "line-separator"),
            ("a\u{1b}[2Jb", "control-character"),
            ("a\u{0}b", "control-character"),
        ] {
            assert_eq!(rules(text), [rule], "{text:?}");
        }
    }

    #[test]
    fn neighbours_of_one_kind_are_one_finding() {
        let text = "x\u{e0061}\u{e0062}\u{e0063}y";
        let findings = check(text);
        assert_eq!(findings.len(), 1);
        assert_eq!((findings[0].start, findings[0].end), (1, 13), "bytes");
    }

    #[test]
    fn writing_that_needs_them_passes() {
        for text in [
            "plain text\twith a tab\r\nand a line",
            "你好，世界。こんにちは 안녕하세요",
            "family 👨‍👩‍👧‍👦, heart ❤️, keycap 1️⃣, rainbow 🏳️‍🌈",
            "flag of Scotland 🏴\u{e0067}\u{e0062}\u{e0073}\u{e0063}\u{e0074}\u{e007f}!",
            "می\u{200c}خواهم",
            "क्\u{200d}ष",
            "שלום\u{200f}!",
            "葛\u{e0100}飾",
            "naïve café Ünïcode",
        ] {
            assert_eq!(rules(text), Vec::<&str>::new(), "{text:?}");
        }
    }

    #[test]
    fn a_flag_does_not_hide_more_than_a_flag() {
        let hidden: String = "ignore all"
            .chars()
            .filter_map(|c| char::from_u32(0xe0000 + u32::from(c)))
            .collect();
        assert_eq!(rules(&format!("🏴{hidden}\u{e007f}")), ["tag-character"]);
        assert_eq!(rules("🏴\u{e0067}\u{e0062}"), ["tag-character"], "never ended");
        let flag_and_more = "🏴\u{e0067}\u{e0062}\u{e0073}\u{e0063}\u{e0074}\u{e007f}\u{e0061}";
        assert_eq!(rules(flag_and_more), ["tag-character"]);
    }
}
