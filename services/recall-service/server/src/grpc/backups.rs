//! `BackupTeam`, `ListBackups`, `RestoreTeam`: for a team's own admins.

use std::sync::Arc;

use steward_base::names::{TeamId, segments, team_name};
use steward_base::{Clock, page};
use steward_grpc::{caller, team_of};
use steward_proto::recall::v1 as pb;
use steward_recall_core::backups::{Backup, Backups};
use steward_recall_core::{Error, Sessions};
use tonic::{Request, Response, Status};

use super::access::parent_team;
use super::convert::time_to_pb;
use super::fail;

pub(super) async fn backup_team(
    (sessions, backups, clock): (&Sessions, &Arc<dyn Backups>, &Arc<dyn Clock>),
    request: Request<pb::BackupTeamRequest>,
) -> Result<Response<pb::BackupTeamResponse>, Status> {
    let team = parent_team(caller(&request)?, &request.get_ref().parent).map_err(fail)?;
    let made = backups.backup(&team, &sessions.new_id(), clock.now()).await;
    Ok(Response::new(pb::BackupTeamResponse {
        backup: Some(backup_to_pb(&made.map_err(fail)?)),
    }))
}

pub(super) async fn list_backups(
    backups: &Arc<dyn Backups>,
    request: Request<pb::ListBackupsRequest>,
) -> Result<Response<pb::ListBackupsResponse>, Status> {
    let asked = request.get_ref();
    let team = parent_team(caller(&request)?, &asked.parent).map_err(fail)?;
    let limit = page::size(asked.page_size, 50, 200).map_err(|error| fail(error.into()))?;
    let arguments = [asked.parent.as_str()];
    let before = page::decode(&arguments, &asked.page_token).map_err(|error| fail(error.into()))?;
    let found = backups
        .backups(&team, before.as_deref(), limit + 1)
        .await
        .map_err(fail)?;
    let limit = limit as usize;
    let more = found.len() > limit;
    let last = found.get(limit.saturating_sub(1)).filter(|_| more);
    Ok(Response::new(pb::ListBackupsResponse {
        next_page_token: last.map_or_else(String::new, |last| page::encode(&arguments, &last.id)),
        backups: found.iter().take(limit).map(backup_to_pb).collect(),
    }))
}

pub(super) async fn restore_team(
    (sessions, backups): (&Sessions, &Arc<dyn Backups>),
    request: Request<pb::RestoreTeamRequest>,
) -> Result<Response<pb::RestoreTeamResponse>, Status> {
    let caller = caller(&request)?;
    let name = &request.get_ref().name;
    let (team, id) = parsed(name).map_err(fail)?;
    let missing = || Error::BackupNotFound { backup: name.clone() };
    let team = team_of(caller, team, missing).map_err(fail)?;
    let restored = backups.restore(&team, &id, &sessions.new_id()).await.map_err(fail)?;
    Ok(Response::new(pb::RestoreTeamResponse {
        sessions: restored.counts.sessions,
        messages: restored.counts.messages,
        set_aside: restored
            .set_aside
            .map_or_else(String::new, |id| backup_name(&team, &id)),
    }))
}

fn parsed(name: &str) -> Result<(TeamId, String), Error> {
    let parsed = segments(name, ["teams", "backups"], "teams/{team}/backups/{backup}")
        .and_then(|[team, id]| Ok((TeamId::parse(team)?, id.to_owned())));
    parsed.map_err(|problem| Error::field("name", problem.to_string()))
}

fn backup_name(team: &TeamId, id: &str) -> String {
    format!("{}/backups/{id}", team_name(team))
}

fn backup_to_pb(backup: &Backup) -> pb::Backup {
    let counts = backup.counts.unwrap_or_default();
    pb::Backup {
        name: backup_name(&backup.team, &backup.id),
        size_bytes: backup.size,
        create_time: Some(time_to_pb(backup.created)),
        sessions: counts.sessions,
        messages: counts.messages,
    }
}
