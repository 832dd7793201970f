//! How long the texts of a status may be.

/// Longest message, in bytes as it travels: everything but plain characters takes three.
pub(super) const MESSAGE: usize = 1536;

/// Longest other text, in bytes as it travels.
pub(super) const TEXT: usize = 384;

/// Most wrong fields that are named.
pub(super) const VIOLATIONS: usize = 64;

/// Most bytes of their names and descriptions.
pub(super) const VIOLATIONS_BYTES: usize = 3072;

/// The text, cut at a character so that it takes at most `longest` bytes in a header.
pub(super) fn cut(mut text: String, longest: usize) -> String {
    const MORE: &str = "…";
    let room = longest - cost(MORE);
    let mut used = 0;
    let mut end = 0;
    for (at, character) in text.char_indices() {
        used += cost(character.encode_utf8(&mut [0; 4]));
        if used <= room {
            end = at + character.len_utf8();
        } else if used > longest {
            text.truncate(end);
            text.push_str(MORE);
            return text;
        }
    }
    text
}

fn cost(text: &str) -> usize {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.~/:;,'()[]=+*@&!$|^".contains(&byte);
    text.bytes().map(|byte| if plain(byte) { 1 } else { 3 }).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_that_fits_is_left_and_another_is_cut_at_a_character() {
        assert_eq!(cut("a".repeat(100), 100), "a".repeat(100));
        assert_eq!(cut("a".repeat(101), 100), "a".repeat(91) + "…");
        let chinese = cut("记".repeat(1000), 100);
        assert_eq!(chinese, "记".repeat(10) + "…");
        assert!(cost(&chinese) <= 100);
    }
}
