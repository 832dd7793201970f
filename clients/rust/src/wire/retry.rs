//! Repeating a call that found nobody. Only what the contract calls idempotent is repeated, only UNAVAILABLE is a
//! reason, and never beyond the call's deadline.

use std::time::Duration;

use bytes::Bytes;
use futures::StreamExt as _;
use http_body::Frame;
use http_body_util::{BodyExt as _, BodyStream, Full, StreamBody};
use rand::RngExt as _;
use steward_proto::methods::Idempotency;
use tokio::time::Instant;
use tonic::body::Body;
use tonic::{Code, Status};
use tonic_types::StatusExt as _;

use super::{WireRequest, WireResponse, timeout};
use crate::error::unanswered;

/// How often and how long after.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RetryPolicy {
    /// Calls in all; 1 never repeats.
    pub attempts: u32,
    /// Longest first wait; doubled for each further one, and each drawn at random below that.
    pub first_wait: Duration,
    /// Longest wait. A server that asks for more is not asked again: the caller gets its answer and may wait.
    pub longest_wait: Duration,
}

impl Default for RetryPolicy {
    fn default() -> Self {
        Self {
            attempts: 4,
            first_wait: Duration::from_millis(100),
            longest_wait: Duration::from_secs(5),
        }
    }
}

impl RetryPolicy {
    /// Never repeats.
    pub const fn never() -> Self {
        Self {
            attempts: 1,
            first_wait: Duration::ZERO,
            longest_wait: Duration::ZERO,
        }
    }

    fn wait(self, attempt: u32, asked: Option<Duration>) -> Duration {
        let window = self
            .first_wait
            .saturating_mul(2_u32.saturating_pow(attempt - 1))
            .min(self.longest_wait);
        let drawn = window.mul_f64(rand::rng().random::<f64>());
        asked
            .unwrap_or(Duration::ZERO)
            .saturating_add(drawn)
            .min(self.longest_wait)
    }
}

/// Requests above this are sent once: they would have to be held in memory for a repetition.
const LARGEST_REPEATED: usize = 1 << 20;

/// Sends, and repeats while policy, method and deadline permit.
pub(super) async fn send<F, Fut>(
    policy: RetryPolicy,
    deadline: Option<Instant>,
    mut request: WireRequest,
    mut once: F,
) -> Result<WireResponse, Status>
where
    F: FnMut(WireRequest) -> Fut,
    Fut: Future<Output = Result<WireResponse, Status>>,
{
    timeout::write(request.headers_mut(), deadline);
    if policy.attempts <= 1 || !may_repeat(request.uri().path()) {
        return within(deadline, once(request)).await;
    }
    let (parts, body) = request.into_parts();
    let bytes = match collect(body, LARGEST_REPEATED).await? {
        Collected::All(bytes) => bytes,
        Collected::TooLarge(body) => return within(deadline, once(http::Request::from_parts(parts, body))).await,
    };
    let mut attempt = 1;
    loop {
        let mut request = http::Request::from_parts(parts.clone(), Body::new(Full::<Bytes>::new(bytes.clone())));
        timeout::write(request.headers_mut(), deadline);
        let outcome = within(deadline, once(request)).await;
        let asked = match answer(&outcome) {
            Answer::Final => return outcome,
            Answer::Unavailable { asked } => asked,
        };
        let wait = policy.wait(attempt, asked);
        let patient = asked.is_none_or(|asked| asked <= policy.longest_wait);
        let in_time = patient && deadline.is_none_or(|deadline| Instant::now() + wait < deadline);
        if attempt >= policy.attempts || !in_time {
            return outcome;
        }
        tracing::debug!(attempt, ?wait, path = %parts.uri.path(), "unavailable, asking again");
        tokio::time::sleep(wait).await;
        attempt += 1;
    }
}

enum Collected {
    All(Bytes),
    /// Longer than was asked for; what was read is still in it.
    TooLarge(Body),
}

async fn collect(mut body: Body, most: usize) -> Result<Collected, Status> {
    let mut read: Vec<Bytes> = Vec::new();
    let mut length = 0;
    while length <= most {
        match body.frame().await {
            None => return Ok(Collected::All(read.concat().into())),
            Some(frame) => {
                // A request has no trailers in gRPC.
                if let Ok(data) = frame?.into_data() {
                    length += data.len();
                    read.push(data);
                }
            }
        }
    }
    let read = read.into_iter().map(|data| Ok(Frame::data(data)));
    let whole = futures::stream::iter(read).chain(BodyStream::new(body));
    Ok(Collected::TooLarge(Body::new(StreamBody::new(whole))))
}

/// Whether the contract says that doing it twice is doing it once.
fn may_repeat(path: &str) -> bool {
    steward_proto::methods::find(path).is_some_and(|method| match method.idempotency {
        Idempotency::NoSideEffects | Idempotency::Idempotent => true,
        Idempotency::Unknown => false,
    })
}

async fn within<Fut>(deadline: Option<Instant>, call: Fut) -> Result<WireResponse, Status>
where
    Fut: Future<Output = Result<WireResponse, Status>>,
{
    let Some(deadline) = deadline else { return call.await };
    let too_late = || {
        unanswered(
            Code::DeadlineExceeded,
            "the deadline passed",
            "no answer before the deadline",
        )
    };
    // Nobody waits any more: what is not sent cannot be half done.
    if deadline <= Instant::now() {
        return Err(too_late());
    }
    tokio::time::timeout_at(deadline, call)
        .await
        .unwrap_or_else(|_| Err(too_late()))
}

enum Answer {
    /// The caller gets it.
    Final,
    /// Nobody there, or a server that sends the caller away, perhaps for a time.
    Unavailable { asked: Option<Duration> },
}

fn answer(outcome: &Result<WireResponse, Status>) -> Answer {
    let status = match outcome {
        Err(status) => Some(status.clone()),
        // An answer without any message carries its status in the headers.
        Ok(response) => Status::from_header_map(response.headers()),
    };
    match status {
        Some(status) if status.code() == Code::Unavailable => Answer::Unavailable {
            asked: status.get_details_retry_info().and_then(|info| info.retry_delay),
        },
        _ => Answer::Final,
    }
}
