//! What a run keeps while it goes on, under the fence of its claim.

use std::collections::BTreeMap;

use async_trait::async_trait;
use steward_base::Timestamp;
use steward_curator_core::Error;
use steward_curator_core::curation::RunId;
use steward_curator_core::curation::execute::{Plan, RunJournal};
use steward_queue::Claim;
use steward_runtime::failpoint;

use super::super::Ledger;
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
        let team = self.claim.team.clone();
        let seen = self.ledger.read_beside(move |_, db| {
            let sql = "SELECT skill, first_seen FROM curation_seen WHERE team = ?";
            db.all(sql, [team.as_str()], |row| {
                Ok((row.get("skill")?, Timestamp::from_micros(row.get("first_seen")?)))
            })
        });
        Ok(seen.await?.into_iter().collect())
    }

    async fn plan(&self) -> Result<Option<Plan>, Error> {
        let claim = self.claim.clone();
        let plan = self.ledger.read_beside(move |_, db| {
            let sql = "SELECT plan FROM curation_run WHERE team = ? AND id = ?";
            let plan: Option<String> = db.value(sql, (claim.team.as_str(), &claim.job))?;
            plan.map(|plan| serde_json::from_str(&plan).map_err(unreadable))
                .transpose()
        });
        plan.await
    }

    async fn keep_plan(&self, plan: &Plan) -> Result<(), Error> {
        let json = serde_json::to_string(plan).map_err(|error| Error::unreadable("a plan", error))?;
        let seen: Vec<String> = plan.first_seen().map(str::to_owned).collect();
        let (claim, at) = (self.claim.clone(), plan.at);
        let kept = self.ledger.write(move |ledger, db| {
            ledger.steps.check(db, &claim)?;
            let team = claim.team.as_str();
            let sql = "UPDATE curation_run SET plan = ? WHERE team = ? AND id = ?";
            db.execute(sql, (json, team, &claim.job))?;
            for skill in seen {
                let sql = "INSERT INTO curation_seen (team, skill, first_seen) VALUES (?, ?, ?) ON CONFLICT DO NOTHING";
                db.execute(sql, (team, skill, at.as_micros()))?;
            }
            Ok(())
        });
        kept.await?;
        failpoint::hit("curation.plan.after");
        Ok(())
    }

    async fn keep_snapshot(&self, snapshot: &str) -> Result<(), Error> {
        let (claim, snapshot) = (self.claim.clone(), snapshot.to_owned());
        let kept = self.ledger.write(move |ledger, db| {
            ledger.steps.check(db, &claim)?;
            let sql = "UPDATE curation_run SET snapshot = ? WHERE team = ? AND id = ?";
            db.execute(sql, (snapshot, claim.team.as_str(), &claim.job))?;
            Ok(())
        });
        kept.await?;
        failpoint::hit("curation.snapshot.after");
        Ok(())
    }

    async fn changed_nothing(&self, run: &RunId) -> Result<bool, Error> {
        let found = self
            .ledger
            .read(|db| rows::get(db, &self.claim.team, run.as_str()))
            .await?;
        Ok(found.is_some_and(|run| run.changed_nothing()))
    }
}
