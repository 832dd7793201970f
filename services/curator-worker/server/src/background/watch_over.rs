//! Watching over a running review: the lease and the token are renewed, and whoever wants it to stop is heard.

use steward_base::error_chain;
use steward_curator_core::problem::halt_on;
use steward_curator_core::review::{Ending, Review};
use steward_curator_core::{Error, Halt, HaltReason, Problem};
use steward_queue::ClaimedJob;
use tokio::time::{Instant, sleep_until};
use tokio_util::sync::CancellationToken;

use super::reviewer::Reviewer;
use crate::identity::JobToken;
use crate::peers::JobPeers;

/// Heartbeats between two looks at the session.
const LOOK_EVERY: u32 = 3;

/// What is watched over.
pub(super) struct Watch<'a> {
    pub(super) reviewer: &'a Reviewer,
    pub(super) job: &'a ClaimedJob,
    pub(super) review: &'a Review,
    pub(super) peers: &'a JobPeers,
    pub(super) token: &'a JobToken,
    pub(super) halt: &'a Halt,
    pub(super) stopping: &'a CancellationToken,
}

/// Runs beside the review for as long as that runs; returns only when the lease is lost, since nothing may be done then.
pub(super) async fn watch_over(watch: Watch<'_>) {
    let config = &watch.reviewer.config;
    let may_give_way = watch.job.job.releases < config.releases;
    let (mut renewed, mut beats) = (Instant::now(), 0_u32);
    let mut heard = Instant::now();
    let mut next = heard + config.heartbeat();
    loop {
        let asked = watch.reviewer.ledger.signals().asked.notified();
        tokio::select! {
            () = sleep_until(next) => {}
            () = asked => {}
            () = watch.stopping.cancelled(), if watch.halt.reason().is_none() => {
                watch.halt.stop(HaltReason::Shutdown);
                continue;
            }
        }
        match watch.beat(may_give_way).await {
            Ok(()) => heard = Instant::now(),
            Err(error) if halt_on(&error) == HaltReason::LeaseLost || heard.elapsed() >= config.lease() => {
                watch.halt.stop(HaltReason::LeaseLost);
                return;
            }
            Err(error) => tracing::warn!(error = error_chain(&error), "a heartbeat failed"),
        }
        if renewed.elapsed() >= config.lease() / 3 && watch.renew().await {
            renewed = Instant::now();
        }
        beats = beats.wrapping_add(1);
        if may_give_way && beats.is_multiple_of(LOOK_EVERY) {
            watch.look().await;
        }
        next = Instant::now() + config.heartbeat();
    }
}

impl Watch<'_> {
    async fn beat(&self, may_give_way: bool) -> Result<(), Error> {
        let lease = self.reviewer.config.lease();
        let beat = self.reviewer.ledger.heartbeat(&self.job.claim, lease).await?;
        if beat.cancel_requested {
            let problem = Problem::new("CANCELLED", "A person cancelled it.");
            self.halt.stop(HaltReason::Ended(Ending::Cancelled(problem)));
        } else if beat.yield_requested && may_give_way {
            self.halt.ask_to_give_way();
        }
        Ok(())
    }

    /// A new token; whether it was given. A person who lost access ends the review here.
    async fn renew(&self) -> bool {
        match self.reviewer.exchange(&self.job.claim, self.review).await {
            Ok(token) => {
                self.token.renew(token);
                true
            }
            Err(error) => {
                if let reason @ HaltReason::Ended(_) = halt_on(&error) {
                    self.halt.stop(reason);
                }
                tracing::warn!(error = error_chain(&error), "the job's token could not be renewed");
                false
            }
        }
    }

    /// A person who talks in the session again comes first (`R-2`).
    async fn look(&self) {
        match self.peers.has_open_turn().await {
            Ok(true) => self.halt.ask_to_give_way(),
            Ok(false) => {}
            Err(error) => tracing::debug!(error = error_chain(&error), "the session could not be looked at"),
        }
    }
}
