//! The end of a try of a run: the step of the queue and the row, together.

use steward_base::names::TeamId;
use steward_curator_core::Error;
use steward_curator_core::curation::report::Finished;
use steward_curator_core::curation::{Kind, Run, RunState};
use steward_curator_core::review::Problem;
use steward_queue::{Claim, Failure as TryFailure, JobState, Release};
use steward_store::Db;

use super::super::{Failure, Ledger, lost};
use super::rows;

/// Runs whose job was taken from its worker.
const STRAY: &str = "\
SELECT r.team AS team, r.id AS id, queue_job.state AS state
FROM curation_run r JOIN queue_job ON queue_job.team = r.team AND queue_job.id = r.id
WHERE r.state IN ('queued', 'running')
  AND (queue_job.state IN ('dead', 'cancelled')
       OR (queue_job.state = 'waiting' AND r.state = 'running'))";

/// How a try came out.
#[derive(Debug, Clone)]
pub(crate) enum RunTried {
    /// It did everything.
    Finished(Box<Finished>),
    /// It did not.
    Failed {
        /// Why.
        problem: Problem,
        /// Whether another try may go better.
        retry: bool,
    },
    /// The process stops; another goes on.
    Shutdown,
}

impl Ledger {
    /// Ends a try as it came out. With a stale claim nothing happens.
    pub(crate) async fn settle_run(&self, claim: &Claim, tried: RunTried) -> Result<Run, Error> {
        let claim = claim.clone();
        let settled = self.write_and_tell(move |ledger, db| ledger.settle_run_in(db, &claim, tried));
        let run = settled.await?;
        if run.state.is_open() {
            self.signals().claimable.notify_waiters();
        }
        Ok(run)
    }

    fn settle_run_in(&self, db: Db<'_>, claim: &Claim, tried: RunTried) -> Result<Run, Failure> {
        self.steps.check(db, claim)?;
        let mut run = rows::get(db, &claim.team, &claim.job)?.ok_or_else(lost)?;
        match tried {
            RunTried::Finished(finished) => {
                self.steps.complete(db, claim)?;
                self.finish(db, &mut run, *finished)?;
            }
            RunTried::Failed { problem, retry } => {
                let failure = TryFailure {
                    message: problem.reason.clone(),
                    retry,
                    not_before: None,
                };
                let state = self.steps.fail(db, claim, &failure)?;
                self.follow(db, &mut run, state, problem)?;
            }
            RunTried::Shutdown => {
                let state = self.steps.release(db, claim, Release::Shutdown)?;
                self.follow(db, &mut run, state, worker_lost())?;
            }
        }
        Ok(run)
    }

    fn finish(&self, db: Db<'_>, run: &mut Run, finished: Finished) -> Result<(), Failure> {
        let now = self.clock.now();
        run.state = RunState::Succeeded;
        run.problem = None;
        run.result = finished.result;
        run.ended_at = Some(now);
        rows::update(db, run)?;
        let sql = "UPDATE curation_run SET run_json = ?, report = ? WHERE team = ? AND id = ?";
        let (team, id) = (run.team.as_str(), run.id.as_str());
        db.execute(sql, (finished.run_json, finished.markdown, team, id))?;
        if run.kind == Kind::Curate {
            rows::count_run(db, run, now)?;
        }
        Ok(())
    }

    /// The row follows the job: it waits again, or it ended.
    fn follow(&self, db: Db<'_>, run: &mut Run, state: JobState, problem: Problem) -> Result<(), Failure> {
        if matches!(state, JobState::Waiting | JobState::Running) {
            run.state = RunState::Queued;
        } else {
            run.state = RunState::Failed;
            run.problem = Some(problem);
            run.ended_at = Some(self.clock.now());
        }
        rows::update(db, run)
    }

    /// Brings rows into line with jobs that a sweep has taken from workers that were not heard of.
    pub(in crate::sqlite) fn settle_swept_runs(&self, db: Db<'_>) -> Result<(), Failure> {
        let stray: Vec<(TeamId, String, String)> = db.all(STRAY, (), |row| {
            let team = TeamId::parse(row.get::<_, String>("team")?).map_err(rows::unreadable)?;
            Ok::<_, Failure>((team, row.get("id")?, row.get("state")?))
        })?;
        for (team, id, state) in stray {
            let Some(mut run) = rows::readable(db, &team, &id)? else {
                continue;
            };
            let state = match state.as_str() {
                "waiting" => JobState::Waiting,
                _ => JobState::Dead,
            };
            self.follow(db, &mut run, state, worker_lost())?;
        }
        Ok(())
    }
}

fn worker_lost() -> Problem {
    Problem::new("WORKER_LOST", "The worker stopped in the middle of it, each time.")
}
