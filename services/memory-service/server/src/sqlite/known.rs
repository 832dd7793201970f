//! Books as the last write left them, so that the next one need not read them again.
//!
//! A database is open in one process, and all writes go through one connection, one after the other; each leaves its book
//! here before it is committed. A commit may still fail, so a book counts only if the revision that stands in the database
//! is its own: whoever writes after a failure finds another one, or writes a book of their own over it.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use steward_memory_core::{Book, StoreName};

/// Most books that are remembered.
const MOST: usize = 1_024;

#[derive(Debug, Clone, Default)]
pub(super) struct KnownBooks(Arc<Mutex<HashMap<StoreName, Book>>>);

impl KnownBooks {
    /// Takes the book out if it has `revision`.
    pub(super) fn take(&self, store: &StoreName, revision: u64) -> Option<Book> {
        self.lock().remove(store).filter(|book| book.revision == revision)
    }

    pub(super) fn put(&self, store: &StoreName, book: Book) {
        let mut books = self.lock();
        if books.len() >= MOST {
            books.clear();
        }
        books.insert(store.clone(), book);
    }

    pub(super) fn forget_all(&self) {
        self.lock().clear();
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<StoreName, Book>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
