//! Queue and ledger in one SQLite database, `learning.db`: every step of a job and the row that tells of it are one
//! transaction, so that a review can neither end unseen nor be shown as what it is not.
//!
//! What a step means is decided by the core ([`Review`]) and the queue ([`JobSteps`]); here the two are tied together.

mod curation;
mod journal;
mod person;
mod queries;
mod rows;
mod settle;
#[cfg(test)]
mod tests;

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use steward_base::Clock;
use steward_base::names::{ReviewId, TeamId};
use steward_curator_core::review::{Due, Ending, Problem, Review, ReviewState, review_name};
use steward_curator_core::{Error, plan};
use steward_queue::{
    Cancelled, Claim, ClaimRequest, ClaimedJob, Enqueued, Heartbeat, JobSteps, NewJob, QueueError, QueueOptions,
};
use steward_runtime::failpoint;
use steward_store::{Db, SqlError, Sqlite, SqliteOptions, StoreError};
use tokio::sync::Notify;

pub(crate) use curation::{Candidate, ClaimedRun, NewRun, RunTried};
pub(crate) use queries::Whose;

use crate::metrics::Metrics;

static MIGRATIONS: sqlx::migrate::Migrator = sqlx::migrate!();

/// Kind of the jobs.
const REVIEW: &str = "review";

/// A review that was handed out.
#[derive(Debug, Clone)]
pub(crate) struct Claimed {
    /// The job.
    pub(crate) job: ClaimedJob,
    /// Its row, running.
    pub(crate) review: Review,
}

/// The learning database. Clones share it.
#[derive(Debug, Clone)]
pub(crate) struct Ledger {
    sqlite: Sqlite,
    steps: JobSteps,
    clock: Arc<dyn Clock>,
    signals: Arc<Signals>,
    metrics: Metrics,
    /// Reviews that the running transaction ends; counted once it is kept.
    ended: Arc<Mutex<Vec<ReviewState>>>,
}

/// Hints that spare idle polling; polling is the truth.
#[derive(Debug, Default)]
pub(crate) struct Signals {
    /// There may be something to claim.
    pub(crate) claimable: Notify,
    /// Somebody asked something of a running review.
    pub(crate) asked: Notify,
    /// A review changed.
    pub(crate) changed: Notify,
}

/// The error of a transaction.
#[derive(Debug)]
pub(crate) struct Failure(Error);

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Self(error)
    }
}

impl From<StoreError> for Failure {
    fn from(error: StoreError) -> Self {
        Self(Error::store(error))
    }
}

impl From<SqlError> for Failure {
    fn from(error: SqlError) -> Self {
        Self(Error::store(StoreError::from(error)))
    }
}

impl From<QueueError> for Failure {
    fn from(error: QueueError) -> Self {
        Self(match error {
            QueueError::StaleFence { id, fence, current, .. } => Error::StaleFence {
                review: id,
                fence,
                current,
            },
            other => Error::store(other),
        })
    }
}

impl Ledger {
    pub(crate) async fn open(
        path: PathBuf,
        readers: u32,
        options: QueueOptions,
        clock: Arc<dyn Clock>,
    ) -> Result<Self, StoreError> {
        let sqlite = Sqlite::open(
            path,
            SqliteOptions {
                migrator: &MIGRATIONS,
                readers,
                on_migrate: None,
                on_open: None,
            },
        )
        .await?;
        let steps = JobSteps::new(Arc::clone(&clock), options);
        Ok(Self {
            sqlite,
            steps,
            clock,
            signals: Arc::default(),
            metrics: Metrics::of_process(),
            ended: Arc::default(),
        })
    }

    /// Writes the log back and lets go of the file.
    pub(crate) async fn close(&self) {
        self.sqlite.close().await;
    }

    pub(crate) fn metrics(&self) -> &Metrics {
        &self.metrics
    }

    pub(crate) fn signals(&self) -> &Signals {
        &self.signals
    }

