//! `ListTeamActivity`.

use steward_base::names::{TeamId, team_name, user_name};
use steward_base::{FieldViolations, page};
use steward_grpc::{caller, team_of};
use steward_proto::recall::v1 as pb;
use steward_recall_core::Sessions;
use steward_recall_core::team_activity::TeamActivity;
use tonic::{Request, Response, Status};

use super::convert::time_to_pb;
use super::fail;

pub(super) async fn list_team_activity(
    sessions: &Sessions,
    request: Request<pb::ListTeamActivityRequest>,
) -> Result<Response<pb::ListTeamActivityResponse>, Status> {
    let caller = caller(&request)?;
    let (after, limit) = decode(request.get_ref()).map_err(|error| fail(error.into()))?;
    let found = sessions.list_team_activity(after.as_ref(), limit).await.map_err(fail)?;
    let mut teams = found.teams;
    teams.retain(|activity| team_of(caller, activity.team.clone(), || ()).is_ok());
    Ok(Response::new(pb::ListTeamActivityResponse {
        teams: teams.iter().map(activity_to_pb).collect(),
        next_page_token: found
            .next
            .map(|team| page::encode(&[], team.as_str()))
            .unwrap_or_default(),
    }))
}

fn decode(request: &pb::ListTeamActivityRequest) -> Result<(Option<TeamId>, u32), FieldViolations> {
    let limit = page::size(request.page_size, 100, 500)?;
    let after = page::decode(&[], &request.page_token)?
        .map(TeamId::parse)
        .transpose()
        .map_err(|_| FieldViolations::one("page_token", "is not a token that this service gave out"))?;
    Ok((after, limit))
}

fn activity_to_pb(activity: &TeamActivity) -> pb::TeamActivity {
    pb::TeamActivity {
        team: team_name(&activity.team),
        last_active_time: Some(time_to_pb(activity.last_active)),
        users: activity
            .users
            .iter()
            .map(|user| user_name(&activity.team, user))
            .collect(),
    }
}
