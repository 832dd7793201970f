//! What every match of a rule holds, piece by piece and in order: words, each so far behind the one before. Where a match can
//! begin follows from where the words of all rules stand, which one pass over a text finds, by counting alone. What is left to
//! try is little, also in a text in which something begins everywhere.

use std::collections::BTreeMap;
use std::ops::{Range, RangeInclusive};

use aho_corasick::automaton::Automaton as _;
use aho_corasick::nfa::contiguous::NFA;
use regex_syntax::hir::literal::Extractor;
use regex_syntax::hir::{Hir, HirKind};

/// How many letters of a word are looked for; of a Chinese one, half as many.
const LETTERS: usize = 4;
/// Signs that tell something alone; other signs, and letters, are everywhere.
const SIGNS: &[u8] = b"<>$@|";
/// How many places of one set there is room for at first.
const USUAL: usize = 32;
/// Most words that may stand for one piece; what more say is said by the other pieces.
const MOST_WORDS: usize = 64;

/// One way in which a rule can match: its pieces, in order.
#[derive(Debug, Clone)]
pub(super) struct Branch<W> {
    pub(super) pieces: Vec<Piece<W>>,
}

/// One of several words that must stand there.
#[derive(Debug, Clone)]
pub(super) struct Piece<W> {
    /// How far behind the beginning of the piece before, or of the match, it begins, in bytes.
    pub(super) after: RangeInclusive<usize>,
    pub(super) words: W,
}

/// The words themselves.
pub(super) type Spelled = Vec<Vec<u8>>;

impl Branch<Spelled> {
    /// The ways in which `pattern` can match.
    pub(super) fn all(pattern: &Hir) -> Vec<Self> {
        match pattern.kind() {
            HirKind::Alternation(ways) => ways.iter().flat_map(Self::all).collect(),
            HirKind::Capture(group) => Self::all(&group.sub),
            _ => vec![Self::of(pattern)],
        }
    }

    fn of(way: &Hir) -> Self {
        let parts = flat(way);
        let mut pieces = Vec::new();
        let (mut nearest, mut farthest) = (0_usize, 0_usize);
        for (at, part) in parts.iter().enumerate() {
            let rest = parts.get(at..).unwrap_or_default();
            // What stands in the words of the piece before, or need not be there, tells nothing more.
            let is_news = pieces.is_empty() || (farthest >= LETTERS && part.properties().minimum_len() != Some(0));
            if is_news && let Some(words) = words(rest) {
                let after = nearest..=farthest;
                pieces.push(Piece { after, words });
                (nearest, farthest) = (0, 0);
            }
            let length = part.properties();
            nearest = nearest.saturating_add(length.minimum_len().unwrap_or(0));
            farthest = farthest.saturating_add(length.maximum_len().unwrap_or(usize::MAX));
        }
        Self { pieces }
    }
}

/// What follows each other in a pattern.
fn flat(pattern: &Hir) -> Vec<Hir> {
    match pattern.kind() {
        HirKind::Concat(parts) => parts.iter().flat_map(flat).collect(),
        HirKind::Capture(group) => flat(&group.sub),
        _ => vec![pattern.clone()],
    }
}

/// With one of which what follows here begins; `None` if that can be too much to tell anything.
fn words(parts: &[Hir]) -> Option<Spelled> {
    let words = Extractor::new()
        .limit_total(1_000)
        .extract(&Hir::concat(parts.to_vec()));
    let words = words.literals()?.iter().map(|word| shortened(word.as_bytes()).to_vec());
    let mut words: Spelled = words.collect();
    words.sort_unstable();
    words.dedup();
    let rare = |word: &Vec<u8>| word.len() > 1 || word.iter().all(|sign| SIGNS.contains(sign));
    (words.len() <= MOST_WORDS && words.iter().all(rare)).then_some(words)
}

/// The first letters of a word.
fn shortened(word: &[u8]) -> &[u8] {
    let ascii = word.get(..LETTERS).is_some_and(<[u8]>::is_ascii);
    word.get(..if ascii { LETTERS } else { 2 * 3 }).unwrap_or(word)
}

/// Which of the sets of words, by its number.
pub(super) type Set = usize;

/// The sets of words of all pieces, and what finds them: an automaton that is small rather than quick, since what is read next
/// to it would leave the processor's caches for a large one.
pub(super) struct Pieces {
    automaton: NFA,
    /// For each word the sets that hold it.
    sets_of: Vec<Vec<Set>>,
    sets: usize,
}

/// Where the words of each set stand, by their beginnings, in order.
pub(super) struct Places(Vec<Vec<usize>>);