    /// Puts due reviews into the queue and the ledger, once per id. A newer one takes over an older one that waits, and
    /// asks one that runs to give way (`R-2`). Answers how many were new.
    pub(crate) async fn enqueue(&self, dues: Vec<Due>) -> Result<u64, Error> {
        let new = self.write_and_tell(move |ledger, db| {
            let mut new = 0;
            for due in dues {
                new += u64::from(ledger.enqueue_one(db, due)?);
            }
            Ok(new)
        });
        let new = new.await?;
        if new > 0 {
            self.signals.claimable.notify_waiters();
            self.signals.asked.notify_waiters();
        }
        Ok(new)
    }

    fn enqueue_one(&self, db: Db<'_>, due: Due) -> Result<bool, Failure> {
        let job = NewJob {
            team: due.team.clone(),
            id: due.id.to_string(),
            kind: REVIEW.to_owned(),
            payload: String::new(),
            merge_key: Some(due.session.to_string()),
            run_at: None,
            start_by: Some(plan::start_by(due.created_at)),
        };
        let mut review = Review::queued(due);
        match self.steps.enqueue(db, &job)? {
            Enqueued::Known(_) => return Ok(false),
            Enqueued::New => {}
            Enqueued::Absorbed(older) => {
                let mut older = rows::get(db, &review.team, &older)?.ok_or_else(lost)?;
                review.absorb(&mut older, self.clock.now());
                self.keep(db, &older)?;
            }
        }
        self.keep(db, &review)?;
        self.steps.ask_to_give_way(db, &review.team, review.session.as_str())?;
        Ok(true)
    }

    /// Hands out the next review; its row says that it runs.
    pub(crate) async fn claim(&self, worker: &str, lease: Duration) -> Result<Option<Claimed>, Error> {
        let request = ClaimRequest {
            worker: worker.to_owned(),
            kinds: vec![REVIEW.to_owned()],
            lease,
        };
        let claimed = self.write_and_tell(move |ledger, db| {
            let claimed = ledger.steps.claim(db, &request)?;
            ledger.settle_swept(db)?;
            let Some(job) = claimed else { return Ok(None) };
            let Some(mut review) = rows::readable(db, &job.claim.team, &job.claim.job)? else {
                ledger.give_up(db, &job.claim)?;
                return Ok(None);
            };
            review.begin(job.job.attempts);
            // Inside, since an idle worker looks for work all the time.
            failpoint::hit("review.claim.before");
            ledger.keep(db, &review)?;
            Ok(Some(Claimed { job, review }))
        });
        let claimed = claimed.await?;
        if claimed.is_some() {
            failpoint::hit("review.claim.after");
        }
        Ok(claimed)
    }

    /// Ends a job whose row is damaged: it must not keep all others waiting.
    fn give_up(&self, db: Db<'_>, claim: &Claim) -> Result<(), Failure> {
        let failure = steward_queue::Failure {
            message: "its row cannot be read".to_owned(),
            retry: false,
            not_before: None,
        };
        self.steps.fail(db, claim, &failure)?;
        Ok(())
    }

    /// Takes back reviews whose worker was not heard of; those without a try left end here.
    pub(crate) async fn sweep(&self) -> Result<u64, Error> {
        let swept = self.write_and_tell(|ledger, db| {
            let swept = ledger.steps.sweep(db)?;
            ledger.settle_swept(db)?;
            Ok(swept.waiting + swept.ended)
        });
        let swept = swept.await?;
        if swept > 0 {
            self.signals.claimable.notify_waiters();
        }
        Ok(swept)
    }

    /// Renews a lease and brings back what others ask of the worker.
    pub(crate) async fn heartbeat(&self, claim: &Claim, lease: Duration) -> Result<Heartbeat, Error> {
        let claim = claim.clone();
        self.write(move |ledger, db| Ok(ledger.steps.heartbeat(db, &claim, lease)?))
            .await
    }

