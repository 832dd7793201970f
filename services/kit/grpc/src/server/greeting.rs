//! A connection that has to say something.
//!
//! Until a client has sent HTTP/2's opening bytes, the server below knows of no call that could be finished, and yet waits
//! for the connection when it stops. Probes and port scanners connect and are silent. So silence has an end: after a
//! while, and at once when the process stops.

use std::future::Future as _;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::Sleep;
use tokio_util::sync::{CancellationToken, WaitForCancellationFutureOwned};
use tonic::transport::server::Connected;

/// Bytes with which every HTTP/2 client begins.
const OPENING: usize = 24;

/// How long a client may take for them.
const PATIENCE: Duration = Duration::from_secs(10);

#[derive(Debug)]
pub(super) struct Greeting<C> {
    connection: C,
    /// `None` once the client has opened.
    waiting: Option<Waiting>,
}

#[derive(Debug)]
struct Waiting {
    missing: usize,
    too_late: Pin<Box<Sleep>>,
    stopping: Pin<Box<WaitForCancellationFutureOwned>>,
}

impl<C> Greeting<C> {
    pub(super) fn new(connection: C, stopping: &CancellationToken) -> Self {
        Self {
            connection,
            waiting: Some(Waiting {
                missing: OPENING,
                too_late: Box::pin(tokio::time::sleep(PATIENCE)),
                stopping: Box::pin(stopping.clone().cancelled_owned()),
            }),
        }
    }
}

impl<C: Connected> Connected for Greeting<C> {
    type ConnectInfo = C::ConnectInfo;

    fn connect_info(&self) -> Self::ConnectInfo {
        self.connection.connect_info()
    }
}

impl<C: AsyncRead + Unpin> AsyncRead for Greeting<C> {
    fn poll_read(self: Pin<&mut Self>, context: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        let before = buffer.filled().len();
        let polled = Pin::new(&mut this.connection).poll_read(context, buffer);
        let Some(waiting) = &mut this.waiting else {
            return polled;
        };
        if polled.is_ready() {
            waiting.missing = waiting.missing.saturating_sub(buffer.filled().len() - before);
            if waiting.missing == 0 {
                this.waiting = None;
            }
            return polled;
        }
        let over =
            waiting.stopping.as_mut().poll(context).is_ready() || waiting.too_late.as_mut().poll(context).is_ready();
        if over {
            return Poll::Ready(Err(io::Error::new(io::ErrorKind::TimedOut, "the client said nothing")));
        }
        Poll::Pending
    }
}

impl<C: AsyncWrite + Unpin> AsyncWrite for Greeting<C> {
    fn poll_write(self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.get_mut().connection).poll_write(context, bytes)
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().connection).poll_flush(context)
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().connection).poll_shutdown(context)
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.get_mut().connection).poll_write_vectored(context, slices)
    }

    fn is_write_vectored(&self) -> bool {
        self.connection.is_write_vectored()
    }
}
