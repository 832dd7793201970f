//! Entries as one file, in the form with `§` between them (`M-2`), on the way in: whatever was done to the file, each
//! entry stands for itself, and one that cannot be read is kept as it is and hides no other (D-11, D-47).

use steward_base::Timestamp;
use steward_base::entries;
use steward_base::names::EntryId;

/// Most entries in one file.
pub const MOST_ENTRIES: usize = 1_000;
/// Largest file, in bytes.
pub const MOST_BYTES: usize = 1_048_576;

/// An entry of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Piece {
    /// Its text, in kept form.
    Text(String),
    /// Bytes that are no text.
    Damaged(Vec<u8>),
}

/// What was brought in and could not be read: kept byte for byte until a person decides.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Held {
    /// Its id in the store.
    pub id: EntryId,
    /// The bytes as they came.
    pub bytes: Vec<u8>,
    /// When they came.
    pub at: Timestamp,
}

impl Held {
    /// The bytes as far as they can be read, with `�` for the rest.
    pub fn preview(&self) -> String {
        crate::text::preview(&String::from_utf8_lossy(&self.bytes))
    }
}

/// The entries of a file.
pub fn read(bytes: &[u8]) -> Vec<Piece> {
    let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
    let mut pieces = Vec::new();
    let mut begin = 0;
    let mut at = 0;
    for line in bytes.split_inclusive(|byte| *byte == b'\n') {
        let end = at + line.len();
        if is_separator(line) {
            take(bytes.get(begin..at).unwrap_or_default(), &mut pieces);
            begin = end;
        }
        at = end;
    }
    take(bytes.get(begin..).unwrap_or_default(), &mut pieces);
    pieces
}

fn is_separator(line: &[u8]) -> bool {
    std::str::from_utf8(line).is_ok_and(|line| line.trim() == "§")
}

fn take(piece: &[u8], pieces: &mut Vec<Piece>) {
    match std::str::from_utf8(piece) {
        // A lone carriage return ends a line as well, so there may be separators left.
        Ok(text) => pieces.extend(entries::split(text).into_iter().map(Piece::Text)),
        Err(_) => pieces.push(Piece::Damaged(piece.to_vec())),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn text(text: &str) -> Piece {
        Piece::Text(text.to_owned())
    }

    /// D-11.
    #[test]
    fn one_entry_with_a_foreign_byte_hides_no_other() {
        let file = b"first\n\xc2\xa7\ncaf\xe9 closes\n\xc2\xa7\nthird\n";
        let pieces = read(file);
        assert_eq!(
            pieces,
            [
                text("first"),
                Piece::Damaged(b"caf\xe9 closes\n".to_vec()),
                text("third")
            ]
        );
        let held = Held {
            id: EntryId::parse("h1").unwrap(),
            bytes: b"caf\xe9 closes\n".to_vec(),
            at: Timestamp::default(),
        };
        assert_eq!(held.preview(), "caf\u{fffd} closes");
    }

    /// D-11, D-47.
    #[test]
    fn a_file_that_was_edited_by_hand_is_still_read() {
        let file = "\u{feff}first\r\n\r\n § \r\n\r\nsecond\r\nline\r\n§\r\n\r\n§\r\nmy own paragraph\r\n";
        assert_eq!(
            read(file.as_bytes()),
            [text("first"), text("second\nline"), text("my own paragraph")]
        );
        assert_eq!(read("a\r§\rb".as_bytes()), [text("a"), text("b")]);
        assert_eq!(read(b""), []);
    }

    proptest! {
        #[test]
        fn what_was_exported_comes_back(contents in prop::collection::vec("[ a§\\\\\n\r\t记\u{feff}]{0,12}", 0..6)) {
            let contents: Vec<String> =
                contents.iter().map(|one| entries::canonical(one)).filter(|one| !one.is_empty()).collect();
            let file = entries::export(contents.iter().map(String::as_str));
            prop_assert_eq!(read(file.as_bytes()), contents.into_iter().map(Piece::Text).collect::<Vec<_>>());
        }

        #[test]
        fn any_bytes_are_read_and_none_that_are_no_text_are_lost(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let strange = |bytes: &[u8]| bytes.iter().filter(|byte| matches!(byte, 0xf8..=0xff)).count();
            let kept: usize = read(&bytes).iter().map(|piece| match piece {
                Piece::Damaged(bytes) => strange(bytes),
                Piece::Text(_) => 0,
            }).sum();
            prop_assert_eq!(kept, strange(&bytes));
        }
    }
}
