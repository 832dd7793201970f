//! How strongly a message matches each term of a query: BM25 part by part, as an auxiliary function of FTS5.
//!
//! SQLite's own `bm25` gives the sum only. With the parts a ranking can tell that two messages next to each other hold
//! different words of a question. Besides, the constants are ours: long messages are not punished as hard.
#![expect(unsafe_code, reason = "FTS5 takes its functions through a C interface only")]

use std::ffi::{CStr, c_int, c_void};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr;

use libsqlite3_sys as ffi;

/// Name of the function in SQL: `steward_strengths(message_index, n)`, where the first `n` terms of the query count.
const NAME: &CStr = c"steward_strengths";

/// How fast further occurrences of a term stop to count.
const SATURATION: f64 = 0.9;
/// How much longer messages count less.
const LENGTH: f64 = 0.4;
/// Weights of the columns: what was said, tool text (`Q-7`), and the day, which a question that names one is about.
const WEIGHTS: [f64; 3] = [1.0, 0.4, 1.5];
/// What a term that is nearly everywhere is still worth.
const LEAST_IDF: f64 = 1e-3;
/// How far behind a term the next one of the question may stand to be taken for its continuation.
const NEXT: c_int = 3;
/// What that is worth, of the weaker one of the two.
const TOGETHER: f64 = 0.3;

/// Matches of a term that are counted. How many there are of a more frequent one is estimated from how soon that many were
/// found, so that a count takes the same time however large the index is.
const COUNTED: i64 = 4_096;

/// Bytes before the parts: the sum, written so that better ones come first.
pub(crate) const KEY_BYTES: usize = 8;

/// What is the same for every row of a query.
struct Query {
    idf: Vec<f64>,
    average_length: f64,
    /// Reused from row to row, as are the others below.
    frequencies: Vec<f64>,
    /// Columns and places of a term and of the one before it.
    met: [Vec<(c_int, c_int)>; 2],
    /// Whether the next term stands close behind each but the last.
    continued: Vec<bool>,
    answer: Vec<u8>,
}

/// The parts in an answer of the function: one for each term, and one for each two that follow one another in the question.
pub(crate) fn parts(answer: &[u8]) -> Vec<f32> {
    let (parts, _) = answer.get(KEY_BYTES..).unwrap_or_default().as_chunks::<4>();
    parts.iter().map(|bytes| f32::from_le_bytes(*bytes)).collect()
}

/// Makes the function known to FTS5.
///
/// # Safety
/// `api` is FTS5's own table of functions of a live connection that no other thread uses during the call.
pub(super) unsafe fn register(api: *mut ffi::fts5_api) -> Result<(), &'static str> {
    // SAFETY: as the caller promises.
    let create = unsafe { api.as_ref() }.and_then(|table| table.xCreateFunction);
    let create = create.ok_or("this SQLite has no FTS5 functions")?;
    // SAFETY: FTS5 copies the name; the function lives as long as the program and needs no context.
    match unsafe { create(api, NAME.as_ptr(), ptr::null_mut(), Some(strengths), None) } {
        ffi::SQLITE_OK => Ok(()),
        _ => Err("FTS5 refused the function"),
    }
}

unsafe extern "C" fn strengths(
    api: *const ffi::Fts5ExtensionApi,
    row: *mut ffi::Fts5Context,
    answer: *mut ffi::sqlite3_context,
    count: c_int,
    arguments: *mut *mut ffi::sqlite3_value,
) {
    // A panic must not cross into C.
    let done = catch_unwind(AssertUnwindSafe(|| {
        // SAFETY: FTS5 passes its own table of functions and the row that is being looked at.
        let api = unsafe { api.as_ref() }.ok_or(ffi::SQLITE_MISUSE)?;
        let terms = if count == 1 {
            // SAFETY: FTS5 passes as many values as it says.
            unsafe { ffi::sqlite3_value_int(*arguments) }
        } else {
            c_int::MAX
        };
        // SAFETY: as above.
        unsafe { of_row(api, row, answer, terms) }
    }));
    let code = match done {
        Ok(Ok(())) => return,
        Ok(Err(code)) => code,
        Err(_) => ffi::SQLITE_INTERNAL,
    };
    // SAFETY: `answer` is the context that FTS5 passed for this very call.
    unsafe { ffi::sqlite3_result_error_code(answer, code) };
}

