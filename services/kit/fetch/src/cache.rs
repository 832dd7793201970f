//! Answers remembered by their ETag: the next time the host is asked whether they still hold, which is cheap for both.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use crate::{Answer, Fetch, FetchError, Request};

#[derive(Debug)]
struct Kept {
    answer: Answer,
    used: u64,
}

#[derive(Debug, Default)]
struct Memory {
    kept: HashMap<String, Kept>,
    bytes: u64,
    turn: u64,
}

/// A fetcher with a memory of bounded size. What was asked with a token may be kept, since one fetcher serves one set of
/// tokens.
#[derive(Debug)]
pub struct Cached<F> {
    inner: F,
    remembered: Mutex<Memory>,
    limit: u64,
}

impl<F: Fetch> Cached<F> {
    /// Remembers answers of up to `limit` bytes together.
    pub fn new(inner: F, limit: u64) -> Self {
        Self {
            inner,
            remembered: Mutex::default(),
            limit,
        }
    }

    fn known(&self, key: &str) -> Option<Answer> {
        let mut memory = self.remembered.lock().unwrap_or_else(PoisonError::into_inner);
        memory.turn += 1;
        let turn = memory.turn;
        let kept = memory.kept.get_mut(key)?;
        kept.used = turn;
        Some(kept.answer.clone())
    }

    fn keep(&self, key: String, answer: &Answer) {
        let size = answer.body.len() as u64;
        if size > self.limit / 4 {
            return;
        }
        let mut memory = self.remembered.lock().unwrap_or_else(PoisonError::into_inner);
        memory.turn += 1;
        let kept = Kept {
            answer: answer.clone(),
            used: memory.turn,
        };
        if let Some(old) = memory.kept.insert(key, kept) {
            memory.bytes -= old.answer.body.len() as u64;
        }
        memory.bytes += size;
        while memory.bytes > self.limit {
            let oldest = memory
                .kept
                .iter()
                .min_by_key(|(_, kept)| kept.used)
                .map(|(key, _)| key.clone());
            let Some(gone) = oldest.and_then(|key| memory.kept.remove(&key)) else {
                break;
            };
            memory.bytes -= gone.answer.body.len() as u64;
        }
    }
}

#[async_trait::async_trait]
impl<F: Fetch> Fetch for Cached<F> {
    async fn fetch(&self, mut request: Request) -> Result<Answer, FetchError> {
        if request.json.is_some() || request.etag.is_some() {
            return self.inner.fetch(request).await;
        }
        let key = format!("{} {}", request.url, request.accept.unwrap_or_default());
        let known = self.known(&key);
        request.etag = known.as_ref().and_then(|answer| answer.etag.clone());
        let answer = self.inner.fetch(request).await?;
        match known {
            Some(known) if answer.is_unchanged() => Ok(known),
            _ => {
                if answer.is_success() && answer.etag.is_some() {
                    self.keep(key, &answer);
                }
                Ok(answer)
            }
        }
    }
}
