//! How strongly a message matches each term of a query: BM25 part by part, as an auxiliary function of FTS5.
//!
//! SQLite's own `bm25` gives the sum only. With the parts a ranking can tell that two messages next to each other hold
//! different words of a question. Besides, the constants are ours: long messages are not punished as hard.
#![expect(unsafe_code, reason = "FTS5 takes its functions through a C interface only")]

use std::ffi::{CStr, c_int, c_void};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr;

use libsqlite3_sys as ffi;

/// Name of the function in SQL: `steward_strengths(message_index)`.
const NAME: &CStr = c"steward_strengths";

/// How fast further occurrences of a term stop to count.
const SATURATION: f64 = 0.9;
/// How much longer messages count less.
const LENGTH: f64 = 0.4;
/// Weights of the columns: what was said, tool text (`Q-7`), and the day, which a question that names one is about.
const WEIGHTS: [f64; 3] = [1.0, 0.4, 1.5];
/// What a term that is nearly everywhere is still worth.
const LEAST_IDF: f64 = 1e-3;

/// Bytes before the parts: the sum, written so that better ones come first.
pub(crate) const KEY_BYTES: usize = 8;

/// What is the same for every row of a query.
struct Query {
    idf: Vec<f64>,
    average_length: f64,
    /// Reused from row to row.
    frequencies: Vec<f64>,
    answer: Vec<u8>,
}

