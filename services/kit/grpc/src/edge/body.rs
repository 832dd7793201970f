//! The rest of a call after its first answer: a stream is polled inside the call's span and surroundings, ends at the
//! call's deadline, or when the process stops and the stream only shows something, and a panic in it becomes INTERNAL.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use http::HeaderMap;
use http_body::{Frame, SizeHint};
use steward_client::ambient;
use tokio::time::{Instant, Sleep};
use tokio_util::sync::{CancellationToken, WaitForCancellationFutureOwned};
use tonic::body::Body;
use tonic::{Code, Status};

use super::call::Call;
use super::error::EdgeError;
use crate::status::status;

pub(super) struct EdgeBody {
    /// `None` once the stream has ended.
    inner: Option<Body>,
    call: Call,
    deadline: Option<Pin<Box<Sleep>>>,
    /// Of a stream that must not hold up the end of the process.
    stopping: Option<Pin<Box<WaitForCancellationFutureOwned>>>,
}

type Polled = Poll<Option<Result<Frame<Bytes>, Status>>>;

impl EdgeBody {
    pub(super) fn new(inner: Body, call: Call, stopping: Option<CancellationToken>) -> Self {
        let deadline = call.ambient.deadline.map(|at| Box::pin(tokio::time::sleep_until(at)));
        Self {
            inner: Some(inner),
            call,
            deadline,
            stopping: stopping.map(|token| Box::pin(token.cancelled_owned())),
        }
    }

    fn fail(&mut self, error: &EdgeError) -> Polled {
        // Dropping the stream is how its producer learns that nobody listens any more.
        self.inner = None;
        let status = status_of(error, &self.call);
        let mut trailers = HeaderMap::new();
        // A status of ours always fits into headers; without one the caller sees a broken stream, which is also true.
        let _ = status.add_header(&mut trailers);
        self.call.end_with(&status);
        Poll::Ready(Some(Ok(Frame::trailers(trailers))))
    }

    /// Looks at the clock as well: in a task that always has something to do, the timer does not get its turn.
    fn past_deadline(&mut self, context: &mut Context<'_>) -> bool {
        self.deadline
            .as_mut()
            .is_some_and(|deadline| deadline.deadline() <= Instant::now() || deadline.as_mut().poll(context).is_ready())
    }

    fn must_stop(&mut self, context: &mut Context<'_>) -> bool {
        self.stopping
            .as_mut()
            .is_some_and(|stopping| stopping.as_mut().poll(context).is_ready())
    }
}

fn status_of(error: &EdgeError, call: &Call) -> Status {
    ambient::sync_scope(call.ambient.clone(), || status(error, &call.domain()))
}

impl http_body::Body for EdgeBody {
    type Data = Bytes;
    type Error = Status;

    fn poll_frame(self: Pin<&mut Self>, context: &mut Context<'_>) -> Polled {
        let this = self.get_mut();
        let span = this.call.span.clone();
        let _entered = span.enter();
        if this.inner.is_none() {
            return Poll::Ready(None);
        }
        // Before the stream itself: one that always has something ready ends as well.
        if this.past_deadline(context) {
            return this.fail(&EdgeError::DeadlineExceeded);
        }
        let Some(inner) = this.inner.as_mut() else {
            return Poll::Ready(None);
        };
        let poll = || catch_unwind(AssertUnwindSafe(|| Pin::new(inner).poll_frame(context)));
        let polled = match ambient::sync_scope(this.call.ambient.clone(), poll) {
            Ok(polled) => polled,
            Err(panic) => return this.fail(&EdgeError::panicked(&*panic)),
        };
        match &polled {
            Poll::Pending if this.must_stop(context) => {
                let service = this.call.service;
                return this.fail(&EdgeError::Stopping { service });
            }
            Poll::Ready(None) => {
                this.inner = None;
                // Without trailers nobody said how it went.
                this.call.end(Code::Unknown, None);
            }
            Poll::Ready(Some(Ok(frame))) => {
                if let Some(trailers) = frame.trailers_ref() {
                    match Status::from_header_map(trailers) {
                        Some(status) => this.call.end_with(&status),
                        None => this.call.end(Code::Unknown, None),
                    }
                }
            }
            Poll::Ready(Some(Err(status))) => this.call.end_with(status),
            Poll::Pending => {}
        }
        polled
    }

    fn is_end_stream(&self) -> bool {
        self.inner.as_ref().is_none_or(Body::is_end_stream)
    }

    fn size_hint(&self) -> SizeHint {
        self.inner.as_ref().map(http_body::Body::size_hint).unwrap_or_default()
    }
}
