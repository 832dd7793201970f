//! Long runs with broken files of entries (`M-2`, D-11, D-47). `cargo test -p steward-memory-core --test fuzz -- --ignored` runs
//! ten minutes; `steward_testkit::fuzz` says how long a run lasts and how one is repeated.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test fails by panicking"
)]

use steward_base::entries;
use steward_memory_core::transfer::{Piece, read};
use steward_testkit::fuzz::{Bytes, Source, long_run};

/// Pieces of which a file is made.
const PIECES: [&[u8]; 22] = [
    "§".as_bytes(),
    "\n§\n".as_bytes(),
    "\r\n§\r\n".as_bytes(),
    "\r§\r".as_bytes(),
    " § ".as_bytes(),
    "\\§".as_bytes(),
    "\\\\§\n".as_bytes(),
    "\n\n§\n\n§\n".as_bytes(),
    "\u{feff}".as_bytes(),
    "\u{2028}§\u{2028}".as_bytes(),
    "\u{a0}§\u{3000}".as_bytes(),
    "an entry\nof two lines\n".as_bytes(),
    "記憶".as_bytes(),
    "e\u{301}".as_bytes(),
    "\u{1f600}".as_bytes(),
    b"caf\xe9",
    b"\xc2",
    b"\xa7\n",
    b"\xff\xfe",
    b"\x00",
    b"\n",
    b"\r",
];

fn file(source: &mut Source) -> Bytes {
    let mut bytes = Vec::new();
    for _ in 0..source.below(40) {
        let piece = *source.one_of(&PIECES);
        match source.below(6) {
            1 => bytes.push(source.byte()),
            2 => bytes.extend(piece.repeat(source.below(6))),
            3 => bytes.extend(piece.iter().take(source.below(8))),
            _ => bytes.extend(piece),
        }
    }
    Bytes(bytes)
}

/// Bytes that stand in no text: what is no text must be kept, and nothing else needs to be byte for byte.
fn strange(bytes: &[u8]) -> usize {
    bytes.iter().filter(|byte| matches!(byte, 0xf8..=0xff)).count()
}

#[test]
#[ignore = "runs for ten minutes"]
fn a_broken_file_loses_nothing_that_is_no_text_and_its_entries_come_back_as_they_are() {
    long_run(file, |file| {
        let pieces = read(file);
        let mut kept = 0;
        let mut texts = Vec::new();
        for piece in &pieces {
            match piece {
                Piece::Damaged(bytes) => {
                    assert!(std::str::from_utf8(bytes).is_err(), "{bytes:?} is text");
                    kept += strange(bytes);
                }
                Piece::Text(text) => {
                    assert!(!text.is_empty() && *text == entries::canonical(text), "{text:?}");
                    texts.push(text.clone());
                }
            }
        }
        assert_eq!(kept, strange(file), "{file:?}");
        let again = read(entries::export(texts.iter().map(String::as_str)).as_bytes());
        let again: Vec<_> = again
            .into_iter()
            .map(|piece| match piece {
                Piece::Text(text) => text,
                Piece::Damaged(bytes) => panic!("an export is text: {bytes:?}"),
            })
            .collect();
        assert_eq!(again, texts, "{file:?}");
        assert_eq!(
            entries::import(&String::from_utf8_lossy(file)).len(),
            entries::import(&entries::export(
                entries::import(&String::from_utf8_lossy(file))
                    .iter()
                    .map(String::as_str)
            ))
            .len()
        );
    });
}
