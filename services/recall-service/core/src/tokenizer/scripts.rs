//! Which characters belong to which kind of text.

use unicode_normalization::char::is_combining_mark;

/// How the tokenizer treats a character.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Class {
    /// Part of a word between blanks.
    Word,
    /// A character of a script without blanks, or one where people search below the word (Hangul).
    Dense,
    /// A symbol that is a token of its own.
    Pictograph,
    /// Blank, punctuation, a mark without a base: parts tokens.
    Other,
}

pub(super) fn class_of(character: char) -> Class {
    if character.is_ascii() {
        return if character.is_ascii_alphanumeric() {
            Class::Word
        } else {
            Class::Other
        };
    }
    if is_dense(character) {
        // Also a mark without a base before it; elsewhere the unit before has taken it.
        Class::Dense
    } else if is_pictograph(character) {
        Class::Pictograph
    } else if is_private_use(character) || (character.is_alphanumeric() && !is_combining_mark(character)) {
        Class::Word
    } else {
        Class::Other
    }
}

/// Whether the character belongs to the dense unit before it: vowel signs, voicing marks, trailing Hangul letters.
pub(super) fn continues_unit(character: char) -> bool {
    let code = character as u32;
    (code >= 0x0300 && is_combining_mark(character)) || matches!(code, 0x1160..=0x11FF | 0xFF9E..=0xFF9F)
}

/// Whether the folded form of a dense character differs from the character itself.
pub(super) fn has_compatibility_form(character: char) -> bool {
    matches!(character as u32, 0x0E33 | 0x0EB3 | 0x3038..=0x303A | 0x3130..=0x318F | 0xF900..=0xFAFF | 0xFF66..=0xFF9D
        | 0x2F800..=0x2FA1F)
}

/// Whether diacritics on this base are dropped.
pub(super) fn is_latin(character: char) -> bool {
    character.is_ascii_alphabetic() || matches!(character as u32, 0x00C0..=0x024F | 0x1E00..=0x1EFF)
}

fn is_dense(character: char) -> bool {
    matches!(character as u32,
        0x0E01..=0x0E4E | 0x0E81..=0x0ECE            // Thai, Lao; their digits stay digits
        | 0x1000..=0x103F | 0x1050..=0x108F          // Myanmar
        | 0x1780..=0x17D3                            // Khmer
        | 0x1100..=0x11FF | 0x3130..=0x318F | 0xA960..=0xA97F | 0xAC00..=0xD7FB // Hangul
        | 0x3005..=0x3007 | 0x3021..=0x3029 | 0x3031..=0x3035 | 0x3038..=0x303C // marks and numbers used with Han
        | 0x3041..=0x309F | 0x30A1..=0x30FA | 0x30FC..=0x30FF | 0x31F0..=0x31FF // kana
        | 0xFF66..=0xFF9F                            // half-width kana
        | 0x3105..=0x312F | 0x31A0..=0x31BF          // bopomofo
        | 0x3400..=0x4DBF | 0x4E00..=0x9FFF | 0xF900..=0xFAFF                   // Han
        | 0x1B000..=0x1B16F | 0x20000..=0x323AF)
}

fn is_pictograph(character: char) -> bool {
    match character as u32 {
        // Skin tones modify the pictograph before them.
        0x1F3FB..=0x1F3FF => false,
        0x231A..=0x231B
        | 0x23E9..=0x23FA
        | 0x2600..=0x27BF
        | 0x2B05..=0x2B07
        | 0x2B1B..=0x2B1C
        | 0x2B50
        | 0x2B55
        | 0x3030
        | 0x303D
        | 0x1F000..=0x1F0FF
        | 0x1F1E6..=0x1F1FF
        | 0x1F300..=0x1FAFF => true,
        _ => false,
    }
}

fn is_private_use(character: char) -> bool {
    ('\u{e000}'..='\u{f8ff}').contains(&character)
}