impl Pieces {
    /// Numbers the sets of all rules; equal ones are one.
    #[expect(
        clippy::expect_used,
        reason = "the words are constants, and a test builds the engine"
    )]
    pub(super) fn of(rules: Vec<Vec<Branch<Spelled>>>) -> (Self, Vec<Vec<Branch<Set>>>) {
        let mut sets: BTreeMap<Spelled, Set> = BTreeMap::new();
        let mut number = |piece: Piece<Spelled>| {
            let next = sets.len();
            let words = *sets.entry(piece.words).or_insert(next);
            let after = piece.after;
            Piece { after, words }
        };
        let mut numbered = |branch: Branch<Spelled>| Branch {
            pieces: branch.pieces.into_iter().map(&mut number).collect(),
        };
        let rules = rules
            .into_iter()
            .map(|branches| branches.into_iter().map(&mut numbered).collect())
            .collect();
        let mut sets_of: BTreeMap<&[u8], Vec<Set>> = BTreeMap::new();
        for (words, set) in &sets {
            for word in words {
                sets_of.entry(word).or_default().push(*set);
            }
        }
        let pieces = Self {
            automaton: NFA::new(sets_of.keys()).expect("a valid set of words"),
            sets_of: sets_of.values().cloned().collect(),
            sets: sets.len(),
        };
        (pieces, rules)
    }

    /// Where the words of the sets that `branches` name stand in `text`.
    pub(super) fn places<'b>(&self, text: &str, branches: impl Iterator<Item = &'b Branch<Set>>) -> Places {
        let mut wanted = vec![false; self.sets];
        for piece in branches.flat_map(|branch| &branch.pieces) {
            if let Some(wanted) = wanted.get_mut(piece.words) {
                *wanted = true;
            }
        }
        let mut places: Vec<Vec<usize>> = wanted.iter().map(|_| Vec::with_capacity(USUAL)).collect();
        super::each_hit(&self.automaton, text, |word, end| {
            let start = end - self.automaton.pattern_len(word);
            for set in self.sets_of.get(word.as_usize()).into_iter().flatten() {
                if wanted.get(*set) == Some(&true)
                    && let Some(places) = places.get_mut(*set)
                {
                    put(places, start);
                }
            }
        });
        Places(places)
    }
}

/// Puts a place where it belongs, which is at the end or a little before it, since hits come by their ends.
fn put(places: &mut Vec<usize>, start: usize) {
    match places.last() {
        Some(last) if *last >= start => {
            let after = places.iter().rposition(|place| *place < start).map_or(0, |at| at + 1);
            if places.get(after) != Some(&start) {
                places.insert(after, start);
            }
        }
        _ => places.push(start),
    }
}

impl Places {
    fn of(&self, set: Set) -> &[usize] {
        self.0.get(set).map_or(&[], Vec::as_slice)
    }
}

impl Branch<Set> {
    /// Adds to `starts` where in `within` a match can begin, judging by where the words stand.
    ///
    /// From one beginning to the next, the first and the last place at which a piece can stand only move on, so that no place is
    /// looked at twice.
    pub(super) fn starts(&self, places: &Places, within: &[Range<usize>], starts: &mut Vec<usize>) {
        let Some((first, others)) = self.pieces.split_first() else {
            return;
        };
        let mut others: Vec<Follower<'_>> = others
            .iter()
            .map(|piece| Follower {
                after: &piece.after,
                places: places.of(piece.words),
                from: 0,
                to: 0,
            })
            .collect();
        if others.iter().any(|piece| piece.places.is_empty()) {
            return;
        }
        let mut within = within.iter().peekable();
        for place in places.of(first.words) {
            while within.next_if(|stretch| stretch.end <= *place).is_some() {}
            if within.peek().is_none_or(|stretch| *place < stretch.start) {
                continue;
            }
            let last = others
                .iter_mut()
                .try_fold(*place..=*place, |before, piece| piece.behind(&before));
            if last.is_some() {
                let earliest = place.saturating_sub(*first.after.end());
                starts.extend(earliest..=place.saturating_sub(*first.after.start()));
            }
        }
    }
}

/// A piece that follows another, and how far its places were looked through.
struct Follower<'p> {
    after: &'p RangeInclusive<usize>,
    places: &'p [usize],
    from: usize,
    to: usize,
}

impl Follower<'_> {
    /// Between which places it stands if the one before stands somewhere in `before`.
    fn behind(&mut self, before: &RangeInclusive<usize>) -> Option<RangeInclusive<usize>> {
        let nearest = before.start().saturating_add(*self.after.start());
        let farthest = before.end().saturating_add(*self.after.end());
        while *self.places.get(self.from)? < nearest {
            self.from += 1;
        }
        self.to = self.to.max(self.from);
        while self.places.get(self.to).is_some_and(|place| *place <= farthest) {
            self.to += 1;
        }
        let possible = self.places.get(self.from..self.to)?;
        Some(*possible.first()?..=*possible.last()?)
    }
}
