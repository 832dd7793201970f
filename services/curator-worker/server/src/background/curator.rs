//! The worker for curations: claims a run, carries it out under its lease, and brings it to an end, one after the other.

use std::collections::BTreeSet;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use futures::FutureExt as _;
use steward_base::names::user_name;
use steward_base::{Clock, Fault as _, error_chain};
use steward_client::{AccessClient, LibraryClient};
use steward_curator_core::curation::execute::{Schedules, execute};
use steward_curator_core::curation::failure::{Verdict, judge};
use steward_curator_core::curation::{Kind, Run};
use steward_curator_core::{Error, Problem};
use steward_proto::access::v1 as pb;
use steward_proto::common::v1 as common;
use steward_queue::Claim;
use steward_runtime::{TaskResult, Tasks};
use tokio_util::sync::CancellationToken;
use tracing::Instrument as _;

use crate::config::Config;
use crate::identity::JobToken;
use crate::peers::{AGENT, JobLibrary};
use crate::sqlite::{ClaimedRun, Ledger, RunTried};

/// Wait between two looks at the queue without a hint.
const IDLE: Duration = Duration::from_secs(1);

/// A worker.
#[derive(Debug, Clone)]
pub(crate) struct Curator {
    pub(crate) config: Arc<Config>,
    pub(crate) ledger: Ledger,
    /// Without credentials.
    pub(crate) library: LibraryClient,
    /// With the worker's own credential.
    pub(crate) access: AccessClient,
    pub(crate) schedules: Arc<dyn Schedules>,
    pub(crate) clock: Arc<dyn Clock>,
}

/// An installation without schedules: nothing refers to a skill.
#[derive(Debug, Clone, Copy)]
pub(crate) struct NoSchedules;

#[async_trait]
impl Schedules for NoSchedules {
    async fn skills(&self, _: &Run) -> Result<BTreeSet<String>, Error> {
        Ok(BTreeSet::new())
    }
}

impl Curator {
    /// Works until the process stops. A run that goes on by then goes back to the queue without losing a try.
    pub(crate) async fn run(self, tasks: Tasks) -> TaskResult {
        let stopping = tasks.stopping();
        while !stopping.is_cancelled() {
            // Made before looking, so that no hint falls between looking and waiting.
            let hint = self.ledger.signals().claimable.notified();
            match self.ledger.claim_run("curator", self.config.lease()).await {
                Ok(Some(claimed)) => {
                    self.work(claimed, &stopping).await;
                    continue;
                }
                Ok(None) => {}
                Err(error) => tracing::warn!(error = error_chain(&error), "no run could be claimed"),
            }
            tokio::select! {
                () = stopping.cancelled() => {}
                () = hint => {}
                () = tokio::time::sleep(IDLE) => {}
            }
        }
        Ok(())
    }

    async fn work(&self, claimed: ClaimedRun, stopping: &CancellationToken) {
        let ClaimedRun { job, run } = claimed;
        let span = tracing::info_span!("curation", run.id = %run.id, team = %run.team, fence = job.claim.fence);
        let attempt = AssertUnwindSafe(self.attempt(&job.claim, &run, stopping)).catch_unwind();
        let tried = attempt.instrument(span).await.unwrap_or_else(|_panic| {
            tracing::error!(run.id = %run.id, "a run panicked");
            let problem = Problem::new("INTERNAL", "The run met a fault; the log has the details.");
            Some(RunTried::Failed { problem, retry: true })
        });
        let Some(tried) = tried else {
            tracing::warn!(run.id = %run.id, fence = job.claim.fence, "the lease was lost; somebody else goes on");
            return;
        };
        match self.ledger.settle_run(&job.claim, tried).await {
            Ok(run) => {
                let reason = run.problem.as_ref().map_or("", |problem| problem.reason.as_str());
                tracing::info!(run.id = %run.id, state = run.state.as_str(), reason, "a try of a curation ended");
            }
            // The lease ends by itself, and nothing of a run is done twice.
            Err(error) => tracing::warn!(run.id = %run.id, error = error_chain(&error), "a try could not be settled"),
        }
    }

