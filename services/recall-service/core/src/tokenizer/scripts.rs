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
    /// Shows nothing and parts nothing: joiners, break hints, variation selectors, direction marks.
    Invisible,
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
    if is_invisible(character) {
        Class::Invisible
    } else if is_dense(character) {
        // Also a mark without a base before it; elsewhere the unit before has taken it.
        Class::Dense
    } else if is_pictograph(character) {
        Class::Pictograph
    } else if character.is_alphanumeric() && !is_combining_mark(character) {
        Class::Word
    } else {
        Class::Other
    }
}

/// Whether the character belongs to the unit before it: vowel signs, voicing marks, trailing Hangul letters.
pub(super) fn continues_unit(character: char) -> bool {
    let code = character as u32;
    (code >= 0x0300 && is_combining_mark(character)) || matches!(code, 0x1160..=0x11FF | 0xFF9E..=0xFF9F)
}

/// Whether the folded form of a dense character may differ from the character itself.
pub(super) fn has_compatibility_form(character: char) -> bool {
    !matches!(character as u32, 0x4E00..=0x9FFF | 0x3041..=0x3096 | 0x30A1..=0x30FA | 0xAC00..=0xD7A3 | 0x0E01..=0x0E32
        | 0x3400..=0x4DBF | 0x20000..=0x2A6DF)
}

/// Whether diacritics on this letter are dropped: Latin, Greek, the points of Arabic and Hebrew, and digits. Elsewhere a
/// mark makes another letter.
pub(super) fn drops_marks(character: char) -> bool {
    character.is_ascii_alphanumeric()
        || matches!(character as u32, 0x00AA..=0x024F | 0x0250..=0x02AF | 0x1E00..=0x1EFF
            | 0x2C60..=0x2C7F | 0xA720..=0xA7FF | 0xAB30..=0xAB64
            | 0x0370..=0x03FF | 0x1F00..=0x1FFF
            | 0x0590..=0x06FF | 0x0750..=0x077F | 0x08A0..=0x08FF)
}

/// Whether a mark makes another letter in a script whose other marks are dropped: hamza and madda of Arabic.
pub(super) fn is_letter_mark(character: char) -> bool {
    matches!(character as u32, 0x0653..=0x0655)
}

/// Letters that only lengthen a word on the line.
pub(super) fn is_filler(character: char) -> bool {
    character == '\u{0640}'
}

/// Whether the character shows nothing and parts nothing.
pub(super) fn is_invisible(character: char) -> bool {
    matches!(character as u32, 0x00AD | 0x034F | 0x061C | 0x180B..=0x180F | 0x200B..=0x200F | 0x202A..=0x202E
        | 0x2060..=0x206F | 0xFE00..=0xFE0F | 0xFEFF | 0xE0000..=0xE0FFF)
}

/// Whether this is a character of a script without blanks, or of Hangul.
pub(super) fn is_dense(character: char) -> bool {
    matches!(character as u32,
        0x0E01..=0x0E4E | 0x0E81..=0x0ECE | 0x0EDC..=0x0EDF                     // Thai, Lao; their digits stay digits
        | 0x1000..=0x103F | 0x1050..=0x108F | 0xA9E0..=0xA9EF | 0xAA60..=0xAA7F // Myanmar
        | 0x1780..=0x17D3                                                       // Khmer
        | 0x1950..=0x1974 | 0x1980..=0x19CF | 0x1A20..=0x1A7F | 0xAA80..=0xAADF // Tai scripts
        | 0x1B00..=0x1B4C | 0xA980..=0xA9C0                                     // Balinese, Javanese
        | 0xA000..=0xA48C | 0x17000..=0x18AFF                                   // Yi, Tangut
        | 0x1100..=0x11FF | 0x3130..=0x318F | 0xA960..=0xA97F | 0xAC00..=0xD7FB | 0xFFA0..=0xFFDC // Hangul
        | 0x2E80..=0x2FD5                            // radicals, which copies out of documents are full of
        | 0x3005..=0x3007 | 0x3021..=0x3029 | 0x3031..=0x3035 | 0x3038..=0x303C // marks and numbers used with Han
        | 0x3041..=0x309F | 0x30A1..=0x30FA | 0x30FC..=0x30FF | 0x31F0..=0x31FF // kana
        | 0x3220..=0x33FF                            // squared and circled forms
        | 0xFF66..=0xFF9F                            // half-width kana
        | 0x3105..=0x312F | 0x31A0..=0x31BF          // bopomofo
        | 0x3400..=0x4DBF | 0x4E00..=0x9FFF | 0xF900..=0xFAFF                   // Han
        | 0x1AFF0..=0x1B2FB | 0x1F200..=0x1F2FF | 0x20000..=0x3FFFD)
}

fn is_pictograph(character: char) -> bool {
    match character as u32 {
        // Skin tones modify the pictograph before them. The marks of a snippet are not text.
        0x1F3FB..=0x1F3FF | 0xE000..=0xE001 => false,
        0x203C
        | 0x2049
        | 0x2194..=0x2199
        | 0x21A9..=0x21AA
        | 0x231A..=0x231B
        | 0x2328
        | 0x23CF
        | 0x23E9..=0x23FA
        | 0x25AA..=0x25AB
        | 0x25B6
        | 0x25C0
        | 0x25FB..=0x25FE
        | 0x2600..=0x27BF
        | 0x2934..=0x2935
        | 0x2B05..=0x2B07
        | 0x2B1B..=0x2B1C
        | 0x2B50
        | 0x2B55
        | 0x3030
        | 0x303D
        | 0x1F000..=0x1F0FF
        | 0x1F170..=0x1F1FF
        | 0x1F300..=0x1FAFF
        // Private use: symbols of icon fonts.
        | 0xE002..=0xF8FF
        | 0xF_0000..=0x10_FFFD => true,
        _ => false,
    }
}