/// # Safety
/// `api`, `row` and `answer` are those that FTS5 passed for this very call.
unsafe fn of_row(
    api: &ffi::Fts5ExtensionApi,
    row: *mut ffi::Fts5Context,
    answer: *mut ffi::sqlite3_context,
    terms: c_int,
) -> Result<(), c_int> {
    // SAFETY: as the caller promises; every pointer that is passed outlives its call.
    unsafe {
        let query = query_of(api, row, terms)?.as_mut().ok_or(ffi::SQLITE_NOMEM)?;
        let mut length = 0;
        check(api.xColumnSize.ok_or(ffi::SQLITE_MISUSE)?(row, -1, &raw mut length))?;
        let first = api.xPhraseFirst.ok_or(ffi::SQLITE_MISUSE)?;
        let next = api.xPhraseNext.ok_or(ffi::SQLITE_MISUSE)?;
        query.begin_row();
        for term in 0..query.idf.len() {
            let phrase = c_int::try_from(term).map_err(|_| ffi::SQLITE_TOOBIG)?;
            let mut places = ffi::Fts5PhraseIter {
                a: ptr::null(),
                b: ptr::null(),
            };
            let (mut column, mut place) = (0, 0);
            check(first(row, phrase, &raw mut places, &raw mut column, &raw mut place))?;
            while column >= 0 {
                query.meet(term, column, place);
                next(row, &raw mut places, &raw mut column, &raw mut place);
            }
            query.end_term(term);
        }
        query.write(f64::from(length));
        let bytes = &query.answer;
        let size = c_int::try_from(bytes.len()).map_err(|_| ffi::SQLITE_TOOBIG)?;
        ffi::sqlite3_result_blob(answer, bytes.as_ptr().cast(), size, ffi::SQLITE_TRANSIENT());
    }
    Ok(())
}

impl Query {
    fn new(idf: Vec<f64>, average_length: f64) -> Self {
        let (terms, pairs) = (idf.len(), idf.len().saturating_sub(1));
        Self {
            frequencies: vec![0.0; terms],
            met: [Vec::new(), Vec::new()],
            continued: vec![false; pairs],
            answer: Vec::with_capacity(KEY_BYTES + 4 * (terms + pairs)),
            idf,
            average_length,
        }
    }

    fn begin_row(&mut self) {
        self.frequencies.fill(0.0);
        self.continued.fill(false);
        self.met.iter_mut().for_each(Vec::clear);
    }

    /// A term stands in a column. Terms are told of one after the other, the places of each in ascending order.
    fn meet(&mut self, term: usize, column: c_int, place: c_int) {
        let weight = usize::try_from(column).ok().and_then(|column| WEIGHTS.get(column));
        if let (Some(weight), Some(frequency)) = (weight, self.frequencies.get_mut(term)) {
            *frequency += weight;
            if self.idf.len() > 1 {
                self.met[1].push((column, place));
            }
        }
    }

    /// All places of a term were told.
    fn end_term(&mut self, term: usize) {
        let [before, now] = &mut self.met;
        if let Some(continued) = term.checked_sub(1).and_then(|before| self.continued.get_mut(before)) {
            *continued = follow(before, now);
        }
        std::mem::swap(before, now);
        now.clear();
    }