    /// One try; nothing when the lease was lost.
    async fn attempt(&self, claim: &Claim, run: &Run, stopping: &CancellationToken) -> Option<RunTried> {
        let token = match self.exchange(claim, run).await {
            Ok(token) => JobToken::new(token),
            Err(error) => return judged(&error),
        };
        let library = JobLibrary::new(&self.library, &run.team, &token);
        let journal = self.ledger.curation_journal(claim);
        let settings = *self.config.curation.ages().of(&run.team);
        let now = self.clock.now();
        let work = execute(run, &library, &*self.schedules, &journal, settings, now);
        tokio::select! {
            done = work => match done {
                Ok(finished) => Some(RunTried::Finished(Box::new(finished))),
                Err(error) => judged(&error),
            },
            () = stopping.cancelled() => Some(RunTried::Shutdown),
            () = self.watch_over(claim, run, &token) => None,
        }
    }

    /// Renews lease and token for as long as the run goes on; returns only when the lease is lost.
    async fn watch_over(&self, claim: &Claim, run: &Run, token: &JobToken) {
        let (lease, mut heard) = (self.config.lease(), tokio::time::Instant::now());
        let mut renewed = heard;
        loop {
            tokio::time::sleep(self.config.heartbeat()).await;
            match self.ledger.heartbeat(claim, lease).await {
                Ok(_) => heard = tokio::time::Instant::now(),
                Err(error) if judge(&error) == Verdict::LeaseLost || heard.elapsed() >= lease => return,
                Err(error) => tracing::warn!(error = error_chain(&error), "a heartbeat failed"),
            }
            if renewed.elapsed() >= lease / 3 {
                match self.exchange(claim, run).await {
                    Ok(fresh) => {
                        token.renew(fresh);
                        renewed = tokio::time::Instant::now();
                    }
                    Err(error) => tracing::warn!(error = error_chain(&error), "a token could not be renewed"),
                }
            }
        }
    }

    /// Exchanges the claim for a token that ends with the lease (`A-2`), in the name of the first user who has access. A
    /// dry run's can read and nothing else.
    async fn exchange(&self, claim: &Claim, run: &Run) -> Result<String, Error> {
        let capabilities: &[&str] = match run.kind {
            Kind::DryRun => &["library_read"],
            Kind::Curate => &["library_read", "library_curate"],
            Kind::Rollback => &["library_curate"],
        };
        let mut refused = None;
        for user in &run.users {
            let request = pb::ExchangeJobTokenRequest {
                user: user_name(&run.team, user),
                job_id: claim.job.clone(),
                fence: claim.fence,
                origin: common::Origin::Curation.into(),
                session: String::new(),
                capabilities: capabilities.iter().map(|&name| name.to_owned()).collect(),
                ttl: Some(prost_types::Duration {
                    seconds: i64::from(self.config.lease_seconds),
                    nanos: 0,
                }),
            };
            match self.access.exchange_job_token(request).await {
                Ok(response) => return Ok(response.credential),
                Err(error) if is_gone(error.reason()) => refused = Some(error),
                Err(error) => return Err(Error::peer(AGENT, error)),
            }
        }
        Err(refused.map_or_else(
            || Error::unreadable("a run", "it has nobody in whose name it runs"),
            |error| Error::peer(AGENT, error),
        ))
    }
}

fn is_gone(reason: &str) -> bool {
    matches!(reason, "USER_DISABLED" | "USER_NOT_FOUND")
}

fn judged(error: &Error) -> Option<RunTried> {
    tracing::warn!(error = error_chain(error), "a try of a curation failed");
    if is_gone(error.reason()) {
        let problem = Problem::new("ACCESS_LOST", "Nobody in whose name it may run has access any more.");
        return Some(RunTried::Failed { problem, retry: false });
    }
    match judge(error) {
        Verdict::Again(problem) => Some(RunTried::Failed { problem, retry: true }),
        Verdict::Failed(problem) => Some(RunTried::Failed { problem, retry: false }),
        Verdict::LeaseLost => None,
    }
}
