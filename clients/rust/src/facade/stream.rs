//! Answers that come one by one.

use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll};

use futures::Stream;
use tonic::Streaming;

use crate::error::ClientError;

/// A stream of answers. It ends after the last one or with one error; dropping it tells the server to stop.
pub struct ResponseStream<T> {
    inner: Streaming<T>,
}

impl<T> ResponseStream<T> {
    pub(super) fn new(inner: Streaming<T>) -> Self {
        Self { inner }
    }

    /// The next answer; `None` after the last one.
    pub async fn message(&mut self) -> Result<Option<T>, ClientError> {
        Ok(self.inner.message().await?)
    }
}

impl<T> Stream for ResponseStream<T> {
    type Item = Result<T, ClientError>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        Pin::new(&mut self.inner)
            .poll_next(context)
            .map(|next| next.map(|item| item.map_err(ClientError::from)))
    }
}

impl<T> fmt::Debug for ResponseStream<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ResponseStream").finish_non_exhaustive()
    }
}
