//! `steward.learning.v1.CuratorService`: one file per RPC, which decodes, reads or changes the ledger, and encodes.

mod convert;
mod get_curation_report;
mod get_curation_status;
mod list_curation_runs;
mod pause_curation;
mod resume_curation;
mod rollback_curation_run;
mod run_curation;

use std::sync::Arc;

use steward_base::names::{TeamId, UserId, parse_team, segments};
use steward_base::{Caller, Clock, FieldViolations, IdGen, PerTeam};
use steward_curator_core::Error;
use steward_curator_core::curation::RunId;
use steward_curator_core::curation::due::Rhythm;
use steward_proto::learning::v1 as pb;
use steward_proto::learning::v1::curator_service_server::CuratorService;
use tonic::{Request, Response, Status};

use crate::sqlite::Ledger;

/// Longest request id, in characters.
const MAX_REQUEST_ID: usize = 128;

/// The RPCs of curations.
#[derive(Debug, Clone)]
pub(crate) struct CuratorHandlers {
    ledger: Ledger,
    rhythm: PerTeam<Rhythm>,
    clock: Arc<dyn Clock>,
    ids: Arc<dyn IdGen>,
}

impl CuratorHandlers {
    pub(crate) fn new(ledger: Ledger, rhythm: PerTeam<Rhythm>, clock: Arc<dyn Clock>, ids: Arc<dyn IdGen>) -> Self {
        Self {
            ledger,
            rhythm,
            clock,
            ids,
        }
    }

    fn new_id(&self) -> RunId {
        RunId::new(self.clock.now(), &self.ids.new_id())
    }

    async fn status(&self, team: &TeamId) -> Result<pb::CurationStatus, Error> {
        let (clock, open) = self.ledger.curation_status(team).await?;
        Ok(convert::status(
            team,
            clock.as_ref(),
            open.as_ref(),
            *self.rhythm.of(team),
        ))
    }
}

/// The caller's team, if `field` names it.
fn own_team(caller: &Caller, field: &str, name: &str) -> Result<TeamId, Error> {
    let mut violations = FieldViolations::new();
    let team = violations.take(field, parse_team(name));
    match team {
        Some(team) if caller.team.as_ref() == Some(&team) => Ok(team),
        Some(_) => Err(FieldViolations::one(field, "must be the caller's team").into()),
        None => Err(violations.into()),
    }
}

/// A run of the caller's team. Another team's does not exist.
fn own_run(caller: &Caller, name: &str) -> Result<(TeamId, RunId), Error> {
    const PATTERN: &str = "teams/{team}/curationRuns/{run}";
    let mut violations = FieldViolations::new();
    let parsed =
        segments(name, ["teams", "curationRuns"], PATTERN).and_then(|[team, id]| Ok((TeamId::parse(team)?, id)));
    let Some((team, id)) = violations.take("name", parsed) else {
        return Err(violations.into());
    };
    let id = RunId::parse(id).ok_or_else(|| FieldViolations::one("name", format!("must have the form {PATTERN}")))?;
    let missing = || Error::RunNotFound { run: name.to_owned() };
    Ok((steward_grpc::team_of(caller, team, missing)?, id))
}

/// Who asks, and the request's id.
fn request_of(caller: &Caller, request_id: &str) -> Result<UserId, FieldViolations> {
    if request_id.is_empty() || request_id.chars().count() > MAX_REQUEST_ID {
        let problem = format!("must have 1 to {MAX_REQUEST_ID} characters");
        return Err(FieldViolations::one("request_id", problem));
    }
    let user = caller.user.clone();
    user.ok_or_else(|| FieldViolations::one("parent", "must be the team of a person"))
}

#[tonic::async_trait]
impl CuratorService for CuratorHandlers {
    async fn run_curation(
        &self,
        request: Request<pb::RunCurationRequest>,
    ) -> Result<Response<pb::RunCurationResponse>, Status> {
        run_curation::run_curation(self, request).await
    }

    async fn get_curation_status(
        &self,
        request: Request<pb::GetCurationStatusRequest>,
    ) -> Result<Response<pb::GetCurationStatusResponse>, Status> {
        get_curation_status::get_curation_status(self, request).await
    }

    async fn pause_curation(
        &self,
        request: Request<pb::PauseCurationRequest>,
    ) -> Result<Response<pb::PauseCurationResponse>, Status> {
        pause_curation::pause_curation(self, request).await
    }

    async fn resume_curation(
        &self,
        request: Request<pb::ResumeCurationRequest>,
    ) -> Result<Response<pb::ResumeCurationResponse>, Status> {
        resume_curation::resume_curation(self, request).await
    }

    async fn list_curation_runs(
        &self,
        request: Request<pb::ListCurationRunsRequest>,
    ) -> Result<Response<pb::ListCurationRunsResponse>, Status> {
        list_curation_runs::list_curation_runs(self, request).await
    }

    async fn get_curation_report(
        &self,
        request: Request<pb::GetCurationReportRequest>,
    ) -> Result<Response<pb::GetCurationReportResponse>, Status> {
        get_curation_report::get_curation_report(self, request).await
    }

    async fn rollback_curation_run(
        &self,
        request: Request<pb::RollbackCurationRunRequest>,
    ) -> Result<Response<pb::RollbackCurationRunResponse>, Status> {
        rollback_curation_run::rollback_curation_run(self, request).await
    }
}
