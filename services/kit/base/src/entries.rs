//! How entries of a memory travel as one text, and the form in which the text of an entry is kept (`M-1`, `M-2`).
//!
//! An entry is kept in Unicode normal form C with `\n` line ends and without surrounding blanks, so that two spellings
//! of the same text are one entry (`M-4`). Nothing else is changed. It stands here since those who bring entries in or
//! take them out share it with the service that keeps them.

use unicode_normalization::UnicodeNormalization as _;

/// What stands between two entries.
pub const SEPARATOR: &str = "\n§\n";

/// What some editors put at the head of a file. Anywhere else it is a character like others.
const BYTE_ORDER_MARK: char = '\u{feff}';

/// The kept form of a text.
pub fn canonical(text: &str) -> String {
    let unified = text.replace("\r\n", "\n").replace('\r', "\n");
    unified.nfc().collect::<String>().trim().to_owned()
}

/// Entries as one text, joined by [`SEPARATOR`]. A line of an entry that could be taken for a separator gets a
/// backslash in front, so that [`import`] gives back exactly these entries.
pub fn export<'a>(entries: impl IntoIterator<Item = &'a str>) -> String {
    let text = entries
        .into_iter()
        .map(|entry| map_lines(entry, escape))
        .collect::<Vec<_>>()
        .join(SEPARATOR);
    if text.starts_with(BYTE_ORDER_MARK) {
        // The first one is taken for the file's.
        return format!("{BYTE_ORDER_MARK}{text}");
    }
    text
}

/// The entries of an exported text, in kept form. Accepts what people do to such a file by hand: other line ends, blank
/// lines around a separator, blanks at its sides, a paragraph of their own at the end.
pub fn import(text: &str) -> Vec<String> {
    split(text.strip_prefix(BYTE_ORDER_MARK).unwrap_or(text))
}

/// [`import`] for what stands inside a file, where nothing is a byte order mark.
pub fn split(text: &str) -> Vec<String> {
    let text = text.replace("\r\n", "\n").replace('\r', "\n");
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

    /// D-11: the mark of a file is none of its entries', and an entry's is none of the file's.
    #[test]
    fn a_byte_order_mark_is_the_files_only_at_its_head() {
        assert_eq!(import("\u{feff}a\n§\n\u{feff}b"), ["a", "\u{feff}b"]);
        for entries in [["\u{feff}a", "b"], ["a", "\u{feff}"], ["\u{feff}", "\u{feff}\u{feff}b"]] {
            assert_eq!(import(&export(entries)), entries);
        }
    }

    #[test]
    fn a_trailing_blank_and_a_decomposed_form_make_no_difference() {
        assert_eq!(
            canonical("Pre\u{301}fers metric units \r\n"),
            canonical("Préfers metric units")
        );
        assert_eq!(canonical("a\rb\r\nc"), "a\nb\nc");
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
        fn any_entries_round_trip(entries in prop::collection::vec("[ a§\\\\\n\r\t\u{301}\u{feff}]{0,12}", 0..6)) {
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