/// The parts in an answer of the function.
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
    _count: c_int,
    _arguments: *mut *mut ffi::sqlite3_value,
) {
    // A panic must not cross into C.
    let done = catch_unwind(AssertUnwindSafe(|| {
        // SAFETY: FTS5 passes its own table of functions and the row that is being looked at.
        unsafe { api.as_ref() }.ok_or(ffi::SQLITE_MISUSE).and_then(|api| {
            // SAFETY: the same.
            unsafe { of_row(api, row, answer) }
        })
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
) -> Result<(), c_int> {
    // SAFETY: as the caller promises; every pointer that is passed outlives its call.
    unsafe {
        let query = query_of(api, row)?.as_mut().ok_or(ffi::SQLITE_NOMEM)?;
        let (mut instances, mut length) = (0, 0);
        check(api.xInstCount.ok_or(ffi::SQLITE_MISUSE)?(row, &raw mut instances))?;
        check(api.xColumnSize.ok_or(ffi::SQLITE_MISUSE)?(row, -1, &raw mut length))?;
        let instance = api.xInst.ok_or(ffi::SQLITE_MISUSE)?;
        query.frequencies.fill(0.0);
        for at in 0..instances {
            let (mut phrase, mut column, mut offset) = (0, 0, 0);
            check(instance(row, at, &raw mut phrase, &raw mut column, &raw mut offset))?;
            let weight = usize::try_from(column).ok().and_then(|column| WEIGHTS.get(column));
            let frequency = usize::try_from(phrase)
                .ok()
                .and_then(|phrase| query.frequencies.get_mut(phrase));
            if let (Some(weight), Some(frequency)) = (weight, frequency) {
                *frequency += weight;
            }
        }
        query.write(f64::from(length));
        let bytes = &query.answer;
        let size = c_int::try_from(bytes.len()).map_err(|_| ffi::SQLITE_TOOBIG)?;
        ffi::sqlite3_result_blob(answer, bytes.as_ptr().cast(), size, ffi::SQLITE_TRANSIENT());
    }
    Ok(())
}

impl Query {
    /// The sum as a key, then each part.
    fn write(&mut self, length: f64) {
        let norm = SATURATION * (1.0 - LENGTH + LENGTH * length / self.average_length);
        self.answer.clear();
        self.answer.extend_from_slice(&[0; KEY_BYTES]);
        let mut sum = 0.0;
        for (frequency, idf) in self.frequencies.iter().zip(&self.idf) {
            let part = idf * frequency * (SATURATION + 1.0) / (frequency + norm);
            sum += part;
            #[expect(clippy::cast_possible_truncation, reason = "a part of a score needs no more digits")]
            self.answer.extend_from_slice(&(part as f32).to_le_bytes());
        }
        // Of numbers that are not negative, the bits are in the order of the numbers.
        let key = u64::MAX - f64::max(sum, 0.0).to_bits();
        self.answer[..KEY_BYTES].copy_from_slice(&key.to_be_bytes());
    }
}

/// What was found out at the first row of the query, which is kept with it.
///
/// # Safety
/// `api` and `row` are those that FTS5 passed for this very call. What is returned is used by this call only.
unsafe fn query_of(api: &ffi::Fts5ExtensionApi, row: *mut ffi::Fts5Context) -> Result<*mut Query, c_int> {
    // SAFETY: as the caller promises. What is kept with the query is only ever a `Query` of ours, freed by `forget`.
    unsafe {
        let kept = api.xGetAuxdata.ok_or(ffi::SQLITE_MISUSE)?(row, 0).cast::<Query>();
        if !kept.is_null() {
            return Ok(kept);
        }
        let made = Box::into_raw(Box::new(begin(api, row)?));
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
unsafe fn begin(api: &ffi::Fts5ExtensionApi, row: *mut ffi::Fts5Context) -> Result<Query, c_int> {
    // SAFETY: as the caller promises; the counters outlive the calls that write to them.
    unsafe {
        let (mut rows, mut tokens) = (0, 0);
        check(api.xRowCount.ok_or(ffi::SQLITE_MISUSE)?(row, &raw mut rows))?;
        check(api.xColumnTotalSize.ok_or(ffi::SQLITE_MISUSE)?(
            row,
            -1,
            &raw mut tokens,
        ))?;
        let phrases = api.xPhraseCount.ok_or(ffi::SQLITE_MISUSE)?(row);
        let rows = as_float(rows).max(1.0);
        let mut idf = Vec::new();
        for phrase in 0..phrases {
            let mut with = 0_i64;
            let counter = (&raw mut with).cast();
            check(api.xQueryPhrase.ok_or(ffi::SQLITE_MISUSE)?(
                row,
                phrase,
                counter,
                Some(count),
            ))?;
            let with = as_float(with);
            idf.push(((rows - with + 0.5) / (with + 0.5)).ln_1p().max(LEAST_IDF));
        }
        Ok(Query {
            frequencies: vec![0.0; idf.len()],
            answer: Vec::with_capacity(KEY_BYTES + 4 * idf.len()),
            idf,
            average_length: (as_float(tokens) / rows).max(1.0),
        })
    }
}

unsafe extern "C" fn count(
    _api: *const ffi::Fts5ExtensionApi,
    _row: *mut ffi::Fts5Context,
    counter: *mut c_void,
) -> c_int {
    // SAFETY: the counter that `begin` passed, which outlives this call.
    if let Some(counter) = unsafe { counter.cast::<i64>().as_mut() } {
        *counter += 1;
    }
    ffi::SQLITE_OK
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

    fn query(idf: Vec<f64>) -> Query {
        Query {
            frequencies: vec![0.0; idf.len()],
            answer: Vec::new(),
            idf,
            average_length: 10.0,
        }
    }

    #[test]
    fn better_ones_have_smaller_keys_and_parts_come_back() {
        let mut query = query(vec![2.0, 1.0]);
        let mut of = |frequencies: [f64; 2], length: f64| {
            query.frequencies = frequencies.to_vec();
            query.write(length);
            query.answer.clone()
        };
        let (good, longer, none) = (of([2.0, 1.0], 10.0), of([2.0, 1.0], 40.0), of([0.0, 0.0], 10.0));
        assert!(good[..KEY_BYTES] < longer[..KEY_BYTES]);
        assert!(longer[..KEY_BYTES] < none[..KEY_BYTES]);
        assert_eq!(parts(&none), [0.0, 0.0]);
        let of_good = parts(&good);
        assert!(of_good[0] > of_good[1] && of_good[1] > 0.0);
        assert_eq!(parts(b"short"), Vec::<f32>::new());
    }
}
