//! How long the texts of a status may be.
//!
//! The message is written into its header with three bytes for every byte that is not plain; everything else travels in
//! base 64, which makes four bytes of three.

/// Longest message, in bytes as it travels.
const MESSAGE: usize = 1536;

/// Longest text of a detail, in bytes.
const TEXT: usize = 512;

/// Longest metadata, in bytes of all values. The tool's answer of a refused write is in it.
const METADATA: usize = 5120;

/// Most wrong fields that are named.
pub(super) const VIOLATIONS: usize = 64;

/// Most bytes of their names and descriptions.
pub(super) const VIOLATIONS_BYTES: usize = 3072;

const MORE: &str = "…";

/// The message, cut if it must be.
pub(super) fn message(text: String) -> String {
    cut(text, MESSAGE, |text| {
        let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.~/:;,'()[]=+*@&!$|^".contains(&byte);
        text.bytes().map(|byte| if plain(byte) { 1 } else { 3 }).sum()
    })
}

/// A text of a detail, cut if it must be.
pub(super) fn text(text: String) -> String {
    cut(text, TEXT, str::len)
}

/// The metadata, shortest values first: they stay whole, and the longest gets the room that they leave.
pub(super) fn metadata(mut pairs: Vec<(&'static str, String)>) -> impl Iterator<Item = (String, String)> {
    pairs.sort_by_key(|(_, value)| value.len());
    let mut room = METADATA;
    pairs.into_iter().map(move |(key, value)| {
        let value = cut(value, room, str::len);
        room -= value.len();
        (key.to_owned(), value)
    })
}

/// The text, cut at a character so that it costs at most `longest`.
fn cut(mut text: String, longest: usize, cost: impl Fn(&str) -> usize) -> String {
    let room = longest.checked_sub(cost(MORE));
    let mut used = 0;
    let mut end = 0;
    for (at, character) in text.char_indices() {
        used += cost(character.encode_utf8(&mut [0; 4]));
        if room.is_some_and(|room| used <= room) {
            end = at + character.len_utf8();
        } else if used > longest {
            text.truncate(end);
            if room.is_some() {
                text.push_str(MORE);
            }
            return text;
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_that_fits_is_left_and_another_is_cut_at_a_character() {
        assert_eq!(text("a".repeat(TEXT)), "a".repeat(TEXT));
        assert_eq!(text("a".repeat(TEXT + 1)), "a".repeat(TEXT - 3) + "…");
        assert_eq!(text("记".repeat(1000)), "记".repeat(169) + "…");
        // Nine bytes each, and as many for the sign of the cut.
        assert_eq!(message("记".repeat(1000)), "记".repeat(169) + "…");
        assert_eq!(message("a".repeat(MESSAGE)), "a".repeat(MESSAGE));
    }

    #[test]
    fn the_longest_value_of_metadata_leaves_room_for_the_others() {
        let pairs = vec![
            ("long", "x".repeat(METADATA)),
            ("number", "1234".to_owned()),
            ("empty", String::new()),
        ];
        let sizes: Vec<_> = metadata(pairs).map(|(key, value)| (key, value.len())).collect();
        let expected = [("empty", 0), ("number", 4), ("long", METADATA - 4)];
        assert_eq!(sizes, expected.map(|(key, size)| (key.to_owned(), size)));
        let one: Vec<_> = metadata(vec![("a", "记".repeat(9000))]).collect();
        assert!(one[0].1.len() <= METADATA && one[0].1.ends_with('…'));
    }
}
