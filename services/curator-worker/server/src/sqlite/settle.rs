//! The end of a try: the step of the queue and the row of the ledger, together.

use sqlx::{Row as _, SqliteConnection};
use steward_curator_core::review::{Back, Ending, Problem, Review, ReviewState};
use steward_curator_core::{Error, HaltReason, Report, Tried};
use steward_queue::{Claim, Failure as TryFailure, JobState, QueueError, Release};
use steward_runtime::failpoint;

use super::{Failure, Ledger, by_a_person, journal, lost, rows};

impl Ledger {
    /// Ends a try as it came out. Answers the review as it is now; with a stale claim nothing happens.
    pub(crate) async fn settle(&self, claim: &Claim, tried: Tried) -> Result<Review, Error> {
        failpoint::hit("review.ledger.before");
        let claim = claim.clone();
        let settled = self.write_and_tell(move |ledger, connection| {
            Box::pin(async move { ledger.settle_in(connection, &claim, tried).await })
        });
        let review = settled.await?;
        failpoint::hit("review.ledger.after");
        if review.state == ReviewState::Queued {
            self.signals().claimable.notify_waiters();
        }
        Ok(review)
    }

    async fn settle_in(
        &self,
        connection: &mut SqliteConnection,
        claim: &Claim,
        tried: Tried,
    ) -> Result<Review, Failure> {
        self.jobs.check(connection, claim).await?;
        let review = rows::get(connection, &claim.team, &claim.job).await?.ok_or_else(lost)?;
        let Tried { reason, report } = tried;
        match reason {
            HaltReason::Ended(Ending::Finished) => {
                self.jobs.complete(connection, claim).await?;
                self.end(connection, review, Ending::Finished, report).await
            }
            HaltReason::Ended(Ending::Failed(problem) | Ending::Dead(problem)) => {
                let state = self.fail(connection, claim, &problem, false).await?;
                self.after(connection, review, state, Ending::Failed(problem), Back::Retry, report)
                    .await
            }
            HaltReason::Ended(Ending::Cancelled(problem)) => {
                self.jobs.cancel(connection, &claim.team, &claim.job).await?;
                self.jobs.release(connection, claim, Release::Shutdown).await?;
                self.end(connection, review, Ending::Cancelled(problem), report).await
            }
            HaltReason::TryAgain(problem) => {
                let state = self.fail(connection, claim, &problem, true).await?;
                self.after(connection, review, state, Ending::Dead(problem), Back::Retry, report)
                    .await
            }
            HaltReason::GiveWay => {
                let state = self.give_way(connection, claim).await?;
                self.released(connection, review, state, report).await
            }
            HaltReason::Shutdown => {
                let state = self.jobs.release(connection, claim, Release::Shutdown).await?;
                self.released(connection, review, state, report).await
            }
            // Nothing may be written any more; whoever has the job now tells of it.
            HaltReason::LeaseLost => Ok(review),
        }
    }

    async fn fail(
        &self,
        connection: &mut SqliteConnection,
        claim: &Claim,
        problem: &Problem,
        retry: bool,
    ) -> Result<JobState, Failure> {
        let failure = TryFailure {
            message: problem.reason.clone(),
            retry,
            not_before: None,
        };
        Ok(self.jobs.fail(connection, claim, &failure).await?)
    }

    async fn give_way(&self, connection: &mut SqliteConnection, claim: &Claim) -> Result<JobState, Failure> {
        match self.jobs.release(connection, claim, Release::GiveWay).await {
            // Its worker counted wrongly; the review must not be lost for that.
            Err(QueueError::NoReleaseLeft { .. }) => {
                Ok(self.jobs.release(connection, claim, Release::Shutdown).await?)
            }
            other => Ok(other?),
        }
    }

    /// A review that went back. If a newer one of the session waits by now, that one takes it over (`R-2`).
    async fn released(
        &self,
        connection: &mut SqliteConnection,
        mut review: Review,
        state: JobState,
        report: Report,
    ) -> Result<Review, Failure> {
        let newer = match state {
            JobState::Waiting => rows::newer_waiting(connection, &review).await?,
            _ => None,
        };
        let Some(mut newer) = newer else {
            let ending = Ending::Cancelled(by_a_person());
            return self
                .after(connection, review, state, ending, Back::Released, report)
                .await;
        };
        self.jobs.cancel(connection, &review.team, review.id.as_str()).await?;
        review.report = report;
        newer.absorb(&mut review, self.clock.now());
        self.keep(connection, &newer).await?;
        self.keep(connection, &review).await?;
        Ok(review)
    }

    /// The row follows the job: it waits again, or it ended.
    async fn after(
        &self,
        connection: &mut SqliteConnection,
        mut review: Review,
        state: JobState,
        ending: Ending,
        back: Back,
        report: Report,
    ) -> Result<Review, Failure> {
        match state {
            JobState::Waiting | JobState::Running => {
                review.go_back(back, report);
                // That a try failed and another follows is noise; people are not told.
                rows::save_quietly(connection, &review).await?;
                Ok(review)
            }
            JobState::Cancelled => {
                self.end(connection, review, Ending::Cancelled(by_a_person()), report)
                    .await
            }
            JobState::Dead | JobState::Done | JobState::Absorbed => self.end(connection, review, ending, report).await,
        }
    }

    async fn end(
        &self,
        connection: &mut SqliteConnection,
        mut review: Review,
        ending: Ending,
        report: Report,
    ) -> Result<Review, Failure> {
        review.end(ending, report, self.clock.now());
        self.keep(connection, &review).await?;
        Ok(review)
    }

    /// Brings rows into line with jobs that a sweep has taken from workers that were not heard of.
    pub(super) async fn settle_swept(&self, connection: &mut SqliteConnection) -> Result<(), Failure> {
        let stray = sqlx::query(
            "SELECT review.team AS team, review.id AS id, queue_job.state AS state
             FROM review JOIN queue_job ON queue_job.team = review.team AND queue_job.id = review.id
             WHERE review.state IN ('queued', 'running')
               AND (queue_job.state IN ('dead', 'cancelled')
                    OR (queue_job.state = 'waiting' AND review.state = 'running'))",
        )
        .fetch_all(&mut *connection)
        .await?;
        for row in stray {
            let (team, id) = (rows::team(row.try_get("team")?)?, row.try_get::<String, _>("id")?);
            let Some(mut review) = rows::readable(connection, &team, &id).await? else {
                continue;
            };
            let mut report = review.report.clone();
            report.fill_from(&journal::load(connection, &team, &id).await?);
            match row.try_get::<&str, _>("state")? {
                "waiting" => {
                    review.go_back(Back::Retry, report);
                    rows::save_quietly(connection, &review).await?;
                }
                "cancelled" => {
                    self.end(connection, review, Ending::Cancelled(by_a_person()), report)
                        .await?;
                }
                _ => {
                    let problem = Problem::new("WORKER_LOST", "The worker stopped in the middle of it, each time.");
                    self.end(connection, review, Ending::Dead(problem), report).await?;
                }
            }
        }
        self.settle_swept_runs(connection).await
    }
}
