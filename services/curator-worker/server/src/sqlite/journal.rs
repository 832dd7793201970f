//! The journal of a job: rows that are added under the fence of a claim and never changed (`R-9`).

use async_trait::async_trait;
use serde::Serialize;
use serde::de::DeserializeOwned;
use steward_agent::kernel::StepRef;
use steward_base::names::TeamId;
use steward_curator_core::Error;
use steward_curator_core::ports::{CallRecord, Journal, Journalled, KeptReply, Opening};
use steward_queue::Claim;
use steward_runtime::failpoint;
use steward_store::{Db, Row};

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
        let added = self.ledger.write(move |ledger, db| {
            ledger.steps.check(db, &claim)?;
            insert(db, &claim, entry, &content)
        });
        added.await
    }
}

#[async_trait]
impl Journal for SqliteJournal {
    async fn load(&self) -> Result<Journalled, Error> {
        let claim = self.claim.clone();
        self.ledger
            .read_beside(move |_, db| load(db, &claim.team, &claim.job))
            .await
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

fn insert(db: Db<'_>, claim: &Claim, entry: Entry, content: &str) -> Result<(), Failure> {
    let fence = i64::try_from(claim.fence).unwrap_or(i64::MAX);
    let (team, job) = (claim.team.as_str(), claim.job.as_str());
    match entry {
        Entry::Opening => db.execute(
            "INSERT INTO journal_opening (team, job, content) VALUES (?, ?, ?) ON CONFLICT DO NOTHING",
            (team, job, content),
        )?,
        Entry::Reply(at) => db.execute(
            "INSERT INTO journal_reply (team, job, step, attempt, content, fence) VALUES (?, ?, ?, ?, ?, ?)
             ON CONFLICT DO NOTHING",
            (team, job, at.step, at.attempt, content, fence),
        )?,
        Entry::Answer { step, call } => db.execute(
            "INSERT INTO journal_answer (team, job, step, call, content, fence) VALUES (?, ?, ?, ?, ?, ?)
             ON CONFLICT DO NOTHING",
            (team, job, step, call, content, fence),
        )?,
    };
    Ok(())
}

/// Everything that the tries of a job have journalled.
pub(super) fn load(db: Db<'_>, team: &TeamId, job: &str) -> Result<Journalled, Failure> {
    let key = (team.as_str(), job);
    let opening = "SELECT content FROM journal_opening WHERE team = ? AND job = ?";
    let replies = "SELECT step, attempt, content FROM journal_reply WHERE team = ? AND job = ?";
    let answers = "SELECT step, call, content FROM journal_answer WHERE team = ? AND job = ?";
    Ok(Journalled {
        opening: db.first(opening, key, content)?,
        replies: db.all(replies, key, reply)?.into_iter().collect(),
        answers: db.all(answers, key, answer)?.into_iter().collect(),
    })
}

fn reply(row: &Row<'_>) -> Result<(StepRef, KeptReply), Failure> {
    let at = StepRef {
        step: row.get("step")?,
        attempt: row.get("attempt")?,
    };
    Ok((at, content(row)?))
}

fn answer(row: &Row<'_>) -> Result<((u32, usize), CallRecord), Failure> {
    let call = usize::try_from(row.get::<_, i64>("call")?).unwrap_or(usize::MAX);
    Ok(((row.get("step")?, call), content(row)?))
}

fn content<T: DeserializeOwned>(row: &Row<'_>) -> Result<T, Failure> {
    let content: String = row.get("content")?;
    Ok(serde_json::from_str(&content).map_err(|error| Error::unreadable("a journal entry", error))?)
}
