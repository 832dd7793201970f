//! One worker: claims a review, runs it under its lease, and brings it to an end, one after the other.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures::FutureExt as _;
use steward_base::error_chain;
use steward_base::names::{session_name, user_name};
use steward_client::AccessClient;
use steward_curator_core::problem::halt_on;
use steward_curator_core::review::Review;
use steward_curator_core::{Error, Halt, HaltReason, Problem, Tried, run_review};
use steward_proto::access::v1 as pb;
use steward_proto::common::v1 as common;
use steward_queue::Claim;
use steward_runtime::{TaskResult, Tasks};
use tokio_util::sync::CancellationToken;
use tracing::Instrument as _;

use super::continue_trace;
use super::watch_over::{Watch, watch_over};
use crate::config::{Config, seconds};
use crate::identity::JobToken;
use crate::peers::{AGENT, JobPeers, PeerClients};
use crate::sqlite::{Claimed, Ledger};

/// Wait between two looks at the queue without a hint.
const IDLE: Duration = Duration::from_secs(1);

/// What every review needs (`A-2`).
const CAPABILITIES: [&str; 6] = [
    "skills_list",
    "skill_view",
    "skill_manage",
    "session_search",
    "session_history",
    "generate",
];

/// A worker.
#[derive(Debug, Clone)]
pub(crate) struct Reviewer {
    pub(crate) name: String,
    pub(crate) config: Arc<Config>,
    pub(crate) ledger: Ledger,
    pub(crate) clients: PeerClients,
    /// With the worker's own credential.
    pub(crate) access: AccessClient,
}

impl Reviewer {
    /// Works until the process stops. A review that runs by then goes back to the queue without losing a try.
    pub(crate) async fn run(self, tasks: Tasks) -> TaskResult {
        let stopping = tasks.stopping();
        while !stopping.is_cancelled() {
            // Made before looking, so that no hint falls between looking and waiting.
            let hint = self.ledger.signals().claimable.notified();
            match self.ledger.claim(&self.name, self.config.lease()).await {
                Ok(Some(claimed)) => {
                    let pause = self.work(claimed, &stopping).await;
                    stopping.run_until_cancelled(tokio::time::sleep(pause)).await;
                    continue;
                }
                Ok(None) => {}
                Err(error) => tracing::warn!(error = error_chain(&error), "no review could be claimed"),
            }
            tokio::select! {
                () = stopping.cancelled() => {}
                () = hint => {}
                () = tokio::time::sleep(IDLE) => {}
            }
        }
        Ok(())
    }

    /// One try. Answers how long to leave the queue alone afterwards.
    async fn work(&self, claimed: Claimed, stopping: &CancellationToken) -> Duration {
        let Claimed { job, review } = claimed;
        let span = tracing::info_span!(
            "review",
            otel.kind = "consumer",
            review.id = %review.id,
            team = %review.team,
            fence = job.claim.fence,
            attempt = review.attempts,
            state = tracing::field::Empty,
        );
        continue_trace(&span, &review.traceparent);
        let begun = Instant::now();
        let gave_way = async {
            let tried = self.attempt(&job, &review, stopping).await;
            let gave_way = tried.reason == HaltReason::GiveWay;
            if let Some(after) = self.settle(&job.claim, tried).await {
                tracing::Span::current().record("state", after.state.as_str());
                self.ledger.metrics().tried(after.state, begun.elapsed());
            }
            gave_way
        };
        if gave_way.instrument(span).await {
            seconds(self.config.give_way_seconds)
        } else {
            Duration::ZERO
        }
    }

    async fn attempt(&self, job: &steward_queue::ClaimedJob, review: &Review, stopping: &CancellationToken) -> Tried {
        let failed = |reason| Tried {
            reason,
            report: review.report.clone(),
        };
        let token = match self.exchange(&job.claim, review).await {
            Ok(token) => JobToken::new(token),
            Err(error) => return failed(halt_on(&error)),
        };
        let halt = Halt::new();
        let peers = JobPeers::new(&self.clients, review.clone(), token.clone());
        let watch = Watch {
            reviewer: self,
            job,
            review,
            peers: &peers,
            token: &token,
            halt: &halt,
            stopping,
        };
        let journal = Arc::new(self.ledger.journal(&job.claim));
        let run = run_review(review, job.late, Arc::<JobPeers>::clone(&peers), journal, &halt);
        tokio::select! {
            tried = AssertUnwindSafe(run).catch_unwind() => tried.unwrap_or_else(|_panic| {
                tracing::error!("a review panicked");
                failed(HaltReason::TryAgain(Problem::new("INTERNAL", "The review met a fault; the log has the details.")))
            }),
            () = watch_over(watch) => failed(HaltReason::LeaseLost),
        }
    }

    /// Exchanges the claim for a token that ends with the lease (`A-2`).
    pub(super) async fn exchange(&self, claim: &Claim, review: &Review) -> Result<String, Error> {
        let mut capabilities: Vec<String> = CAPABILITIES.map(str::to_owned).into();
        if review.kinds.memory {
            capabilities.push("memory".to_owned());
        }
        let request = pb::ExchangeJobTokenRequest {
            user: user_name(&review.team, &review.user),
            job_id: claim.job.clone(),
            fence: claim.fence,
            origin: common::Origin::Review.into(),
            session: session_name(&review.team, &review.session),
            capabilities,
            ttl: Some(prost_types::Duration {
                seconds: i64::from(self.config.lease_seconds),
                nanos: 0,
            }),
        };
        let response = self
            .access
            .exchange_job_token(request)
            .await
            .map_err(|error| Error::peer(AGENT, error))?;
        Ok(response.credential)
    }

    /// The review as it stands afterwards, unless somebody else has it or the ledger cannot be written.
    async fn settle(&self, claim: &Claim, tried: Tried) -> Option<Review> {
        if tried.reason == HaltReason::LeaseLost {
            tracing::warn!(review.id = %claim.job, fence = claim.fence, "the lease was lost; somebody else goes on");
            return None;
        }
        match self.ledger.settle(claim, tried).await {
            Ok(review) => {
                let reason = review.problem.as_ref().map_or("", |problem| problem.reason.as_str());
                tracing::info!(review.id = %review.id, state = %review.state, reason, "a try of a review ended");
                Some(review)
            }
            // The lease ends by itself; the journal has everything that a later try needs.
            Err(error) => {
                tracing::warn!(review.id = %claim.job, error = error_chain(&error), "a try could not be settled");
                None
            }
        }
    }
}
