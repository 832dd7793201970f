//! Curations in the ledger: every step of a run's job and the row that tells of it are one transaction.

mod journal;
mod queries;
mod rows;
mod settle;
#[cfg(test)]
mod tests;

use std::time::Duration;

use sqlx::SqliteConnection;
use steward_base::names::{TeamId, UserId};
use steward_base::{PerTeam, Timestamp};
use steward_curator_core::Error;
use steward_curator_core::curation::due::{self, Rhythm, Verdict};
use steward_curator_core::curation::{Kind, Result as RunResult, Run, RunId, RunState, TeamClock, run_name};
use steward_queue::{ClaimRequest, ClaimedJob, NewJob};

use super::{Failure, Ledger};

pub(crate) use settle::RunTried;

/// Kind of the jobs.
const CURATION: &str = "curation";

/// A run that a person asks for.
#[derive(Debug, Clone)]
pub(crate) struct NewRun {
    pub(crate) team: TeamId,
    pub(crate) id: RunId,
    pub(crate) kind: Kind,
    pub(crate) requester: UserId,
    pub(crate) request_id: String,
    pub(crate) undoes: Option<RunId>,
}

/// A team that may be due.
#[derive(Debug, Clone)]
pub(crate) struct Candidate {
    pub(crate) team: TeamId,
    /// Id of the run, if there will be one.
    pub(crate) id: RunId,
    pub(crate) last_active: Option<Timestamp>,
    /// In whose name it may run; latest active first.
    pub(crate) users: Vec<UserId>,
}

/// A run that was handed out.
#[derive(Debug, Clone)]
pub(crate) struct ClaimedRun {
    pub(crate) job: ClaimedJob,
    pub(crate) run: Run,
}

impl Ledger {
    /// Puts a run into the queue. The same request id again answers with the first run.
    pub(crate) async fn request_run(&self, new: NewRun) -> Result<Run, Error> {
        let requested =
            self.write(move |ledger, connection| Box::pin(async move { ledger.request_in(connection, new).await }));
        let run = requested.await?;
        self.signals().claimable.notify_waiters();
        Ok(run)
    }

    async fn request_in(&self, connection: &mut SqliteConnection, new: NewRun) -> Result<Run, Failure> {
        if let Some(first) = rows::requested(connection, &new.team, &new.requester, &new.request_id).await? {
            if (first.kind, &first.undoes) == (new.kind, &new.undoes) {
                return Ok(first);
            }
            return Err(Error::request_id_reused(new.request_id).into());
        }
        if let Some(undoes) = &new.undoes {
            let found = rows::get(connection, &new.team, undoes.as_str()).await?;
            let missing = || Error::RunNotFound {
                run: run_name(&new.team, undoes),
            };
            found.ok_or_else(missing)?.may_be_undone()?;
        }
        if let Some(run) = rows::open(connection, &new.team).await? {
            return Err(Error::CurationOpen { run: run.name() }.into());
        }
        let run = Run {
            team: new.team,
            id: new.id,
            kind: new.kind,
            users: vec![new.requester.clone()],
            requester: Some(new.requester),
            undoes: new.undoes,
            state: RunState::Queued,
            problem: None,
            attempts: 0,
            result: RunResult::default(),
            created_at: self.clock.now(),
            ended_at: None,
        };
        self.put_in(connection, &run, Some(&new.request_id)).await?;
        Ok(run)
    }

    async fn put_in(
        &self,
        connection: &mut SqliteConnection,
        run: &Run,
        request_id: Option<&str>,
    ) -> Result<(), Failure> {
        let job = NewJob {
            team: run.team.clone(),
            id: run.id.to_string(),
            kind: CURATION.to_owned(),
            payload: String::new(),
            merge_key: None,
            run_at: None,
            start_by: None,
        };
        self.jobs.enqueue(connection, job).await?;
        rows::insert(connection, run, request_id).await
    }

