//! What a run keeps while it goes on, under the fence of its claim.

use std::collections::BTreeMap;

use async_trait::async_trait;
use steward_base::Timestamp;
use steward_curator_core::Error;
use steward_curator_core::curation::RunId;
use steward_curator_core::curation::execute::{Plan, RunJournal};
use steward_queue::Claim;
use steward_runtime::failpoint;

use super::super::{Failure, Ledger};
use super::rows::{self, unreadable};

/// The journal of one claim.
#[derive(Debug)]
pub(crate) struct CurationJournal {
    ledger: Ledger,
    claim: Claim,
}

impl Ledger {
    /// The journal of a run.
    pub(crate) fn curation_journal(&self, claim: &Claim) -> CurationJournal {
        CurationJournal {
            ledger: self.clone(),
            claim: claim.clone(),
        }
    }
}

#[async_trait]
impl RunJournal for CurationJournal {
    async fn seen(&self) -> Result<BTreeMap<String, Timestamp>, Error> {
        let read = async {
            let mut connection = self.ledger.sqlite.read().await?;
            let rows: Vec<(String, i64)> = sqlx::query_as("SELECT skill, first_seen FROM curation_seen WHERE team = ?")
                .bind(self.claim.team.as_str())
                .fetch_all(&mut *connection)
                .await?;
            Ok::<_, Failure>(rows)
        };
        let rows = read.await.map_err(|Failure(error)| error)?;
        Ok(rows
            .into_iter()
            .map(|(skill, at)| (skill, Timestamp::from_micros(at)))
            .collect())
    }

    async fn plan(&self) -> Result<Option<Plan>, Error> {
        let read = async {
            let mut connection = self.ledger.sqlite.read().await?;
            let plan: Option<String> = sqlx::query_scalar("SELECT plan FROM curation_run WHERE team = ? AND id = ?")
                .bind(self.claim.team.as_str())
                .bind(&self.claim.job)
                .fetch_one(&mut *connection)
                .await?;
            plan.map(|plan| serde_json::from_str(&plan).map_err(unreadable))
                .transpose()
        };
        read.await.map_err(|Failure(error)| error)
    }

    async fn keep_plan(&self, plan: &Plan) -> Result<(), Error> {
        let json = serde_json::to_string(plan).map_err(|error| Error::unreadable("a plan", error))?;
        let seen: Vec<String> = plan.first_seen().map(str::to_owned).collect();
        let (claim, at) = (self.claim.clone(), plan.at);
        let kept = self.ledger.write(move |ledger, connection| {
            Box::pin(async move {
                ledger.jobs.check(connection, &claim).await?;
                sqlx::query("UPDATE curation_run SET plan = ? WHERE team = ? AND id = ?")
                    .bind(json)
                    .bind(claim.team.as_str())
                    .bind(&claim.job)
                    .execute(&mut *connection)
                    .await?;
                for skill in seen {
                    sqlx::query(
                        "INSERT INTO curation_seen (team, skill, first_seen) VALUES (?, ?, ?) ON CONFLICT DO NOTHING",
                    )
                    .bind(claim.team.as_str())
                    .bind(skill)
                    .bind(at.as_micros())
                    .execute(&mut *connection)
                    .await?;
                }
                Ok(())
            })
        });
        kept.await?;
        failpoint::hit("curation.plan.after");
        Ok(())
    }

    async fn keep_snapshot(&self, snapshot: &str) -> Result<(), Error> {
        let (claim, snapshot) = (self.claim.clone(), snapshot.to_owned());
        let kept = self.ledger.write(move |ledger, connection| {
            Box::pin(async move {
                ledger.jobs.check(connection, &claim).await?;
                sqlx::query("UPDATE curation_run SET snapshot = ? WHERE team = ? AND id = ?")
                    .bind(snapshot)
                    .bind(claim.team.as_str())
                    .bind(&claim.job)
                    .execute(connection)
                    .await?;
                Ok(())
            })
        });
        kept.await?;
        failpoint::hit("curation.snapshot.after");
        Ok(())
    }

    async fn changed_nothing(&self, run: &RunId) -> Result<bool, Error> {
        let read = async {
            let mut connection = self.ledger.sqlite.read().await?;
            rows::get(&mut connection, &self.claim.team, run.as_str()).await
        };
        let found = read.await.map_err(|Failure(error)| error)?;
        Ok(found.is_some_and(|run| run.changed_nothing()))
    }
}
