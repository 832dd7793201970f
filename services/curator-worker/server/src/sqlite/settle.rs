//! The end of a try: the step of the queue and the row of the ledger, together.

use steward_base::names::TeamId;
use steward_curator_core::review::{Back, Ending, Problem, Review, ReviewState};
use steward_curator_core::{Error, HaltReason, Report, Tried};
use steward_queue::{Claim, Failure as TryFailure, JobState, QueueError, Release};
use steward_runtime::failpoint;
use steward_store::Db;

use super::{Failure, Ledger, by_a_person, journal, lost, rows};

/// Reviews whose job was taken from its worker.
const STRAY: &str = "\
SELECT review.team AS team, review.id AS id, queue_job.state AS state
FROM review JOIN queue_job ON queue_job.team = review.team AND queue_job.id = review.id
WHERE review.state IN ('queued', 'running')
  AND (queue_job.state IN ('dead', 'cancelled')
       OR (queue_job.state = 'waiting' AND review.state = 'running'))";

impl Ledger {
    /// Ends a try as it came out. Answers the review as it is now; with a stale claim nothing happens.
    pub(crate) async fn settle(&self, claim: &Claim, tried: Tried) -> Result<Review, Error> {
        failpoint::hit("review.ledger.before");
        let claim = claim.clone();
        let settled = self.write_and_tell(move |ledger, db| ledger.settle_in(db, &claim, tried));
        let review = settled.await?;
        failpoint::hit("review.ledger.after");
        if review.state == ReviewState::Queued {
            self.signals().claimable.notify_waiters();
        }
        Ok(review)
    }

    fn settle_in(&self, db: Db<'_>, claim: &Claim, tried: Tried) -> Result<Review, Failure> {
        self.steps.check(db, claim)?;
        let review = rows::get(db, &claim.team, &claim.job)?.ok_or_else(lost)?;
        let Tried { reason, report } = tried;
        match reason {
            HaltReason::Ended(Ending::Finished) => {
                self.steps.complete(db, claim)?;
                self.end(db, review, Ending::Finished, report)
            }
            HaltReason::Ended(Ending::Failed(problem) | Ending::Dead(problem)) => {
                let state = self.fail(db, claim, &problem, false)?;
                self.after(db, review, state, Ending::Failed(problem), Back::Retry, report)
            }
            HaltReason::Ended(Ending::Cancelled(problem)) => {
                self.steps.cancel(db, &claim.team, &claim.job)?;
                self.steps.release(db, claim, Release::Shutdown)?;
                self.end(db, review, Ending::Cancelled(problem), report)
            }
            HaltReason::TryAgain(problem) => {
                let state = self.fail(db, claim, &problem, true)?;
                self.after(db, review, state, Ending::Dead(problem), Back::Retry, report)
            }
            HaltReason::GiveWay => {
                let state = self.give_way(db, claim)?;
                self.released(db, review, state, report)
            }
            HaltReason::Shutdown => {
                let state = self.steps.release(db, claim, Release::Shutdown)?;
                self.released(db, review, state, report)
            }
            // Nothing may be written any more; whoever has the job now tells of it.
            HaltReason::LeaseLost => Ok(review),
        }
    }

    fn fail(&self, db: Db<'_>, claim: &Claim, problem: &Problem, retry: bool) -> Result<JobState, Failure> {
        let failure = TryFailure {
            message: problem.reason.clone(),
            retry,
            not_before: None,
        };
        Ok(self.steps.fail(db, claim, &failure)?)
    }

    fn give_way(&self, db: Db<'_>, claim: &Claim) -> Result<JobState, Failure> {
        match self.steps.release(db, claim, Release::GiveWay) {
            // Its worker counted wrongly; the review must not be lost for that.
            Err(QueueError::NoReleaseLeft { .. }) => Ok(self.steps.release(db, claim, Release::Shutdown)?),
            other => Ok(other?),
        }
    }

    /// A review that went back. If a newer one of the session waits by now, that one takes it over (`R-2`).
    fn released(&self, db: Db<'_>, mut review: Review, state: JobState, report: Report) -> Result<Review, Failure> {
        let newer = match state {
            JobState::Waiting => rows::newer_waiting(db, &review)?,
            _ => None,
        };
        let Some(mut newer) = newer else {
            let ending = Ending::Cancelled(by_a_person());
            return self.after(db, review, state, ending, Back::Released, report);
        };
        self.steps.cancel(db, &review.team, review.id.as_str())?;
        review.report = report;
        newer.absorb(&mut review, self.clock.now());
        self.keep(db, &newer)?;
        self.keep(db, &review)?;
        Ok(review)
    }

    /// The row follows the job: it waits again, or it ended.
    fn after(
        &self,
        db: Db<'_>,
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
                rows::save_quietly(db, &review)?;
                Ok(review)
            }
            JobState::Cancelled => self.end(db, review, Ending::Cancelled(by_a_person()), report),
            JobState::Dead | JobState::Done | JobState::Absorbed => self.end(db, review, ending, report),
        }
    }

    fn end(&self, db: Db<'_>, mut review: Review, ending: Ending, report: Report) -> Result<Review, Failure> {
        review.end(ending, report, self.clock.now());
        self.keep(db, &review)?;
        Ok(review)
    }

    /// Brings rows into line with jobs that a sweep has taken from workers that were not heard of.
    pub(super) fn settle_swept(&self, db: Db<'_>) -> Result<(), Failure> {
        let stray: Vec<(TeamId, String, String)> = db.all(STRAY, (), |row| {
            Ok::<_, Failure>((rows::team(row.get("team")?)?, row.get("id")?, row.get("state")?))
        })?;
        for (team, id, state) in stray {
            let Some(mut review) = rows::readable(db, &team, &id)? else {
                continue;
            };
            let mut report = review.report.clone();
            report.fill_from(&journal::load(db, &team, &id)?);
            match state.as_str() {
                "waiting" => {
                    review.go_back(Back::Retry, report);
                    rows::save_quietly(db, &review)?;
                }
                "cancelled" => {
                    self.end(db, review, Ending::Cancelled(by_a_person()), report)?;
                }
                _ => {
                    let problem = Problem::new("WORKER_LOST", "The worker stopped in the middle of it, each time.");
                    self.end(db, review, Ending::Dead(problem), report)?;
                }
            }
        }
        self.settle_swept_runs(db)
    }
}
