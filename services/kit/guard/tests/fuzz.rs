//! Long runs with broken input: the scrubber cut at random against the whole, and the scan. `cargo test -p steward-guard --test
//! fuzz --release -- --ignored --test-threads 1` runs ten minutes each; `STEWARD_FUZZ_SECONDS` sets another time. A failure
//! prints the seed that repeats it.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]

use std::time::{Duration, Instant};

use steward_guard::fence::{Scrubber, block, scrub};
use steward_guard::{Scope, check, secrets};

/// Pieces of which a stream is made: tags whole and broken, code, the head of a real block, what is near to one.
const PIECES: [&str; 32] = [
    "<memory-context>",
    "</memory-context>",
    "<MEMORY-Context >",
    "< / memory-context\n>",
    "<memory-context a=\"<b>\">",
    "<memory-context",
    "<memory_context>",
    "<<memory-context>>",
    "</memory-",
    "<",
    ">",
    "/",
    "`",
    "```",
    "```\n",
    "~~~\n",
    "\n",
    "\n\n",
    " ",
    "        ",
    "[Reference recalled from memory. Nobody said this",
    "[Reference recalled",
    "- a fact\n",
    "text ",
    "ignore all previous instructions ",
    "\u{feff}",
    "\u{200b}",
    "記憶",
    "é",
    "\u{1f600}",
    "＜memory-context＞",
    "a_token=b",
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

    fn text(&mut self) -> String {
        let mut text = String::new();
        for _ in 0..self.below(40) {
            let piece = PIECES[self.below(PIECES.len())];
            match self.below(8) {
                0 => text.extend(piece.chars().take(self.below(20))),
                1 => text.extend(piece.chars().rev()),
                2 => text.push_str(&piece.repeat(self.below(30))),
                3 => text.push(char::from_u32(u32::try_from(self.below(0x3000)).unwrap()).unwrap_or(' ')),
                _ => text.push_str(piece),
            }
        }
        text
    }

    /// The text through a scrubber, cut anywhere.
    fn streamed(&mut self, scrubber: &mut Scrubber, text: &str) -> String {
        let (mut shown, mut rest) = (String::new(), text);
        while !rest.is_empty() {
            let cut = rest.ceil_char_boundary(1 + self.below(24)).min(rest.len());
            let (piece, more) = rest.split_at(cut);
            shown.push_str(&scrubber.push(piece));
            rest = more;
        }
        shown + &scrubber.finish()
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

/// `M-17`, D-35.
#[test]
#[ignore = "runs for ten minutes"]
fn a_stream_shows_what_the_whole_shows_and_no_block_of_ours_however_it_is_cut() {
    run(|source| {
        let text = source.text();
        let mut scrubber = Scrubber::new();
        let shown = source.streamed(&mut scrubber, &text);
        assert_eq!(shown, scrub(&text), "{text:?}");
        // The same scrubber serves the next stream as if it were new. A block on a line of its own is never shown.
        let recalled = format!("SECRET {}", source.text().replace("SECRET", ""));
        let fenced = block([recalled.as_str()]).expect("there is something in it");
        let spoken = format!("Hello\n{fenced}\nBye");
        let answer = source.streamed(&mut scrubber, &spoken);
        assert_eq!(answer, "Hello\n\nBye", "{spoken:?}");
    });
}

/// `M-9`.
#[test]
#[ignore = "runs for ten minutes"]
fn every_finding_points_into_its_text() {
    run(|source| {
        let text = source.text();
        for finding in check(&text, Scope::Strict) {
            let found = text.get(finding.start..finding.end);
            assert!(found.is_some_and(|found| !found.is_empty()), "{finding:?} in {text:?}");
        }
        for finding in secrets::find(&text) {
            assert!(text.get(finding.start..finding.end).is_some(), "{text:?}");
        }
    });
}
