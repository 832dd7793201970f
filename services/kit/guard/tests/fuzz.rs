//! Long runs with broken input: the scrubber cut at random against the whole, and the scan. `cargo test -p steward-guard --test
//! fuzz -- --ignored --test-threads 1` runs ten minutes each; `steward_testkit::fuzz` says how long a run lasts and how one is
//! repeated.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]

use steward_guard::fence::{Scrubber, block, scrub};
use steward_guard::{Scope, check, secrets};
use steward_testkit::fuzz::{Source, long_run};

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

fn text(source: &mut Source) -> String {
    let mut text = String::new();
    for _ in 0..source.below(40) {
        let piece = *source.one_of(&PIECES);
        match source.below(8) {
            1 => text.extend(piece.chars().rev()),
            2 => text.push_str(&piece.repeat(source.below(30))),
            3 => text.push(char::from_u32(u32::try_from(source.below(0x3000)).unwrap()).unwrap_or(' ')),
            4 => text.extend(piece.chars().take(source.below(20))),
            _ => text.push_str(piece),
        }
    }
    text
}

/// A text and where it is cut: each number is the least length of a piece, and they come around again.
#[derive(Debug)]
struct Stream {
    text: String,
    cuts: Vec<usize>,
}

impl Stream {
    fn of(text: String, source: &mut Source) -> Self {
        let cuts = (0..=source.below(20)).map(|_| 1 + source.below(24)).collect();
        Self { text, cuts }
    }

    /// The text through a scrubber.
    fn through(&self, scrubber: &mut Scrubber) -> String {
        let (mut shown, mut rest) = (String::new(), self.text.as_str());
        for cut in self.cuts.iter().cycle() {
            if rest.is_empty() {
                break;
            }
            let (piece, more) = rest.split_at(rest.ceil_char_boundary(*cut).min(rest.len()));
            shown.push_str(&scrubber.push(piece));
            rest = more;
        }
        shown + &scrubber.finish()
    }
}

/// Two streams, one after the other: anything, and what a model says that repeats a block of ours on lines of their own.
fn two_streams(source: &mut Source) -> (Stream, Stream) {
    let anything = text(source);
    let recalled = format!("SECRET {}", text(source).replace("SECRET", ""));
    let fenced = block([recalled.as_str()]).expect("there is something in it");
    let spoken = format!("Hello\n{fenced}\nBye");
    (Stream::of(anything, source), Stream::of(spoken, source))
}

/// `M-17`, D-35.
#[test]
#[ignore = "runs for ten minutes"]
fn a_stream_shows_what_the_whole_shows_and_no_block_of_ours_however_it_is_cut() {
    long_run(two_streams, |(anything, spoken)| {
        let mut scrubber = Scrubber::new();
        assert_eq!(anything.through(&mut scrubber), scrub(&anything.text));
        // The same scrubber serves the next stream as if it were new. A block on lines of its own is never shown.
        assert_eq!(spoken.through(&mut scrubber), "Hello\n\nBye");
    });
}

/// `M-9`.
#[test]
#[ignore = "runs for ten minutes"]
fn every_finding_points_into_its_text() {
    long_run(text, |text| {
        for finding in check(text, Scope::Strict) {
            let found = text.get(finding.start..finding.end);
            assert!(found.is_some_and(|found| !found.is_empty()), "{finding:?} in {text:?}");
        }
        for finding in secrets::find(text) {
            assert!(text.get(finding.start..finding.end).is_some(), "{text:?}");
        }
    });
}
