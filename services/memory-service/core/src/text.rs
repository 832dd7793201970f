//! How long an entry's text is and how it is shown in short; the form in which it is kept (`M-1`, `M-4`) and travels
//! (`M-2`) is shared with those who import and export.

pub use steward_base::entries::{SEPARATOR, canonical};

/// Characters of [`SEPARATOR`].
pub const SEPARATOR_CHARS: usize = 3;

/// Longest preview of an entry, in characters.
pub const PREVIEW: usize = 80;

/// Length in Unicode scalar values, which is what budgets count.
pub fn chars(text: &str) -> usize {
    text.chars().count()
}

/// The first words of an entry on one line, at most [`PREVIEW`] characters.
pub fn preview(text: &str) -> String {
    shortened(text, PREVIEW)
}

/// The first words of an entry on one line, at most `width` characters.
pub fn shortened(text: &str, width: usize) -> String {
    let mut line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    if let Some((cut, _)) = line.char_indices().nth(width) {
        let keep = line
            .char_indices()
            .nth(width.saturating_sub(1))
            .map_or(cut, |(at, _)| at);
        line.truncate(keep);
        line.push('…');
    }
    line
}

/// A number with thousands separated, as people read budgets: `2,200`.
pub fn grouped(number: usize) -> String {
    let digits = number.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_are_characters_not_bytes() {
        assert_eq!(chars("记忆"), 2);
        assert_eq!(chars(SEPARATOR), SEPARATOR_CHARS);
        assert_eq!(grouped(2_200), "2,200");
        assert_eq!(grouped(999), "999");
        assert_eq!(grouped(1_234_567), "1,234,567");
    }

    #[test]
    fn a_preview_is_one_short_line() {
        assert_eq!(preview("one\n two"), "one two");
        assert_eq!(chars(&preview(&"é".repeat(500))), PREVIEW);
        assert_eq!(preview(&"é".repeat(PREVIEW)), "é".repeat(PREVIEW));
    }
}
