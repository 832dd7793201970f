//! Curations in the ledger: every step of a run's job and the row that tells of it are one transaction.

mod journal;
mod queries;
mod rows;
mod settle;
#[cfg(test)]
mod tests;

use std::time::Duration;

use steward_base::names::{TeamId, UserId};
use steward_base::{PerTeam, Timestamp};
use steward_curator_core::Error;
use steward_curator_core::curation::due::{self, Rhythm, Verdict};
use steward_curator_core::curation::{Kind, Result as RunResult, Run, RunId, RunState, TeamClock, run_name};
use steward_queue::{ClaimRequest, ClaimedJob, NewJob};
use steward_store::Db;

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
        let run = self.write(move |ledger, db| ledger.request_in(db, new)).await?;
        self.signals().claimable.notify_waiters();
        Ok(run)
    }

    fn request_in(&self, db: Db<'_>, new: NewRun) -> Result<Run, Failure> {
        if let Some(first) = rows::requested(db, &new.team, &new.requester, &new.request_id)? {
            if (first.kind, &first.undoes) == (new.kind, &new.undoes) {
                return Ok(first);
            }
            return Err(Error::request_id_reused(new.request_id).into());
        }
        if let Some(undoes) = &new.undoes {
            let found = rows::get(db, &new.team, undoes.as_str())?;
            let missing = || Error::RunNotFound {
                run: run_name(&new.team, undoes),
            };
            found.ok_or_else(missing)?.may_be_undone()?;
        }
        if let Some(run) = rows::open(db, &new.team)? {
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
        self.put_in(db, &run, Some(&new.request_id))?;
        Ok(run)
    }

    fn put_in(&self, db: Db<'_>, run: &Run, request_id: Option<&str>) -> Result<(), Failure> {
        let job = NewJob {
            team: run.team.clone(),
            id: run.id.to_string(),
            kind: CURATION.to_owned(),
            payload: String::new(),
            merge_key: None,
            run_at: None,
            start_by: None,
        };
        self.steps.enqueue(db, &job)?;
        rows::insert(db, run, request_id)
    }

    /// Puts a run into the queue for each team that is due (`C-1`), and begins to count for those seen for the first
    /// time. Answers how many runs there are.
    pub(crate) async fn enqueue_due(&self, candidates: Vec<Candidate>, rhythm: PerTeam<Rhythm>) -> Result<u64, Error> {
        let enqueued = self.write(move |ledger, db| {
            let mut runs = 0;
            for candidate in candidates {
                let rhythm = *rhythm.of(&candidate.team);
                runs += u64::from(ledger.enqueue_if_due(db, candidate, rhythm)?);
            }
            Ok(runs)
        });
        let runs = enqueued.await?;
        if runs > 0 {
            self.signals().claimable.notify_waiters();
        }
        Ok(runs)
    }

    fn enqueue_if_due(&self, db: Db<'_>, candidate: Candidate, rhythm: Rhythm) -> Result<bool, Failure> {
        let now = self.clock.now();
        let Candidate {
            team,
            id,
            last_active,
            users,
        } = candidate;
        let clock = rows::clock(db, &team)?;
        match due::decide(now, clock.as_ref(), last_active, rhythm) {
            Verdict::Wait => return Ok(false),
            Verdict::Seed => {
                rows::count_from(db, &team, now)?;
                return Ok(false);
            }
            Verdict::Run => {}
        }
        if users.is_empty() || rows::open(db, &team)?.is_some() {
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
        rows::count_from(db, &run.team, now)?;
        self.put_in(db, &run, None)?;
        Ok(true)
    }

    /// Hands out the next run; its row says that it runs.
    pub(crate) async fn claim_run(&self, worker: &str, lease: Duration) -> Result<Option<ClaimedRun>, Error> {
        let request = ClaimRequest {
            worker: worker.to_owned(),
            kinds: vec![CURATION.to_owned()],
            lease,
        };
        let claimed = self.write_and_tell(move |ledger, db| {
            let claimed = ledger.steps.claim(db, &request)?;
            ledger.settle_swept(db)?;
            let Some(job) = claimed else { return Ok(None) };
            let Some(mut run) = rows::readable(db, &job.claim.team, &job.claim.job)? else {
                ledger.give_up(db, &job.claim)?;
                return Ok(None);
            };
            run.state = RunState::Running;
            run.attempts = job.job.attempts;
            rows::update(db, &run)?;
            Ok(Some(ClaimedRun { job, run }))
        });
        claimed.await
    }

    /// Stops or starts again what runs by itself. The interval goes on counting meanwhile.
    pub(crate) async fn set_paused(&self, team: &TeamId, paused: bool) -> Result<(), Error> {
        let team = team.clone();
        self.write(move |ledger, db| rows::set_paused(db, &team, paused, ledger.clock.now()))
            .await
    }

    /// When the team's library is due, and the run that has not ended.
    pub(crate) async fn curation_status(&self, team: &TeamId) -> Result<(Option<TeamClock>, Option<Run>), Error> {
        self.read(|db| Ok((rows::clock(db, team)?, rows::open(db, team)?)))
            .await
    }
}