    /// The sum as a key, then each part.
    fn write(&mut self, length: f64) {
        let norm = SATURATION * (1.0 - LENGTH + LENGTH * length / self.average_length);
        self.answer.clear();
        self.answer.extend_from_slice(&[0; KEY_BYTES]);
        let mut sum = 0.0;
        for (frequency, idf) in self.frequencies.iter().zip(&self.idf) {
            let part = idf * frequency * (SATURATION + 1.0) / (frequency + norm);
            sum += part;
            push(&mut self.answer, part);
        }
        for (continued, idf) in self.continued.iter().zip(self.idf.windows(2)) {
            let part = if *continued {
                TOGETHER * f64::min(idf[0], idf[1])
            } else {
                0.0
            };
            sum += part;
            push(&mut self.answer, part);
        }
        // Of numbers that are not negative, the bits are in the order of the numbers.
        let key = u64::MAX - f64::max(sum, 0.0).to_bits();
        self.answer[..KEY_BYTES].copy_from_slice(&key.to_be_bytes());
    }
}

#[expect(clippy::cast_possible_truncation, reason = "a part of a score needs no more digits")]
fn push(answer: &mut Vec<u8>, part: f64) {
    answer.extend_from_slice(&(part as f32).to_le_bytes());
}

/// Whether one of the `second` places comes close behind one of the `first`. Both are in ascending order.
fn follow(first: &[(c_int, c_int)], second: &[(c_int, c_int)]) -> bool {
    let mut from = 0;
    first.iter().any(|&(column, place)| {
        while second.get(from).is_some_and(|next| *next <= (column, place)) {
            from += 1;
        }
        second
            .get(from)
            .is_some_and(|next| next.0 == column && next.1 - place <= NEXT)
    })
}

/// What was found out at the first row of the query, which is kept with it.
///
/// # Safety
/// `api` and `row` are those that FTS5 passed for this very call. What is returned is used by this call only.
unsafe fn query_of(api: &ffi::Fts5ExtensionApi, row: *mut ffi::Fts5Context, terms: c_int) -> Result<*mut Query, c_int> {
    // SAFETY: as the caller promises. What is kept with the query is only ever a `Query` of ours, freed by `forget`.
    unsafe {
        let kept = api.xGetAuxdata.ok_or(ffi::SQLITE_MISUSE)?(row, 0).cast::<Query>();
        if !kept.is_null() {
            return Ok(kept);
        }
        let made = Box::into_raw(Box::new(begin(api, row, terms)?));
        // FTS5 frees what it cannot keep.
        check(api.xSetAuxdata.ok_or(ffi::SQLITE_MISUSE)?(
            row,
            made.cast(),
            Some(forget),
        ))?;
        Ok(made)
    }
}

unsafe extern "C" fn forget(query: *mut c_void) {
    // SAFETY: made by `Box::into_raw` in `query_of`, and FTS5 frees it once.
    drop(unsafe { Box::from_raw(query.cast::<Query>()) });
}

/// # Safety
/// As for [`query_of`].
unsafe fn begin(api: &ffi::Fts5ExtensionApi, row: *mut ffi::Fts5Context, terms: c_int) -> Result<Query, c_int> {
    // SAFETY: as the caller promises; the counters outlive the calls that write to them.
    unsafe {
        let (mut rows, mut tokens) = (0, 0);
        check(api.xRowCount.ok_or(ffi::SQLITE_MISUSE)?(row, &raw mut rows))?;
        check(api.xColumnTotalSize.ok_or(ffi::SQLITE_MISUSE)?(
            row,
            -1,
            &raw mut tokens,
        ))?;
        let phrases = api.xPhraseCount.ok_or(ffi::SQLITE_MISUSE)?(row).min(terms.max(1));
        let messages = as_float(rows).max(1.0);
        let mut idf = Vec::new();
        for phrase in 0..phrases {
            if phrases == 1 {
                // Nothing to weigh it against.
                idf.push(1.0);
                break;
            }
            let mut counter = Counter { matches: 0, last: 0 };
            let code = api.xQueryPhrase.ok_or(ffi::SQLITE_MISUSE)?(row, phrase, (&raw mut counter).cast(), Some(count));
            check(code)?;
            let with = counter.of(messages);
            idf.push(((messages - with + 0.5) / (with + 0.5)).ln_1p().max(LEAST_IDF));
        }
        Ok(Query::new(idf, (as_float(tokens) / messages).max(1.0)))
    }
}

/// Matches of a term from the beginning of the index.
struct Counter {
    matches: i64,
    /// Number of the last one's message.
    last: i64,
}

