//! Gives FTS5 the tokenizer of `steward_recall_core`: a C interface around one safe function.
//!
//! This module and the one below it have the only `unsafe` code of the product. They are kept small: they register, hand
//! text over, and keep panics from crossing into C. What a word is, is decided elsewhere.
#![expect(unsafe_code, reason = "FTS5 takes a tokenizer through a C interface only")]

pub(crate) mod strengths;

use std::cell::RefCell;
use std::error::Error;
use std::ffi::{CStr, c_char, c_int, c_void};
use std::ops::ControlFlow;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::{ptr, slice};

use libsqlite3_sys as ffi;
use sqlx::SqliteConnection;
use steward_recall_core::tokenizer::{Purpose, Scratch, Token, tokenize};
use steward_store::BoxFuture;

/// As `steward_recall_core::tokenizer::NAME`, for C.
const NAME: &CStr = c"steward";

thread_local! {
    /// One set of buffers per thread; SQLite works on one thread per connection.
    static SCRATCH: RefCell<Scratch> = RefCell::default();
}

/// [`register_tokenizer`] for the connection on which the schema is migrated.
pub(crate) fn register_to_migrate(connection: &mut SqliteConnection) -> BoxFuture<'_, Result<(), sqlx::Error>> {
    Box::pin(async move {
        let mut handle = connection.lock_handle().await?;
        // SAFETY: the pointer is that of a live connection, and while the guard lives no other thread uses it.
        unsafe { register_on(handle.as_raw_handle().as_ptr()) }
            .map_err(|problem| sqlx::Error::Protocol(problem.to_owned()))
    })
}

/// Registers the tokenizer `steward`, and the function that ranks, on a new connection, before anything else uses it. Without
/// them the index of a team's file cannot be read.
pub fn register_tokenizer(connection: &rusqlite::Connection) -> Result<(), Box<dyn Error + Send + Sync>> {
    // SAFETY: the pointer is that of a live connection, which no other thread can use while this one borrows it.
    unsafe { register_on(connection.handle()) }.map_err(Into::into)
}

/// # Safety
/// `database` is a live connection that no other thread uses during the call.
unsafe fn register_on(database: *mut ffi::sqlite3) -> Result<(), &'static str> {
    let mut api: *mut ffi::fts5_api = ptr::null_mut();
    let mut statement = ptr::null_mut();
    // SAFETY: the documented way to get at the FTS5 interface. The statement is finalised in every case, which is
    // harmless for a null pointer, and `api` outlives the step that writes to it.
    unsafe {
        let sql = c"SELECT fts5(?1)".as_ptr();
        if ffi::sqlite3_prepare_v2(database, sql, -1, &raw mut statement, ptr::null_mut()) != ffi::SQLITE_OK {
            return Err("this SQLite has no FTS5");
        }
        ffi::sqlite3_bind_pointer(statement, 1, (&raw mut api).cast(), c"fts5_api_ptr".as_ptr(), None);
        ffi::sqlite3_step(statement);
        ffi::sqlite3_finalize(statement);
    }
    // SAFETY: a non-null `api` points to FTS5's own table of functions, which lives as long as the connection.
    let api_table = unsafe { api.as_ref() }.ok_or("this SQLite has no FTS5")?;
    let create = api_table
        .xCreateTokenizer_v2
        .filter(|_| api_table.iVersion >= 3)
        .ok_or("SQLite 3.47 or later is needed")?;
    let mut tokenizer = ffi::fts5_tokenizer_v2 {
        iVersion: 2,
        xCreate: Some(create_tokenizer),
        xDelete: Some(delete_tokenizer),
        xTokenize: Some(tokenize_text),
    };
    // SAFETY: FTS5 copies the table of functions; the name is NUL-terminated and static.
    if unsafe { create(api, NAME.as_ptr(), ptr::null_mut(), &raw mut tokenizer, None) } != ffi::SQLITE_OK {
        return Err("FTS5 refused the tokenizer");
    }
    // SAFETY: as the caller promises.
    unsafe { strengths::register(api) }
}

