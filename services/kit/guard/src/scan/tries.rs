//! Where one rule is tried in one text, and what was tried before: a text that says the same again, as one does that is made to
//! keep us busy, is read once.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};
use std::ops::Range;

/// The beginnings of a rule, in order, and the stretches at which it did not match.
pub(super) struct Tries<'t> {
    starts: &'t [usize],
    prints: &'t Prints,
    /// By the print of a stretch, where it stood first.
    failed: HashMap<u64, Range<usize>, BuildHasherDefault<Printed>>,
    /// How many were tried, and how many were known.
    pub(super) tried: usize,
    pub(super) known: usize,
}

impl<'t> Tries<'t> {
    pub(super) fn new(starts: &'t [usize], prints: &'t Prints) -> Self {
        Self {
            starts,
            prints,
            failed: HashMap::default(),
            tried: 0,
            known: 0,
        }
    }

    /// The next beginning in `stretch`; those before it are past.
    pub(super) fn next(&mut self, stretch: &Range<usize>) -> Option<usize> {
        let past = self.starts.partition_point(|start| *start < stretch.start);
        let (start, rest) = self.starts.get(past..)?.split_first()?;
        if *start >= stretch.end {
            return None;
        }
        self.starts = rest;
        Some(*start)
    }

    /// Whether a stretch says what one said at which the rule did not match.
    pub(super) fn is_known(&mut self, text: &[u8], stretch: &Range<usize>) -> bool {
        let before = self.failed.get(&self.prints.of_stretch(stretch));
        // Two texts may have one print; only the same text is known.
        let known = before.is_some_and(|before| text.get(before.clone()) == text.get(stretch.clone()));
        self.known += usize::from(known);
        self.tried += usize::from(!known);
        known
    }

    pub(super) fn remember(&mut self, stretch: Range<usize>) {
        self.failed.insert(self.prints.of_stretch(&stretch), stretch);
    }
}

/// A print of every stretch of a text, from one pass over it.
pub(super) struct Prints {
    /// Of all that stands before a place.
    before: Vec<u64>,
    /// The weight of a byte so many places back, as far as any stretch reaches.
    weights: Vec<u64>,
}

const BASE: u64 = 0x9e37_79b9_7f4a_7c15;

impl Prints {
    pub(super) fn of(text: &[u8], longest: usize) -> Self {
        let add = |print: &mut u64, byte: &u8| {
            *print = print.wrapping_mul(BASE).wrapping_add(u64::from(*byte) + 1);
            Some(*print)
        };
        let heavier = |weight: &u64| Some(weight.wrapping_mul(BASE));
        Self {
            before: std::iter::once(0).chain(text.iter().scan(0, add)).collect(),
            weights: std::iter::successors(Some(1), heavier).take(longest + 1).collect(),
        }
    }

    /// A stretch no longer than was said.
    fn of_stretch(&self, stretch: &Range<usize>) -> u64 {
        let at = |index: usize| self.before.get(index).copied().unwrap_or(0);
        let weight = self.weights.get(stretch.len()).copied().unwrap_or(0);
        at(stretch.end).wrapping_sub(at(stretch.start).wrapping_mul(weight))
    }
}

/// A print is spread already; it needs no hashing of its own.
#[derive(Default)]
pub(super) struct Printed(u64);

impl Hasher for Printed {
    fn finish(&self) -> u64 {
        self.0 ^ (self.0 >> 32)
    }

    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = self.0.wrapping_mul(BASE).wrapping_add(u64::from(*byte));
        }
    }

    fn write_u64(&mut self, print: u64) {
        self.0 = print;
    }
}
