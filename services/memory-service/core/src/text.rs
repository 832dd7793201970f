//! The form in which an entry's text is kept, how long it is, and how entries travel as one text (`M-1`, `M-2`).
//!
//! An entry is kept in Unicode normal form C with `\n` line ends and without surrounding blanks, so that two spellings
//! of the same text are one entry (`M-4`). Nothing else is changed.

use unicode_normalization::UnicodeNormalization as _;

/// What stands between two entries on export; it counts towards the budget.
pub const SEPARATOR: &str = "\n§\n";

/// Characters of [`SEPARATOR`].
pub const SEPARATOR_CHARS: usize = 3;

/// Longest preview of an entry, in characters.
pub const PREVIEW: usize = 80;

/// The kept form of a text.
pub fn canonical(text: &str) -> String {
    let unified = text.replace("\r\n", "\n").replace('\r', "\n");
    unified.nfc().collect::<String>().trim().to_owned()
}

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

/// Entries as one text, joined by [`SEPARATOR`]. A line of an entry that could be taken for a separator gets a
/// backslash in front, so that [`import`] gives back exactly these entries.
pub fn export<'a>(entries: impl IntoIterator<Item = &'a str>) -> String {
    entries
        .into_iter()
        .map(|entry| map_lines(entry, escape))
        .collect::<Vec<_>>()
        .join(SEPARATOR)
}

/// The entries of an exported text, in kept form. Accepts what people do to such a file by hand: other line ends, blank
/// lines around a separator, blanks at its sides, a paragraph of their own at the end.
pub fn import(text: &str) -> Vec<String> {
    let text = text
        .strip_prefix('\u{feff}')
        .unwrap_or(text)
        .replace("\r\n", "\n")
        .replace('\r', "\n");
    let mut entries = vec![Vec::new()];
    for line in text.split('\n') {
        if line.trim() == "§" {
            entries.push(Vec::new());
        } else if let Some(entry) = entries.last_mut() {
            entry.push(unescape(line));
        }
    }
    entries
        .iter()
        .map(|lines| canonical(&lines.join("\n")))
        .filter(|entry| !entry.is_empty())
        .collect()
}

fn map_lines(text: &str, map: fn(&str) -> String) -> String {
    text.split('\n').map(map).collect::<Vec<_>>().join("\n")
}

/// Whether a line, blanks at its sides left out, is a `§` behind any number of backslashes.
fn looks_like_separator(line: &str) -> bool {
    line.trim().trim_start_matches('\\') == "§"
}

fn escape(line: &str) -> String {
    if !looks_like_separator(line) {
        return line.to_owned();
    }
    let indent = line.len() - line.trim_start().len();
    let (before, after) = line.split_at(indent);
    format!("{before}\\{after}")
}

fn unescape(line: &str) -> String {
    if !looks_like_separator(line) {
        return line.to_owned();
    }
    line.replacen('\\', "", 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_trailing_blank_and_a_decomposed_form_make_no_difference() {
        assert_eq!(
            canonical("Pre\u{301}fers metric units \r\n"),
            canonical("Préfers metric units")
        );
        assert_eq!(canonical("a\rb\r\nc"), "a\nb\nc");
    }

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

    /// `M-2`, D-08.
    #[test]
    fn entries_that_contain_a_separator_line_survive_export_and_import() {
        let entries = [
            "Release steps:\n§\ntag last",
            "Contract § 12 applies",
            "§\nfirst line is a sign",
            "  \\§ \n\\\\§",
        ]
        .map(canonical);
        let text = export(entries.iter().map(String::as_str));
        assert_eq!(import(&text), entries);
        assert_eq!(export(import(&text).iter().map(String::as_str)), text);
    }

    #[test]
    fn a_file_that_was_edited_by_hand_is_still_read() {
        let text = "\u{feff}first\r\n\r\n § \r\n\r\nsecond\r\nline\r\n§\r\n\r\n§\r\nmy own paragraph\r\n";
        assert_eq!(import(text), ["first", "second\nline", "my own paragraph"]);
    }

    proptest! {
        #[test]
        fn any_entries_round_trip(entries in prop::collection::vec("[ a§\\\\\n\r\t\u{301}]{0,12}", 0..6)) {
            let entries: Vec<String> =
                entries.iter().map(|entry| canonical(entry)).filter(|entry| !entry.is_empty()).collect();
            let text = export(entries.iter().map(String::as_str));
            prop_assert_eq!(import(&text), entries);
        }

        #[test]
        fn the_kept_form_is_stable(text in ".{0,60}") {
            let once = canonical(&text);
            prop_assert_eq!(canonical(&once), once);
        }
    }
}