/// The tokenizer has no state of its own; FTS5 wants a pointer that is not null.
unsafe extern "C" fn create_tokenizer(
    _context: *mut c_void,
    _arguments: *mut *const c_char,
    count: c_int,
    out: *mut *mut ffi::Fts5Tokenizer,
) -> c_int {
    if count != 0 {
        return ffi::SQLITE_ERROR;
    }
    // SAFETY: FTS5 passes a place to write the pointer to. It is never read through.
    unsafe { *out = ptr::dangling_mut::<u8>().cast() };
    ffi::SQLITE_OK
}

unsafe extern "C" fn delete_tokenizer(_tokenizer: *mut ffi::Fts5Tokenizer) {}

type OnToken = unsafe extern "C" fn(*mut c_void, c_int, *const c_char, c_int, c_int, c_int) -> c_int;

unsafe extern "C" fn tokenize_text(
    _tokenizer: *mut ffi::Fts5Tokenizer,
    context: *mut c_void,
    flags: c_int,
    text: *const c_char,
    length: c_int,
    _locale: *const c_char,
    _locale_length: c_int,
    on_token: Option<OnToken>,
) -> c_int {
    let Some(on_token) = on_token else {
        return ffi::SQLITE_MISUSE;
    };
    let Ok(length) = usize::try_from(length) else {
        return ffi::SQLITE_OK;
    };
    if text.is_null() || length == 0 {
        return ffi::SQLITE_OK;
    }
    // SAFETY: FTS5 passes `length` readable bytes that do not change during the call.
    let bytes = unsafe { slice::from_raw_parts(text.cast::<u8>(), length) };
    let purpose = if flags & ffi::FTS5_TOKENIZE_QUERY == 0 {
        Purpose::Index
    } else {
        Purpose::Query
    };
    // A panic must not cross into C.
    catch_unwind(AssertUnwindSafe(|| walk(bytes, purpose, context, on_token))).unwrap_or(ffi::SQLITE_INTERNAL)
}

/// Hands every token to FTS5. Text that is not UTF-8, such as a blob, is tokenised in its valid stretches.
fn walk(bytes: &[u8], purpose: Purpose, context: *mut c_void, on_token: OnToken) -> c_int {
    let mut outcome = ffi::SQLITE_OK;
    let mut offset = 0;
    let mut walk_with = |scratch: &mut Scratch| {
        for chunk in bytes.utf8_chunks() {
            let flow = tokenize(chunk.valid(), purpose, scratch, &mut |token: Token<'_>| {
                outcome = emit(token, offset, context, on_token);
                if outcome == ffi::SQLITE_OK {
                    ControlFlow::Continue(())
                } else {
                    ControlFlow::Break(())
                }
            });
            if flow.is_break() {
                return;
            }
            offset += chunk.valid().len() + chunk.invalid().len();
        }
    };
    SCRATCH.with(|shared| match shared.try_borrow_mut() {
        Ok(mut scratch) => walk_with(&mut scratch),
        // FTS5 does not call a tokenizer from within a tokenizer; if it ever does, that is no reason to panic.
        Err(_) => walk_with(&mut Scratch::default()),
    });
    outcome
}

fn emit(token: Token<'_>, offset: usize, context: *mut c_void, on_token: OnToken) -> c_int {
    let flag = if token.colocated { ffi::FTS5_TOKEN_COLOCATED } else { 0 };
    let (Ok(size), Ok(start), Ok(end)) = (
        c_int::try_from(token.text.len()),
        c_int::try_from(token.start + offset),
        c_int::try_from(token.end + offset),
    ) else {
        return ffi::SQLITE_TOOBIG;
    };
    // SAFETY: the function and its context are those that FTS5 passed for this very call.
    unsafe { on_token(context, flag, token.text.as_ptr().cast(), size, start, end) }
}