    /// Ends a waiting review at once and asks a running one to stop.
    pub(crate) async fn cancel(&self, team: &TeamId, id: &ReviewId) -> Result<Review, Error> {
        let (team, id) = (team.clone(), id.clone());
        let cancelled = self.write_and_tell(move |ledger, db| {
            let mut review = existing(db, &team, &id)?;
            review.may_be_cancelled()?;
            if ledger.steps.cancel(db, &team, id.as_str())? == Cancelled::AtOnce {
                let report = review.report.clone();
                review.end(Ending::Cancelled(by_a_person()), report, ledger.clock.now());
                ledger.keep(db, &review)?;
            }
            Ok(review)
        });
        let review = cancelled.await?;
        self.signals.asked.notify_waiters();
        Ok(review)
    }

    /// Gives a failed, dead or cancelled review a fresh start. Its journal is kept, so that no write is done twice.
    pub(crate) async fn retry(&self, team: &TeamId, id: &ReviewId) -> Result<Review, Error> {
        let (team, id) = (team.clone(), id.clone());
        let retried = self.write_and_tell(move |ledger, db| {
            let mut review = existing(db, &team, &id)?;
            review.retry()?;
            ledger.steps.revive(db, &team, id.as_str())?;
            ledger.keep(db, &review)?;
            Ok(review)
        });
        let review = retried.await?;
        self.signals.claimable.notify_waiters();
        Ok(review)
    }

    /// A read of what is found by a key, of one moment.
    async fn read<T>(&self, work: impl FnOnce(Db<'_>) -> Result<T, Failure>) -> Result<T, Error> {
        self.sqlite.view(work).await.map_err(|Failure(error)| error)
    }

    /// A read that may take longer, of one moment.
    async fn read_beside<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Self, Db<'_>) -> Result<T, Failure> + Send + 'static,
    ) -> Result<T, Error> {
        let ledger = self.clone();
        let read = self.sqlite.view_beside(move |db| work(&ledger, db));
        read.await.map_err(|Failure(error)| error)
    }

    /// One transaction.
    async fn write<T: Send + 'static>(
        &self,
        operation: impl FnOnce(&Self, Db<'_>) -> Result<T, Failure> + Send + 'static,
    ) -> Result<T, Error> {
        let ended: Arc<Mutex<Vec<ReviewState>>> = Arc::default();
        let ledger = Self {
            ended: Arc::clone(&ended),
            ..self.clone()
        };
        let outcome = self.sqlite.update(move |db| operation(&ledger, db)).await;
        if outcome.is_ok() {
            for state in std::mem::take(&mut *ended.lock().unwrap_or_else(PoisonError::into_inner)) {
                self.metrics.ended(state);
            }
        }
        outcome.map_err(|Failure(error)| error)
    }

    /// Keeps a row as a change that people are shown, and notes its end.
    fn keep(&self, db: Db<'_>, review: &Review) -> Result<(), Failure> {
        rows::save_changed(db, review)?;
        if review.state.is_final() {
            let mut ended = self.ended.lock().unwrap_or_else(PoisonError::into_inner);
            ended.push(review.state);
        }
        Ok(())
    }

    /// One transaction; whoever watches hears of it afterwards.
    async fn write_and_tell<T: Send + 'static>(
        &self,
        operation: impl FnOnce(&Self, Db<'_>) -> Result<T, Failure> + Send + 'static,
    ) -> Result<T, Error> {
        let outcome = self.write(operation).await?;
        self.signals.changed.notify_waiters();
        Ok(outcome)
    }
}

/// A review that a person names.
fn existing(db: Db<'_>, team: &TeamId, id: &ReviewId) -> Result<Review, Failure> {
    let missing = || Error::ReviewNotFound {
        review: review_name(team, id),
    };
    Ok(rows::get(db, team, id.as_str())?.ok_or_else(missing)?)
}

fn by_a_person() -> Problem {
    Problem::new("CANCELLED", "A person cancelled it.")
}

/// Queue and ledger are written together; a job without a row means that the database was changed by somebody else.
fn lost() -> Error {
    Error::unreadable("the ledger", "a job has no row")
}
