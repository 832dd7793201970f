//! Reading runs on behalf of a person.

use sqlx::Row as _;
use steward_base::names::TeamId;
use steward_curator_core::Error;
use steward_curator_core::curation::{Run, RunId, run_name};

use super::super::{Failure, Ledger};
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
        let read = async {
            let mut connection = self.sqlite.read().await?;
            let row = sqlx::query("SELECT * FROM curation_run WHERE team = ? AND id = ?")
                .bind(team.as_str())
                .bind(id.as_str())
                .fetch_optional(&mut *connection)
                .await?;
            let row = row.ok_or_else(|| Error::RunNotFound {
                run: run_name(team, id),
            })?;
            let report = (row.try_get("run_json")?, row.try_get("report")?);
            Ok::<_, Failure>((rows::read(&row)?, report.0, report.1))
        };
        read.await.map_err(|Failure(error)| error)
    }

    /// Runs made before a point, newest first.
    pub(crate) async fn runs(&self, team: &TeamId, before: Option<(i64, String)>, size: u32) -> Result<RunPage, Error> {
        let (at, id) = before.unwrap_or((i64::MAX, String::new()));
        let read = async {
            let mut connection = self.sqlite.read().await?;
            let found = sqlx::query(
                "SELECT * FROM curation_run WHERE team = ? AND (created_at, id) < (?, ?)
                 ORDER BY created_at DESC, id DESC LIMIT ?",
            )
            .bind(team.as_str())
            .bind(at)
            .bind(id)
            .bind(i64::from(size) + 1)
            .fetch_all(&mut *connection)
            .await?;
            found.iter().map(rows::read).collect::<Result<Vec<_>, Failure>>()
        };
        let mut runs = read.await.map_err(|Failure(error)| error)?;
        let is_more = runs.len() > size as usize;
        runs.truncate(size as usize);
        let next = runs.last().filter(|_| is_more);
        let next = next.map(|run| (run.created_at.as_micros(), run.id.to_string()));
        Ok(RunPage { runs, next })
    }
}
