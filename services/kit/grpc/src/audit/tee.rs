//! The beginning of a request as it passes by. It is looked at once, for resource names, and never kept.

use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};

use bytes::Bytes;
use http_body::{Frame, SizeHint};
use tonic::Status;
use tonic::body::Body;

/// Bytes of a request that are looked at. Names come first in messages.
const MOST: usize = 4096;

/// What has passed so far.
#[derive(Debug, Default)]
pub(crate) struct Seen(Mutex<Vec<Bytes>>);

impl Seen {
    fn add(&self, data: &Bytes) {
        let mut parts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let room = MOST.saturating_sub(parts.iter().map(Bytes::len).sum());
        if room > 0 {
            // Shares the memory of the request, which the handler has as well.
            parts.push(data.slice(..data.len().min(room)));
        }
    }

    /// Takes it out.
    pub(crate) fn take(&self) -> Vec<u8> {
        let parts = std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner));
        parts.concat()
    }
}

struct Tee {
    inner: Body,
    seen: Arc<Seen>,
}

/// The same body, and what will have been seen of it.
pub(crate) fn watch(body: Body) -> (Body, Arc<Seen>) {
    let seen = Arc::new(Seen::default());
    let tee = Tee {
        inner: body,
        seen: Arc::clone(&seen),
    };
    (Body::new(tee), seen)
}

impl http_body::Body for Tee {
    type Data = Bytes;
    type Error = Status;

    fn poll_frame(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Status>>> {
        let polled = Pin::new(&mut self.inner).poll_frame(context);
        if let Poll::Ready(Some(Ok(frame))) = &polled
            && let Some(data) = frame.data_ref()
        {
            self.seen.add(data);
        }
        polled
    }

    fn is_end_stream(&self) -> bool {
        self.inner.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.inner.size_hint()
    }
}
