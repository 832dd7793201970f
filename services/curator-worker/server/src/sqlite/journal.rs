//! The journal of a job: rows that are added under the fence of a claim and never changed (`R-9`).

use async_trait::async_trait;
use serde::Serialize;
use serde::de::DeserializeOwned;
use sqlx::{Row as _, SqliteConnection};
use steward_agent::kernel::StepRef;
use steward_base::names::TeamId;
use steward_curator_core::Error;
use steward_curator_core::ports::{CallRecord, Journal, Journalled, KeptReply, Opening};
use steward_queue::Claim;
use steward_runtime::failpoint;

use super::{Failure, Ledger};

/// The journal of a claimed job.
#[derive(Debug)]
pub(crate) struct SqliteJournal {
    ledger: Ledger,
    claim: Claim,
}

impl Ledger {
    /// The journal under this claim.
    pub(crate) fn journal(&self, claim: &Claim) -> SqliteJournal {
        SqliteJournal {
            ledger: self.clone(),
            claim: claim.clone(),
        }
    }
}

/// What a row is.
#[derive(Debug, Clone, Copy)]
enum Entry {
    Opening,
    Reply(StepRef),
    Answer { step: u32, call: i64 },
}

impl SqliteJournal {
    async fn add(&self, entry: Entry, content: &(impl Serialize + Sync)) -> Result<(), Error> {
        let content = serde_json::to_string(content).map_err(|error| Error::unreadable("a journal entry", error))?;
        let claim = self.claim.clone();
        let added = self.ledger.write(move |ledger, connection| {
            Box::pin(async move {
                ledger.jobs.check(connection, &claim).await?;
                insert(connection, &claim, entry, &content).await
            })
        });
        added.await
    }
}

#[async_trait]
impl Journal for SqliteJournal {
    async fn load(&self) -> Result<Journalled, Error> {
        let read = async {
            let mut connection = self.ledger.sqlite.read().await?;
            load(&mut connection, &self.claim.team, &self.claim.job).await
        };
        read.await.map_err(|Failure(error)| error)
    }

    async fn record_opening(&self, opening: &Opening) -> Result<(), Error> {
        self.add(Entry::Opening, opening).await
    }

    async fn record_reply(&self, at: StepRef, reply: &KeptReply) -> Result<(), Error> {
        failpoint::hit("review.journal.before");
        self.add(Entry::Reply(at), reply).await?;
        failpoint::hit("review.journal.after");
        Ok(())
    }

    async fn record_answer(&self, step: u32, call: usize, answer: &CallRecord) -> Result<(), Error> {
        let call = i64::try_from(call).unwrap_or(i64::MAX);
        self.add(Entry::Answer { step, call }, answer).await
    }
}

async fn insert(connection: &mut SqliteConnection, claim: &Claim, entry: Entry, content: &str) -> Result<(), Failure> {
    let fence = i64::try_from(claim.fence).unwrap_or(i64::MAX);
    let (team, job) = (claim.team.as_str(), claim.job.as_str());
    let query = match entry {
        Entry::Opening => {
            sqlx::query("INSERT INTO journal_opening (team, job, content) VALUES (?, ?, ?) ON CONFLICT DO NOTHING")
                .bind(team)
                .bind(job)
                .bind(content)
        }
        Entry::Reply(at) => sqlx::query(
            "INSERT INTO journal_reply (team, job, step, attempt, content, fence) VALUES (?, ?, ?, ?, ?, ?)
             ON CONFLICT DO NOTHING",
        )
        .bind(team)
        .bind(job)
        .bind(at.step)
        .bind(at.attempt)
        .bind(content)
        .bind(fence),
        Entry::Answer { step, call } => sqlx::query(
            "INSERT INTO journal_answer (team, job, step, call, content, fence) VALUES (?, ?, ?, ?, ?, ?)
             ON CONFLICT DO NOTHING",
        )
        .bind(team)
        .bind(job)
        .bind(step)
        .bind(call)
        .bind(content)
        .bind(fence),
    };
    query.execute(connection).await?;
    Ok(())
}

/// Everything that the tries of a job have journalled.
pub(super) async fn load(connection: &mut SqliteConnection, team: &TeamId, job: &str) -> Result<Journalled, Failure> {
    let mut journalled = Journalled::default();
    let opening: Option<String> = sqlx::query_scalar("SELECT content FROM journal_opening WHERE team = ? AND job = ?")
        .bind(team.as_str())
        .bind(job)
        .fetch_optional(&mut *connection)
        .await?;
    journalled.opening = opening.as_deref().map(parse).transpose()?;
    let replies = sqlx::query("SELECT step, attempt, content FROM journal_reply WHERE team = ? AND job = ?")
        .bind(team.as_str())
        .bind(job)
        .fetch_all(&mut *connection)
        .await?;
    for row in replies {
        let at = StepRef {
            step: row.try_get("step")?,
            attempt: row.try_get("attempt")?,
        };
        journalled.replies.insert(at, parse(row.try_get("content")?)?);
    }
    let answers = sqlx::query("SELECT step, call, content FROM journal_answer WHERE team = ? AND job = ?")
        .bind(team.as_str())
        .bind(job)
        .fetch_all(&mut *connection)
        .await?;
    for row in answers {
        let call = usize::try_from(row.try_get::<i64, _>("call")?).unwrap_or(usize::MAX);
        journalled
            .answers
            .insert((row.try_get("step")?, call), parse(row.try_get("content")?)?);
    }
    Ok(journalled)
}

fn parse<T: DeserializeOwned>(content: &str) -> Result<T, Failure> {
    Ok(serde_json::from_str(content).map_err(|error| Error::unreadable("a journal entry", error))?)
}