    /// Puts a run into the queue for each team that is due (`C-1`), and begins to count for those seen for the first
    /// time. Answers how many runs there are.
    pub(crate) async fn enqueue_due(&self, candidates: Vec<Candidate>, rhythm: PerTeam<Rhythm>) -> Result<u64, Error> {
        let enqueued = self.write(move |ledger, connection| {
            Box::pin(async move {
                let mut runs = 0;
                for candidate in candidates {
                    let rhythm = *rhythm.of(&candidate.team);
                    runs += u64::from(ledger.enqueue_if_due(connection, candidate, rhythm).await?);
                }
                Ok(runs)
            })
        });
        let runs = enqueued.await?;
        if runs > 0 {
            self.signals().claimable.notify_waiters();
        }
        Ok(runs)
    }

    async fn enqueue_if_due(
        &self,
        connection: &mut SqliteConnection,
        candidate: Candidate,
        rhythm: Rhythm,
    ) -> Result<bool, Failure> {
        let now = self.clock.now();
        let Candidate {
            team,
            id,
            last_active,
            users,
        } = candidate;
        let clock = rows::clock(connection, &team).await?;
        match due::decide(now, clock.as_ref(), last_active, rhythm) {
            Verdict::Wait => return Ok(false),
            Verdict::Seed => {
                rows::count_from(connection, &team, now).await?;
                return Ok(false);
            }
            Verdict::Run => {}
        }
        if users.is_empty() || rows::open(connection, &team).await?.is_some() {
            return Ok(false);
        }
        let run = Run {
            team,
            id,
            kind: Kind::Curate,
            requester: None,
            users,
            undoes: None,
            state: RunState::Queued,
            problem: None,
            attempts: 0,
            result: RunResult::default(),
            created_at: now,
            ended_at: None,
        };
        // One run, however far the clock has jumped.
        rows::count_from(connection, &run.team, now).await?;
        self.put_in(connection, &run, None).await?;
        Ok(true)
    }

    /// Hands out the next run; its row says that it runs.
    pub(crate) async fn claim_run(&self, worker: &str, lease: Duration) -> Result<Option<ClaimedRun>, Error> {
        let request = ClaimRequest {
            worker: worker.to_owned(),
            kinds: vec![CURATION.to_owned()],
            lease,
        };
        let claimed = self.write_and_tell(move |ledger, connection| {
            Box::pin(async move {
                let claimed = ledger.jobs.claim(connection, &request).await?;
                ledger.settle_swept(connection).await?;
                let Some(job) = claimed else { return Ok(None) };
                let Some(mut run) = rows::readable(connection, &job.claim.team, &job.claim.job).await? else {
                    let failure = steward_queue::Failure {
                        message: "its row cannot be read".to_owned(),
                        retry: false,
                        not_before: None,
                    };
                    ledger.jobs.fail(connection, &job.claim, &failure).await?;
                    return Ok(None);
                };
                run.state = RunState::Running;
                run.attempts = job.job.attempts;
                rows::update(connection, &run).await?;
                Ok(Some(ClaimedRun { job, run }))
            })
        });
        claimed.await
    }

    /// Stops or starts again what runs by itself. The interval goes on counting meanwhile.
    pub(crate) async fn set_paused(&self, team: &TeamId, paused: bool) -> Result<(), Error> {
        let team = team.clone();
        self.write(move |ledger, connection| {
            Box::pin(async move { rows::set_paused(connection, &team, paused, ledger.clock.now()).await })
        })
        .await
    }

    /// When the team's library is due, and the run that has not ended.
    pub(crate) async fn curation_status(&self, team: &TeamId) -> Result<(Option<TeamClock>, Option<Run>), Error> {
        let read = async {
            let mut connection = self.sqlite.read().await?;
            let clock = rows::clock(&mut connection, team).await?;
            Ok::<_, Failure>((clock, rows::open(&mut connection, team).await?))
        };
        read.await.map_err(|Failure(error)| error)
    }
}