impl Counter {
    /// How many of `messages` hold the term. Numbers of messages have next to no gaps.
    fn of(&self, messages: f64) -> f64 {
        let counted = as_float(self.matches);
        if self.matches < COUNTED {
            return counted;
        }
        (counted * messages / as_float(self.last.max(1))).clamp(counted.min(messages), messages)
    }
}

unsafe extern "C" fn count(
    api: *const ffi::Fts5ExtensionApi,
    row: *mut ffi::Fts5Context,
    counter: *mut c_void,
) -> c_int {
    // SAFETY: the counter that `begin` passed, which outlives this call, and FTS5's own table of functions.
    let (Some(counter), Some(api)) = (unsafe { counter.cast::<Counter>().as_mut() }, unsafe { api.as_ref() }) else {
        return ffi::SQLITE_MISUSE;
    };
    counter.matches += 1;
    if counter.matches < COUNTED {
        return ffi::SQLITE_OK;
    }
    if let Some(number) = api.xRowid {
        // SAFETY: the row that FTS5 passed for this very call.
        counter.last = unsafe { number(row) };
    }
    // No failure: it ends the counting.
    ffi::SQLITE_DONE
}

fn check(code: c_int) -> Result<(), c_int> {
    if code == ffi::SQLITE_OK { Ok(()) } else { Err(code) }
}

#[expect(
    clippy::cast_precision_loss,
    reason = "counts far below what a float cannot tell apart"
)]
fn as_float(count: i64) -> f64 {
    count as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn better_ones_have_smaller_keys_and_parts_come_back() {
        let mut query = Query::new(vec![2.0, 1.0], 10.0);
        let mut of = |frequencies: [f64; 2], length: f64| {
            query.frequencies = frequencies.to_vec();
            query.write(length);
            query.answer.clone()
        };
        let (good, longer, none) = (of([2.0, 1.0], 10.0), of([2.0, 1.0], 40.0), of([0.0, 0.0], 10.0));
        assert!(good[..KEY_BYTES] < longer[..KEY_BYTES]);
        assert!(longer[..KEY_BYTES] < none[..KEY_BYTES]);
        assert_eq!(parts(&none), [0.0, 0.0, 0.0]);
        let of_good = parts(&good);
        assert!(of_good[0] > of_good[1] && of_good[1] > 0.0);
        assert_eq!(parts(b"short"), Vec::<f32>::new());
    }

    #[test]
    fn terms_that_follow_one_another_are_stronger_together() {
        let mut query = Query::new(vec![2.0, 1.0], 10.0);
        let mut of = |met: &[(usize, c_int, c_int)]| {
            query.begin_row();
            for term in 0..2 {
                for (_, column, place) in met.iter().filter(|(of, ..)| *of == term) {
                    query.meet(term, *column, *place);
                }
                query.end_term(term);
            }
            query.write(10.0);
            parts(&query.answer)
        };
        let (together, near) = (of(&[(0, 0, 4), (1, 0, 5)]), of(&[(0, 0, 4), (1, 0, 7)]));
        assert!(together[2] > 0.0 && together == near);
        for apart in [[(0, 0, 4), (1, 0, 8)], [(1, 0, 4), (0, 0, 5)], [(0, 0, 4), (1, 1, 5)]] {
            assert!(of(&apart)[2].abs() < f32::EPSILON, "{apart:?}");
        }
    }

    #[test]
    fn a_frequent_term_is_counted_in_part() {
        let few = Counter { matches: 7, last: 0 };
        assert!((few.of(100.0) - 7.0).abs() < 1e-9);
        let often = Counter {
            matches: COUNTED,
            last: 2 * COUNTED,
        };
        assert!((often.of(100_000.0) - 50_000.0).abs() < 1e-9);
        // With gaps between the numbers it is never more than there are.
        let everywhere = Counter {
            matches: COUNTED,
            last: COUNTED,
        };
        assert!((everywhere.of(5_000.0) - 5_000.0).abs() < 1e-9);
    }
}
