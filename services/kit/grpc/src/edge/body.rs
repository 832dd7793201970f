//! The rest of a call after its first answer: a stream is polled inside the call's span and surroundings, ends at the
//! call's deadline, and a panic in it becomes INTERNAL.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use http::HeaderMap;
use http_body::{Frame, SizeHint};
use steward_client::ambient;
use tokio::time::Sleep;
use tonic::body::Body;
use tonic::{Code, Status};

use super::error::EdgeError;
use super::{Call, record};
use crate::status::status;

pub(super) struct EdgeBody {
    /// `None` once the stream has ended.
    inner: Option<Body>,
    call: Call,
    deadline: Option<Pin<Box<Sleep>>>,
}

type Polled = Poll<Option<Result<Frame<Bytes>, Status>>>;

impl EdgeBody {
    pub(super) fn new(inner: Body, call: Call) -> Self {
        let deadline = call.ambient.deadline.map(|at| Box::pin(tokio::time::sleep_until(at)));
        Self {
            inner: Some(inner),
            call,
            deadline,
        }
    }

    fn fail(&mut self, error: &EdgeError) -> Polled {
        // Dropping the stream is how its producer learns that nobody listens any more.
        self.inner = None;
        let status = status_of(error, &self.call);
        let mut trailers = HeaderMap::new();
        // A status of ours always fits into headers; without one the caller sees a broken stream, which is also true.
        let _ = status.add_header(&mut trailers);
        record(&self.call.span, status.code());
        Poll::Ready(Some(Ok(Frame::trailers(trailers))))
    }

    fn past_deadline(&mut self, context: &mut Context<'_>) -> bool {
        self.deadline
            .as_mut()
            .is_some_and(|deadline| deadline.as_mut().poll(context).is_ready())
    }
}

fn status_of(error: &EdgeError, call: &Call) -> Status {
    ambient::sync_scope(call.ambient.clone(), || status(error, &call.domain))
}

impl http_body::Body for EdgeBody {
    type Data = Bytes;
    type Error = Status;

    fn poll_frame(self: Pin<&mut Self>, context: &mut Context<'_>) -> Polled {
        let this = self.get_mut();
        let Some(inner) = this.inner.as_mut() else {
            return Poll::Ready(None);
        };
        let span = this.call.span.clone();
        let _entered = span.enter();
        let poll = || catch_unwind(AssertUnwindSafe(|| Pin::new(inner).poll_frame(context)));
        let polled = match ambient::sync_scope(this.call.ambient.clone(), poll) {
            Ok(polled) => polled,
            Err(panic) => return this.fail(&EdgeError::panicked(&*panic)),
        };
        match polled {
            Poll::Pending if this.past_deadline(context) => this.fail(&EdgeError::DeadlineExceeded),
            Poll::Ready(None) => {
                this.inner = None;
                Poll::Ready(None)
            }
            other => {
                if let Poll::Ready(Some(Ok(frame))) = &other
                    && let Some(trailers) = frame.trailers_ref()
                {
                    let code = Status::from_header_map(trailers).map_or(Code::Unknown, |status| status.code());
                    record(&this.call.span, code);
                }
                other
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        self.inner.as_ref().is_none_or(Body::is_end_stream)
    }

    fn size_hint(&self) -> SizeHint {
        self.inner.as_ref().map(http_body::Body::size_hint).unwrap_or_default()
    }
}
