//! Another attempt for errors that heal, within limits, and only while nothing has been passed on: a person must not see
//! the beginning of an answer twice (`T-10`).

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use futures::StreamExt;
use steward_base::{Clock, Fault, Timestamp};

use crate::error::ModelError;
use crate::message::ModelRequest;
use crate::native::Continuation;
use crate::provider::{Delta, DeltaStream, Prepared, Provider};
use crate::render::Rendered;

/// How often and for how long.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RetryPolicy {
    /// Attempts in all, the first included.
    pub attempts: u32,
    /// Wait after the first failure; doubles with each further one.
    pub base: Duration,
    /// Longest wait that is chosen here; a provider's own `Retry-After` may be longer.
    pub longest: Duration,
    /// Limit on waits and attempts together. A wait that would pass it is not begun.
    pub total: Duration,
}

impl Default for RetryPolicy {
    fn default() -> Self {
        Self {
            attempts: 4,
            base: Duration::from_secs(1),
            longest: Duration::from_secs(20),
            total: Duration::from_mins(3),
        }
    }
}

impl RetryPolicy {
    /// How long to wait after failure number `attempt` (from 1); `spread` in 0..1 is the jitter. `None`: give up.
    pub fn wait(&self, attempt: u32, error: &ModelError, elapsed: Duration, spread: f64) -> Option<Duration> {
        if !error.is_retryable() || attempt >= self.attempts {
            return None;
        }
        let doubled = self
            .base
            .saturating_mul(1 << attempt.saturating_sub(1).min(16))
            .min(self.longest);
        // Between half of the back-off and the whole, so that many clients do not come back together.
        let backoff = doubled.mul_f64(0.5 + 0.5 * spread.clamp(0.0, 1.0));
        // A provider that says when is believed.
        let wait = error.retry_after().unwrap_or(backoff);
        (elapsed.saturating_add(wait) <= self.total).then_some(wait)
    }
}

/// How to let time pass. Tests pass it at once.
#[async_trait]
pub trait Sleeper: Send + Sync {
    /// Returns after `duration`.
    async fn sleep(&self, duration: Duration);
}

/// Real time.
#[derive(Debug, Clone, Copy, Default)]
pub struct TokioSleeper;

#[async_trait]
impl Sleeper for TokioSleeper {
    async fn sleep(&self, duration: Duration) {
        tokio::time::sleep(duration).await;
    }
}

/// A provider that tries again.
pub struct Retrying<P> {
    inner: Arc<P>,
    policy: RetryPolicy,
    clock: Arc<dyn Clock>,
    sleeper: Arc<dyn Sleeper>,
    spread: fn() -> f64,
}

impl<P> fmt::Debug for Retrying<P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Retrying")
            .field("policy", &self.policy)
            .finish_non_exhaustive()
    }
}

impl<P> Clone for Retrying<P> {
    fn clone(&self) -> Self {
        Self {
            inner: Arc::clone(&self.inner),
            policy: self.policy,
            clock: Arc::clone(&self.clock),
            sleeper: Arc::clone(&self.sleeper),
            spread: self.spread,
        }
    }
}

impl<P: Provider> Retrying<P> {
    /// Wraps `inner`; waits are spread at random.
    pub fn new(inner: P, policy: RetryPolicy, clock: Arc<dyn Clock>, sleeper: Arc<dyn Sleeper>) -> Self {
        Self {
            inner: Arc::new(inner),
            policy,
            clock,
            sleeper,
            spread: rand::random::<f64>,
        }
    }

    /// Waits that a test can foretell.
    #[cfg(test)]
    pub(crate) fn without_spread(mut self) -> Self {
        self.spread = || 1.0;
        self
    }

    fn next_wait(&self, attempt: u32, error: &ModelError, started: Timestamp) -> Option<Duration> {
        self.policy
            .wait(attempt, error, self.clock.now().since(started), (self.spread)())
    }
}

#[async_trait]
impl<P: Provider + 'static> Provider for Retrying<P> {
    fn rendered(&self, request: &ModelRequest, continuation: &Continuation) -> Result<Rendered, ModelError> {
        self.inner.rendered(request, continuation)
    }

    /// Never fails at once: failed attempts and the last error are items of the stream.
    async fn send(&self, prepared: Prepared) -> Result<DeltaStream, ModelError> {
        let this = self.clone();
        let stream = async_stream::try_stream! {
            let started = this.clock.now();
            let mut attempt = 1;
            loop {
                let mut passed_on = false;
                let mut failure = None;
                match this.inner.send(prepared.clone()).await {
                    Err(error) => failure = Some(error),
                    Ok(mut deltas) => while let Some(delta) = deltas.next().await {
                        match delta {
                            Ok(delta) => {
                                passed_on = true;
                                yield delta;
                            }
                            Err(error) => failure = Some(error),
                        }
                    },
                }
                let Some(error) = failure else { return };
                let wait = if passed_on { None } else { this.next_wait(attempt, &error, started) };
                let Some(wait) = wait else { Err(error)? };
                tracing::info!(attempt, reason = error.reason(), wait_ms = wait.as_millis(), "model call is retried");
                yield Delta::Retrying { attempt, wait, error };
                this.sleeper.sleep(wait).await;
                attempt += 1;
            }
        };
        Ok(stream.boxed())
    }
}

#[cfg(test)]
mod tests;
