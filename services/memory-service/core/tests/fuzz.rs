//! Long runs with broken files of entries (`M-2`, D-11, D-47). `cargo test -p steward-memory-core --test fuzz --release --
//! --ignored` runs ten minutes; `STEWARD_FUZZ_SECONDS` sets another time. A failure prints the seed that repeats it.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test fails by panicking"
)]

use std::time::{Duration, Instant};

use steward_base::entries;
use steward_memory_core::transfer::{Piece, read};

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

struct Source(u64);

impl Source {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    fn below(&mut self, limit: usize) -> usize {
        usize::try_from(self.next() % (limit.max(1) as u64)).unwrap_or(0)
    }

    fn file(&mut self) -> Vec<u8> {
        let mut bytes = Vec::new();
        for _ in 0..self.below(40) {
            let piece = PIECES[self.below(PIECES.len())];
            match self.below(6) {
                0 => bytes.extend(piece.iter().take(self.below(8))),
                1 => bytes.push(self.next().to_le_bytes()[0]),
                2 => bytes.extend(piece.repeat(self.below(6))),
                _ => bytes.extend(piece),
            }
        }
        bytes
    }
}

fn run(work: impl Fn(&mut Source)) {
    let seconds = std::env::var_os("STEWARD_FUZZ_SECONDS").and_then(|text| text.to_str()?.parse().ok());
    let end = Instant::now() + Duration::from_secs(seconds.unwrap_or(600));
    let mut seed = 0x9e37_79b9_7f4a_7c15_u64;
    let mut runs = 0_u64;
    while Instant::now() < end {
        seed = seed.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(1);
        let result = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| work(&mut Source(seed | 1))));
        assert!(result.is_ok(), "seed {seed:#x} after {runs} runs");
        runs += 1;
    }
    assert!(runs > 0);
}

/// Bytes that stand in no text: what is no text must be kept, and nothing else needs to be byte for byte.
fn strange(bytes: &[u8]) -> usize {
    bytes.iter().filter(|byte| matches!(byte, 0xf8..=0xff)).count()
}

#[test]
#[ignore = "runs for ten minutes"]
fn a_broken_file_loses_nothing_that_is_no_text_and_its_entries_come_back_as_they_are() {
    run(|source| {
        let file = source.file();
        let pieces = read(&file);
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
        assert_eq!(kept, strange(&file), "{file:?}");
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
            entries::import(&String::from_utf8_lossy(&file)).len(),
            entries::import(&entries::export(
                entries::import(&String::from_utf8_lossy(&file))
                    .iter()
                    .map(String::as_str)
            ))
            .len()
        );
    });
}
