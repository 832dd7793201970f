//! The end of a try of a run: the step of the queue and the row, together.

use sqlx::{Row as _, SqliteConnection};
use steward_base::names::TeamId;
use steward_curator_core::Error;
use steward_curator_core::curation::report::Finished;
use steward_curator_core::curation::{Kind, Run, RunState};
use steward_curator_core::review::Problem;
use steward_queue::{Claim, Failure as TryFailure, JobState, Release};

use super::super::{Failure, Ledger, lost};
use super::rows;

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
        let settled = self.write_and_tell(move |ledger, connection| {
            Box::pin(async move { ledger.settle_run_in(connection, &claim, tried).await })
        });
        let run = settled.await?;
        if run.state.is_open() {
            self.signals().claimable.notify_waiters();
        }
        Ok(run)
    }

    async fn settle_run_in(
        &self,
        connection: &mut SqliteConnection,
        claim: &Claim,
        tried: RunTried,
    ) -> Result<Run, Failure> {
        self.jobs.check(connection, claim).await?;
        let mut run = rows::get(connection, &claim.team, &claim.job).await?.ok_or_else(lost)?;
        match tried {
            RunTried::Finished(finished) => {
                self.jobs.complete(connection, claim).await?;
                self.finish(connection, &mut run, *finished).await?;
            }
            RunTried::Failed { problem, retry } => {
                let failure = TryFailure {
                    message: problem.reason.clone(),
                    retry,
                    not_before: None,
                };
                let state = self.jobs.fail(connection, claim, &failure).await?;
                self.follow(connection, &mut run, state, problem).await?;
            }
            RunTried::Shutdown => {
                let state = self.jobs.release(connection, claim, Release::Shutdown).await?;
                self.follow(connection, &mut run, state, worker_lost()).await?;
            }
        }
        Ok(run)
    }

    async fn finish(
        &self,
        connection: &mut SqliteConnection,
        run: &mut Run,
        finished: Finished,
    ) -> Result<(), Failure> {
        let now = self.clock.now();
        run.state = RunState::Succeeded;
        run.problem = None;
        run.result = finished.result;
        run.ended_at = Some(now);
        rows::update(connection, run).await?;
        sqlx::query("UPDATE curation_run SET run_json = ?, report = ? WHERE team = ? AND id = ?")
            .bind(finished.run_json)
            .bind(finished.markdown)
            .bind(run.team.as_str())
            .bind(run.id.as_str())
            .execute(&mut *connection)
            .await?;
        if run.kind == Kind::Curate {
            rows::count_run(connection, run, now).await?;
        }
        Ok(())
    }

    /// The row follows the job: it waits again, or it ended.
    async fn follow(
        &self,
        connection: &mut SqliteConnection,
        run: &mut Run,
        state: JobState,
        problem: Problem,
    ) -> Result<(), Failure> {
        if matches!(state, JobState::Waiting | JobState::Running) {
            run.state = RunState::Queued;
        } else {
            run.state = RunState::Failed;
            run.problem = Some(problem);
            run.ended_at = Some(self.clock.now());
        }
        rows::update(connection, run).await
    }

    /// Brings rows into line with jobs that a sweep has taken from workers that were not heard of.
    pub(in crate::sqlite) async fn settle_swept_runs(&self, connection: &mut SqliteConnection) -> Result<(), Failure> {
        let stray = sqlx::query(
            "SELECT r.team AS team, r.id AS id, queue_job.state AS state
             FROM curation_run r JOIN queue_job ON queue_job.team = r.team AND queue_job.id = r.id
             WHERE r.state IN ('queued', 'running')
               AND (queue_job.state IN ('dead', 'cancelled')
                    OR (queue_job.state = 'waiting' AND r.state = 'running'))",
        )
        .fetch_all(&mut *connection)
        .await?;
        for row in stray {
            let team = TeamId::parse(row.try_get::<String, _>("team")?).map_err(rows::unreadable)?;
            let id: String = row.try_get("id")?;
            let Some(mut run) = rows::readable(connection, &team, &id).await? else {
                continue;
            };
            let state = match row.try_get::<&str, _>("state")? {
                "waiting" => JobState::Waiting,
                _ => JobState::Dead,
            };
            self.follow(connection, &mut run, state, worker_lost()).await?;
        }
        Ok(())
    }
}

fn worker_lost() -> Problem {
    Problem::new("WORKER_LOST", "The worker stopped in the middle of it, each time.")
}
