//! Reading runs on behalf of a person.

use steward_base::names::TeamId;
use steward_curator_core::Error;
use steward_curator_core::curation::{Run, RunId, run_name};

use super::super::Ledger;
use super::rows;

/// A page of runs, newest first.
#[derive(Debug, Clone)]
pub(crate) struct RunPage {
    pub(crate) runs: Vec<Run>,
    /// Where the next page starts; absent at the end.
    pub(crate) next: Option<(i64, String)>,
}

impl Ledger {
    /// A run with both forms of its report, which are empty until it ended well.
    pub(crate) async fn run_report(&self, team: &TeamId, id: &RunId) -> Result<(Run, String, String), Error> {
        let found = self.read(|db| {
            let sql = "SELECT * FROM curation_run WHERE team = ? AND id = ?";
            db.first(sql, (team.as_str(), id.as_str()), |row| {
                Ok((rows::read(row)?, row.get("run_json")?, row.get("report")?))
            })
        });
        found.await?.ok_or_else(|| Error::RunNotFound {
            run: run_name(team, id),
        })
    }

    /// Runs made before a point, newest first.
    pub(crate) async fn runs(&self, team: &TeamId, before: Option<(i64, String)>, size: u32) -> Result<RunPage, Error> {
        let (at, id) = before.unwrap_or((i64::MAX, String::new()));
        let team = team.clone();
        let page = self.read_beside(move |_, db| {
            let sql = "SELECT * FROM curation_run WHERE team = ? AND (created_at, id) < (?, ?)
                 ORDER BY created_at DESC, id DESC LIMIT ?";
            db.all(sql, (team.as_str(), at, id, i64::from(size) + 1), rows::read)
        });
        let mut runs = page.await?;
        let is_more = runs.len() > size as usize;
        runs.truncate(size as usize);
        let next = runs.last().filter(|_| is_more);
        let next = next.map(|run| (run.created_at.as_micros(), run.id.to_string()));
        Ok(RunPage { runs, next })
    }
}
