//! The queue in memory: for tests of what uses a queue, and the model that the SQLite engine is held against.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use steward_base::names::TeamId;
use steward_base::{Clock, Timestamp};
use tokio::sync::Notify;

use crate::time::{Moment, StoreClock};
use crate::{
    Cancelled, Claim, ClaimRequest, ClaimedJob, Enqueued, Failure, Heartbeat, Job, JobState, ListJobs, NewJob, Queue,
    QueueError, QueueOptions, QueueStats, Release, Sweep,
};

/// A queue that ends with the process. Not durable.
#[derive(Debug)]
pub struct InMemoryQueue {
    clock: StoreClock,
    options: QueueOptions,
    state: Mutex<State>,
    wakes: Notify,
}

#[derive(Debug, Default)]
struct State {
    jobs: BTreeMap<(TeamId, String), Job>,
    /// For each team the number of the claim that served it last.
    served: BTreeMap<TeamId, u64>,
}

impl InMemoryQueue {
    /// An empty queue that goes by `clock`.
    pub fn new(clock: Arc<dyn Clock>, options: QueueOptions) -> Self {
        Self {
            clock: StoreClock::new(clock),
            options,
            state: Mutex::default(),
            wakes: Notify::new(),
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Runs a step on a copy of the job and keeps it if the step succeeds.
    fn step<T>(
        &self,
        team: &TeamId,
        id: &str,
        step: impl FnOnce(&mut Job, Moment) -> Result<T, QueueError>,
    ) -> Result<T, QueueError> {
        let mut state = self.lock();
        let job = state.job(team, id)?;
        let mut changed = job.clone();
        let outcome = step(&mut changed, self.clock.read())?;
        *job = changed;
        drop(state);
        self.wakes.notify_waiters();
        Ok(outcome)
    }
}

impl State {
    fn job(&mut self, team: &TeamId, id: &str) -> Result<&mut Job, QueueError> {
        self.jobs
            .get_mut(&(team.clone(), id.to_owned()))
            .ok_or_else(|| QueueError::NoSuchJob { id: id.to_owned() })
    }

    fn of(&self, team: &TeamId, state: JobState) -> impl Iterator<Item = &Job> {
        self.jobs
            .values()
            .filter(move |job| job.team == *team && job.state == state)
    }

    fn sweep(&mut self, options: &QueueOptions, moment: Moment) -> Sweep {
        let mut sweep = Sweep::default();
        for job in self.jobs.values_mut() {
            if job.state == JobState::Running && job.lease_until.is_some_and(|until| until <= moment.now) {
                job.expire(options, rand::random(), moment);
                sweep.count(job);
            }
        }
        sweep
    }

    fn next(&self, request: &ClaimRequest, options: &QueueOptions, now: Timestamp) -> Option<(TeamId, String)> {
        let mut lanes: Vec<(u64, &TeamId)> = self.served.iter().map(|(team, served)| (*served, team)).collect();
        lanes.sort_unstable();
        lanes.into_iter().find_map(|(_, team)| {
            let running = self.of(team, JobState::Running).count();
            if running >= usize::try_from(options.team_cap.max(1)).unwrap_or(usize::MAX) {
                return None;
            }
            self.of(team, JobState::Waiting)
                .filter(|job| job.run_at <= now && (request.kinds.is_empty() || request.kinds.contains(&job.kind)))
                .filter(|job| !self.of(team, JobState::Running).any(|other| is_same_matter(job, other)))
                .min_by_key(|job| (job.run_at, job.seq))
                .map(|job| (team.clone(), job.id.clone()))
        })
    }
}

fn is_same_matter(one: &Job, other: &Job) -> bool {
    one.kind == other.kind && one.merge_key.is_some() && one.merge_key == other.merge_key
}

#[async_trait]
impl Queue for InMemoryQueue {
    async fn enqueue(&self, job: NewJob) -> Result<Enqueued, QueueError> {
        let mut state = self.lock();
        let key = (job.team.clone(), job.id.clone());
        if let Some(known) = state.jobs.get(&key) {
            return Ok(Enqueued::Known(known.state));
        }
        let seq = state.jobs.values().map(|job| job.seq).max().unwrap_or(0) + 1;
        let mut outcome = Enqueued::New;
        let moment = self.clock.read();
        let mut added = Job::new(job.clone(), seq, moment);
        let older = state
            .jobs
            .values_mut()
            .filter(|older| older.team == job.team && older.state == JobState::Waiting && is_same_matter(older, &added))
            .max_by_key(|older| older.seq);
        if let Some(older) = older {
            let payload = (self.options.merge)(older, &job);
            added.absorb(older, payload, moment.now);
            outcome = Enqueued::Absorbed(older.id.clone());
        }
        state.served.entry(added.team.clone()).or_insert(0);
        state.jobs.insert(key, added);
        drop(state);
        self.wakes.notify_waiters();
        Ok(outcome)
    }

    async fn claim(&self, request: ClaimRequest) -> Result<Option<ClaimedJob>, QueueError> {
        let mut state = self.lock();
        let moment = self.clock.read();
        state.sweep(&self.options, moment);
        let now = moment.now;
        let Some((team, id)) = state.next(&request, &self.options, now) else {
            return Ok(None);
        };
        let turn = state.served.values().max().copied().unwrap_or(0) + 1;
        let claimed = state.job(&team, &id)?.hand_out(&request, now);
        state.served.insert(team, turn);
        Ok(Some(claimed))
    }

    async fn check(&self, claim: &Claim) -> Result<(), QueueError> {
        self.lock().job(&claim.team, &claim.job)?.check(claim)
    }

    async fn heartbeat(&self, claim: &Claim, lease: Duration) -> Result<Heartbeat, QueueError> {
        self.step(&claim.team, &claim.job, |job, moment| {
            job.beat(claim, lease, moment.now)
        })
    }

    async fn complete(&self, claim: &Claim) -> Result<(), QueueError> {
        self.step(&claim.team, &claim.job, |job, moment| job.complete(claim, moment.now))
    }

    async fn fail(&self, claim: &Claim, failure: Failure) -> Result<JobState, QueueError> {
        self.step(&claim.team, &claim.job, |job, moment| {
            job.fail(claim, &failure, &self.options, rand::random(), moment)?;
            Ok(job.state)
        })
    }

    async fn release(&self, claim: &Claim, reason: Release) -> Result<JobState, QueueError> {
        self.step(&claim.team, &claim.job, |job, moment| {
            job.release(claim, reason, &self.options, moment.now)?;
            Ok(job.state)
        })
    }

    async fn cancel(&self, team: &TeamId, id: &str) -> Result<Cancelled, QueueError> {
        self.step(team, id, |job, moment| Ok(job.cancel(moment.now)))
    }

    async fn ask_to_give_way(&self, team: &TeamId, merge_key: &str) -> Result<u64, QueueError> {
        let mut asked = 0;
        for job in self.lock().jobs.values_mut() {
            let is_meant = job.team == *team && job.merge_key.as_deref() == Some(merge_key);
            if is_meant && job.state == JobState::Running {
                job.yield_requested = true;
                asked += 1;
            }
        }
        Ok(asked)
    }

    async fn revive(&self, team: &TeamId, id: &str) -> Result<(), QueueError> {
        self.step(team, id, |job, moment| job.revive(moment.now))
    }

    async fn sweep(&self) -> Result<Sweep, QueueError> {
        let sweep = self.lock().sweep(&self.options, self.clock.read());
        self.wakes.notify_waiters();
        Ok(sweep)
    }

    async fn get(&self, team: &TeamId, id: &str) -> Result<Job, QueueError> {
        Ok(self.lock().job(team, id)?.clone())
    }

    async fn list(&self, list: ListJobs) -> Result<Vec<Job>, QueueError> {
        let state = self.lock();
        let mut jobs: Vec<Job> = state
            .jobs
            .values()
            .filter(|job| list.team.as_ref().is_none_or(|team| job.team == *team))
            .filter(|job| list.states.is_empty() || list.states.contains(&job.state))
            .filter(|job| job.seq > list.after)
            .cloned()
            .collect();
        jobs.sort_unstable_by_key(|job| job.seq);
        jobs.truncate(usize::try_from(list.limit).unwrap_or(usize::MAX));
        Ok(jobs)
    }

    async fn stats(&self) -> Result<QueueStats, QueueError> {
        let state = self.lock();
        let moment = self.clock.read();
        let now = moment.now;
        let mut standing = QueueStats::default();
        for job in state.jobs.values() {
            *standing.by_state.entry(job.state).or_insert(0) += 1;
        }
        let waiting = || {
            state
                .jobs
                .values()
                .filter(|job| job.state == JobState::Waiting)
                .map(|job| job.run_at)
        };
        let due = || waiting().filter(|run_at| *run_at <= now);
        standing.ready = u64::try_from(due().count()).unwrap_or(u64::MAX);
        standing.oldest_ready = due().min().map(|run_at| now.since(run_at));
        let next_due = waiting().filter(|run_at| *run_at > now).min();
        standing.next_due = next_due.map(|at| moment.told(at));
        Ok(standing)
    }

    fn wakes(&self) -> &Notify {
        &self.wakes
    }
}
